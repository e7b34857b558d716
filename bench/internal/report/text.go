package report

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"
)

// StreamableSessions is how many sessions the verdict on Streamable HTTP is on.
const StreamableSessions = 32

const (
	idleTitle   = "An idle session of `/ws`, after a step"
	besideTitle = "Steps over `/ws` with idle sessions beside"
	startsTitle = "Starting"
	scaleTitle  = "Many sessions at once: connect, reset, one step that waits, close"
)

// Text is the results as tables to read in a terminal.
func Text(r Results) string {
	var b strings.Builder
	for _, t := range tables(r) {
		fmt.Fprintf(&b, "\n%s\n", t.title)
		w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, strings.Join(t.head, "\t"))
		for _, row := range t.rows {
			fmt.Fprintln(w, strings.Join(row, "\t"))
		}
		w.Flush()
	}
	return b.String()
}

// A table is rows under a head.
type table struct {
	title string
	head  []string
	rows  [][]string
}

func tables(r Results) (all []table) {
	for _, t := range []table{verdictTable(r), opensTable(r), idleTable(r), besideTable(r), startsTable(r), scaleTable(r)} {
		if len(t.rows) > 0 {
			all = append(all, t)
		}
	}
	all = append(all, stepTables(r)...)
	for _, p := range r.Profiles {
		all = append(all, profileTable(p))
	}
	return all
}

func profileTable(p Profile) table {
	t := table{title: fmt.Sprintf("Where the CPU goes: %s, %d sessions", doorTitle(p.Door), p.Sessions), head: []string{"function", "by itself", "with what it calls"}}
	for _, s := range p.Top {
		t.rows = append(t.rows, []string{"`" + s.Function + "`", share(s.Flat), share(s.Cum)})
	}
	return t
}

func share(v float64) string { return fmt.Sprintf("%.1f %%", 100*v) }

// stepTables has a table for each door.
func stepTables(r Results) (all []table) {
	for _, s := range r.Steps {
		if len(all) == 0 || all[len(all)-1].title != doorTitle(s.Door) {
			all = append(all, table{title: doorTitle(s.Door), head: []string{
				"sessions", "text", "server", "steps/s", "p50", "p99", "max", "server CPU per step", "client CPU per step", "resident memory"}})
		}
		t := &all[len(all)-1]
		t.rows = append(t.rows, append([]string{number(float64(s.Sessions)), size(int64(s.Size)), s.Server}, append(roundCells(s.Rounds, s.Failure), size(s.RSS))...))
	}
	return all
}

// roundCells are the medians of rounds, of steps or openings.
func roundCells(rounds []Round, failure string) []string {
	if failure != "" {
		return []string{"failed: " + shorten(failure), "", "", "", "", ""}
	}
	return []string{
		number(over(rounds, Round.PerSecond)),
		duration(over(rounds, func(r Round) time.Duration { return r.P50 })),
		duration(over(rounds, func(r Round) time.Duration { return r.P99 })),
		duration(over(rounds, func(r Round) time.Duration { return r.Max })),
		duration(over(rounds, Round.Cost)),
		duration(over(rounds, func(r Round) time.Duration { return r.ClientCPU / time.Duration(max(1, r.Count)) })),
	}
}

// shown is how much of a failure a table has room for.
const shown = 120

func shorten(text string) string {
	text, _, _ = strings.Cut(text, "\n")
	if len(text) > shown {
		text = strings.ToValidUTF8(text[:shown], "") + "…"
	}
	return strings.ReplaceAll(text, "|", "/")
}

func doorTitle(door string) string {
	if t, ok := doorTitles[door]; ok {
		return t
	}
	return door
}

var doorTitles = map[string]string{
	"ws-step":             "`step` frames over `/ws`",
	"ws-mcp-frame":        "`mcp` frames over `/ws`",
	"ws-mcp":              "JSON-RPC over the WebSocket `/mcp`",
	"post-mcp":            "`POST /mcp` without a handshake, on a session",
	"post-mcp-temporary":  "`POST /mcp` without a handshake or a session",
	"post-step":           "`POST /step` on a session",
	"post-step-temporary": "`POST /step` without a session",
	"streamable":          "Streamable HTTP, after `initialize`",
}

func opensTable(r Results) table {
	t := table{title: "Opening sessions: connect to `/ws`, reset, reply", head: []string{
		"server", "at once", "opened per second", "p50", "p99", "max", "server CPU of one", "client CPU of one"}}
	for _, o := range r.Opens {
		t.rows = append(t.rows, append([]string{o.Server, number(float64(o.Width))}, roundCells(o.Rounds, o.Failure)...))
	}
	return t
}

func idleTable(r Results) table {
	t := table{title: idleTitle, head: []string{"server", "sessions", "resident memory", "after a collection", "goroutines", "threads"}}
	for _, i := range r.Idle {
		if i.Failure != "" {
			t.rows = append(t.rows, []string{i.Server, number(float64(i.Sessions)), "failed: " + shorten(i.Failure), "", "", ""})
			continue
		}
		collected, goroutines := "", ""
		if i.Collected != 0 {
			collected, goroutines = size(i.Collected), fmt.Sprintf("%.2f", i.Goroutines)
		}
		t.rows = append(t.rows, []string{i.Server, number(float64(i.Sessions)), size(i.Asleep), collected, goroutines, fmt.Sprintf("%.2f", i.Threads)})
	}
	return t
}

func besideTable(r Results) table {
	t := table{title: besideTitle, head: []string{"", "steps/s", "p50", "p99", "max", "server CPU per step", "client CPU per step"}}
	for _, s := range r.Beside {
		t.rows = append(t.rows, append([]string{s.Door}, roundCells(s.Rounds, s.Failure)...))
	}
	return t
}

func startsTable(r Results) table {
	t := table{title: startsTitle, head: []string{"server", "until it answers", "size of what is installed", "resident memory"}}
	for _, s := range r.Starts {
		t.rows = append(t.rows, []string{s.Server, duration(Median(s.Times)), size(s.Binary), size(s.RSS)})
	}
	return t
}

func scaleTable(r Results) table {
	t := table{title: scaleTitle, head: []string{
		"sessions", "wait", "success", "p50 of the whole", "p99", "max", "p99 of connect and reset", "p99 of the step", "server processes", "client processes"}}
	for _, s := range r.Scale {
		t.rows = append(t.rows, []string{number(float64(s.Sessions)), duration(s.Wait), fmt.Sprintf("%.3f %%", 100*s.Rate()),
			duration(s.Whole.P50), duration(s.Whole.P99), duration(s.Whole.Max), duration(s.Open.P99), duration(s.Step.P99),
			number(float64(s.Servers)), number(float64(s.Clients))})
	}
	return t
}

// number has three significant digits, and commas.
func number(v float64) string {
	if v < 100 && v != float64(int(v)) {
		return fmt.Sprintf("%.3g", v)
	}
	digits := fmt.Sprintf("%.0f", v)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// size is bytes in a fitting unit.
func size(b int64) string {
	switch {
	case b >= 4<<30:
		return fmt.Sprintf("%.1f GiB", float64(b)/(1<<30))
	case b >= 10<<20 || b >= 1<<20 && b%(1<<20) == 0:
		return number(float64(b>>20)) + " MiB"
	case b >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(b)/(1<<20))
	case b >= 1<<10:
		return strings.TrimSuffix(fmt.Sprintf("%.1f", float64(b)/(1<<10)), ".0") + " KiB"
	}
	return fmt.Sprintf("%d B", b)
}

// duration has three significant digits.
func duration(d time.Duration) string {
	switch {
	case d >= 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d >= time.Second:
		return fmt.Sprintf("%.2f s", d.Seconds())
	case d >= time.Millisecond:
		return fmt.Sprintf("%.3g ms", float64(d)/float64(time.Millisecond))
	}
	return fmt.Sprintf("%.3g µs", float64(d)/float64(time.Microsecond))
}
