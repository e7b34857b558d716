package soak

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) != "" {
		os.Exit(runChild())
	}
	goleak.VerifyTestMain(m)
}

const (
	shortRun    = 5 * time.Second
	longPhase   = 75 * time.Second // long enough for silent sockets to be closed for newcomers
	drainTime   = time.Minute      // for the sessions to end after the load
	growthRatio = 1.3              // of the resident memory, from the first quiet point to the last
	growthSlack = 16 << 20
)

func TestSoak(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes a while")
	}
	total, err := time.ParseDuration(cmp.Or(os.Getenv("OPENENV_SOAK"), shortRun.String()))
	if err != nil {
		t.Fatalf("OPENENV_SOAK: %v", err)
	}
	seed := rand.Uint64()
	if v := os.Getenv("OPENENV_SOAK_SEED"); v != "" {
		if seed, err = strconv.ParseUint(v, 10, 64); err != nil {
			t.Fatalf("OPENENV_SOAK_SEED: %v", err)
		}
	}
	t.Logf("OPENENV_SOAK_SEED=%d", seed)
	start := time.Now()
	l := &load{server: startServer(t), counts: map[string]int{}, http: &http.Client{
		Transport: &http.Transport{MaxIdleConnsPerHost: actors}, Timeout: patience,
	}}
	defer l.http.CloseIdleConnections()
	base := l.server.report(t)
	var quiet []report
	phases := max(2, int(total/longPhase))
	for n := range phases {
		l.phase(t, total/time.Duration(phases), seed+uint64(n))
		quiet = append(quiet, l.settle(t, base))
		if t.Failed() {
			break
		}
	}
	first, last := quiet[0], quiet[len(quiet)-1]
	if limit := int64(float64(first.RSS)*growthRatio) + growthSlack; last.RSS > limit {
		t.Errorf("the server's memory has grown from %s to %s", megabytes(first.RSS), megabytes(last.RSS))
	}
	l.missing(t, total)
	if told := l.counts["refused: factory"]; told != int(last.Failed) {
		t.Errorf("%d environments could not be built, and %d clients were told so", last.Failed, told)
	}
	if told := l.counts["refused: full"]; told != last.Events["capacity"] {
		t.Errorf("%d newcomers found no slot, and %d clients were told so", last.Events["capacity"], told)
	}
	t.Log(l.summary(time.Since(start), base, quiet))
	for _, u := range l.unexpected {
		t.Errorf("unexpected: %s", u)
	}
	for _, line := range last.Odd {
		t.Errorf("the server's log has %s", line)
	}
	if err := l.server.stop(); err != nil { // 66 after a data race
		t.Errorf("the server ended with %v", err)
	}
}

// phase runs the load for a while.
func (l *load) phase(t *testing.T, d time.Duration, seed uint64) {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		l.watch(ctx)
	}()
	l.run(ctx, seed)
	<-watched
	l.http.CloseIdleConnections()
}

// watch notes how many sessions there are at most.
func (l *load) watch(ctx context.Context) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		text, err := l.server.ask(http.MethodGet, "/active")
		if n, _ := strconv.Atoi(string(text)); err == nil {
			l.mu.Lock()
			l.peak = max(l.peak, n)
			l.mu.Unlock()
		}
	}
}

// settle waits until the server is as it was before the load: no session, and no more goroutines and files than then.
func (l *load) settle(t *testing.T, base report) (r report) {
	t.Helper()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(drainTime); ; <-tick.C {
		r = l.server.report(t)
		if r.Active == 0 && r.Opened == r.Closed && r.Goroutines <= base.Goroutines && r.FDs <= base.FDs && r.Charges == 0 {
			return r
		}
		if time.Now().After(end) {
			break
		}
	}
	t.Errorf("the server does not settle: %d sessions; %d environments opened, %d closed; %d goroutines, %d before; %d files, %d before; %d charges that nobody knows of",
		r.Active, r.Opened, r.Closed, r.Goroutines, base.Goroutines, r.FDs, base.FDs, r.Charges)
	if stacks, err := l.server.ask(http.MethodGet, "/stacks"); err == nil {
		t.Logf("%.20000s", stacks)
	}
	return r
}

// missing holds a run to have had everything in it, a long one what depends on chance too.
func (l *load) missing(t *testing.T, total time.Duration) {
	var wanted []string
	if total > 2*longPhase {
		wanted = []string{"refused: full", "refused: factory", "resumptions"}
	}
	for _, p := range parts {
		wanted = append(wanted, p.name)
	}
	for _, what := range wanted {
		if l.counts[what] == 0 {
			t.Errorf("the run had none of %q", what)
		}
	}
}

func megabytes(n int64) string {
	if n < 0 {
		return "unknown"
	}
	return fmt.Sprintf("%.1f MB", float64(n)/1e6)
}

// summary is what docs/reliability.md shows of a run.
func (l *load) summary(took time.Duration, base report, quiet []report) string {
	var b strings.Builder
	row := func(name string, format string, args ...any) {
		fmt.Fprintf(&b, "%-34s %s\n", name, fmt.Sprintf(format, args...))
	}
	last := quiet[len(quiet)-1]
	fmt.Fprintf(&b, "\n")
	row("time", "%v, %d quiet points", took.Round(time.Second), len(quiet))
	row("machine", "%d cores, %s/%s, %s", runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version())
	row("clients at a time", "%d", actors)
	row("sessions, at most", "%d of %d", l.peak, maxSessions)
	row("environments", "%d built and closed, %d failed", last.Opened, last.Failed)
	row("replies checked", "%d", l.replies.Load())
	row("side effects checked", "%d", l.effects.Load())
	row("unexpected", "%d", l.counts["UNEXPECTED"])
	row("latency of a plain step", "p50 %v, p99 %v", l.latency.quantile(0.5), l.latency.quantile(0.99))
	var rss, goroutines, files []string
	for _, r := range append([]report{base}, quiet...) {
		rss = append(rss, megabytes(r.RSS))
		goroutines = append(goroutines, strconv.Itoa(r.Goroutines))
		files = append(files, strconv.Itoa(r.FDs))
	}
	row("resident memory", "%s", strings.Join(rss, ", "))
	row("goroutines", "%s", strings.Join(goroutines, ", "))
	row("files", "%s", strings.Join(files, ", "))
	for _, what := range slices.Sorted(maps.Keys(l.counts)) {
		if what != "UNEXPECTED" {
			row(what, "%d", l.counts[what])
		}
	}
	for _, event := range slices.Sorted(maps.Keys(last.Events)) {
		row("log: "+event, "%d", last.Events[event])
	}
	return b.String()
}
