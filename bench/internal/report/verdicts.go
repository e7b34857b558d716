package report

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// A verdict is a bar that was set before, and what was measured.
type verdict struct {
	what   string
	want   string
	got    string
	met    bool
	rounds string // of all rounds, where there are many
}

func verdictTable(r Results) table {
	t := table{title: "What was asked for", head: []string{"", "want", "measured", "", "in each round"}}
	for _, v := range verdicts(r) {
		met := "met"
		if !v.met {
			met = "**not met**"
		}
		t.rows = append(t.rows, []string{v.what, v.want, v.got, met, v.rounds})
	}
	return t
}

// The cells that verdicts are on.
const (
	barSessions = 64
	barSize     = 32
)

func perSecond(r Round) float64 { return r.PerSecond() }
func cost(r Round) float64      { return float64(r.CPU) / float64(max(1, r.Count)) }
func p99(r Round) float64       { return float64(r.P99) }

// verdicts are those for which there are results.
func verdicts(r Results) (all []verdict) {
	steps := func(door string, sessions int, server string) []Round {
		s, _ := find(r.Steps, door, sessions, barSize, server)
		return s.Rounds
	}
	opens := func(server string) []Round {
		for _, o := range r.Opens {
			if o.Server == server {
				return o.Rounds
			}
		}
		return nil
	}
	ws := func(server string) []Round { return steps("ws-step", barSessions, server) }
	sh := func(server string) []Round { return steps("streamable", StreamableSessions, server) }
	bare := func(server string) []Round { return steps("post-mcp", barSessions, server) }
	add := func(v verdict, ok bool) {
		if ok {
			all = append(all, v)
		}
	}
	add(atLeast("`/ws`, 64 sessions: steps per second, in units of the reference's", 50, ws(Ours), ws(Reference), perSecond))
	add(atMost("`/ws`, 64 sessions: CPU per step, of the reference's", 1.0/50, ws(Ours), ws(Reference), cost))
	add(atMost("`/ws`, 64 sessions: p99, of the reference's", 1.0/20, ws(Ours), ws(Reference), p99))
	add(atMost("`/ws`, 64 sessions: CPU per step, of the floor's", 1.5, ws(Ours), ws(Floor), cost))
	add(atMost("`POST /mcp` without a handshake: CPU per call, of the net/http echo's", 1.5, bare(Ours), bare(HTTPEcho), cost))
	add(atMost("Streamable HTTP, 32 sessions: CPU per call, of mcp-go's", 1, sh(Ours), sh(MCPGo), cost))
	add(atMost("Streamable HTTP, 32 sessions: CPU per call, of the net/http echo's", 2, sh(Ours), sh(HTTPEcho), cost))
	add(atLeast("`/ws`: sessions opened per second, in units of the reference's", 30, opens(Ours), opens(Reference), perSecond))
	all = append(all, idleVerdicts(r)...)
	if len(r.Beside) == 2 {
		add(atMost(fmt.Sprintf("CPU per step with idle sessions (%s), of that without", r.Beside[1].Door), 1.1, r.Beside[1].Rounds, r.Beside[0].Rounds, cost))
	}
	return append(all, scaleVerdicts(r)...)
}

func atMost(what string, bar float64, a, b []Round, f func(Round) float64) (verdict, bool) {
	v, got, ok := compared(what, a, b, f)
	v.want, v.met = "≤ "+factor(bar), got <= bar
	return v, ok
}

func atLeast(what string, bar float64, a, b []Round, f func(Round) float64) (verdict, bool) {
	v, got, ok := compared(what, a, b, f)
	v.want, v.met = "≥ "+factor(bar), got >= bar
	return v, ok
}

func compared(what string, a, b []Round, f func(Round) float64) (v verdict, got float64, ok bool) {
	if len(a) == 0 || len(b) == 0 { // not measured, or failed, which the table tells
		return v, 0, false
	}
	got = ratio(a, b, f)
	ratios := make([]float64, min(len(a), len(b)))
	for i := range ratios {
		ratios[i] = f(a[i]) / f(b[i])
	}
	return verdict{what: what, got: factor(got), rounds: told(ratios)}, got, true
}

// listed is how many rounds are told one by one.
const listed = 8

func told(ratios []float64) string {
	n := len(ratios)
	if n > listed {
		s := slices.Sorted(slices.Values(ratios))
		return fmt.Sprintf("%d rounds, half of them from %s to %s", n, factor(s[n/4]), factor(s[n-1-n/4]))
	}
	all := make([]string, n)
	for i, r := range ratios {
		all[i] = factor(r)
	}
	return strings.Join(all, ", ")
}

// factor writes a ratio: a small one as its inverse.
func factor(v float64) string {
	switch {
	case v <= 0.1 && v > 0:
		return fmt.Sprintf("1/%.3g", 1/v)
	case v >= 10:
		return fmt.Sprintf("%.3g ×", v)
	}
	return fmt.Sprintf("%.2f ×", v)
}

// maxIdle is what an idle session may take.
const maxIdle = 32 << 10

func idleVerdicts(r Results) (all []verdict) {
	at := func(server string) int {
		return slices.IndexFunc(r.Idle, func(i Idle) bool { return i.Server == server && i.Failure == "" })
	}
	ours, floor := at(Ours), at(Floor)
	if ours < 0 {
		return nil
	}
	got := r.Idle[ours].Asleep
	all = append(all, verdict{what: "resident memory of an idle session", want: "≤ " + size(maxIdle), got: size(got), met: got <= maxIdle})
	if floor >= 0 {
		of := float64(got) / float64(r.Idle[floor].Asleep)
		all = append(all, verdict{what: "the same, of the floor's", want: "≤ " + factor(1.3), got: factor(of), met: of <= 1.3})
	}
	return all
}

func scaleVerdicts(r Results) (all []verdict) {
	for _, s := range r.Scale {
		name := fmt.Sprintf("%s sessions at once, steps of %s: ", number(float64(s.Sessions)), duration(s.Wait))
		rate := verdict{what: name + "success", want: "100 %", got: fmt.Sprintf("%.3f %%", 100*s.Rate()), met: s.Rate() == 1}
		switch s.Sessions {
		case 16_384:
			const most = 4 * time.Second
			all = append(all, rate, verdict{what: name + "p99 of the whole", want: "≤ " + duration(most), got: duration(s.Whole.P99), met: s.Whole.P99 <= most})
		case 65_536:
			rate.want, rate.met = "≥ 99.9 %", s.Rate() >= 0.999
			all = append(all, rate)
		}
	}
	return all
}
