//go:build linux && (amd64 || arm64)

package sandbox_test

import (
	"slices"
	"testing"
	"time"

	"github.com/openenv-go/openenv-go/pkg/codemode"
	"github.com/openenv-go/openenv-go/pkg/codemode/codemodetest"
	"github.com/openenv-go/openenv-go/pkg/codemode/sandbox"
)

const corpus = "../testdata"

// afterwards are escapes that look for what another one, which sorts later, has left in its session.
var afterwards = []string{"attribute-after-shadow", "state-found"}

// TestEscapes runs what code may try, one after the other in the same children: each comes to its end, in its time, within
// the memory of its child, and leaves the next ones alone.
func TestEscapes(t *testing.T) {
	if sandbox.Shadow > 1 {
		t.Skip("under the race detector code is twenty times slower, and has the same time")
	}
	escapes, err := codemodetest.Escapes(corpus)
	if err != nil {
		t.Fatal(err)
	}
	slices.SortStableFunc(escapes, func(a, b codemodetest.Escape) int {
		return rank(a) - rank(b)
	})
	const processes = 2 // one is ready when the other has to be replaced
	p := newPool(t, sandbox.Options{Processes: processes, Memory: 64 << 20})
	if err := p.Warm(t.Context()); err != nil {
		t.Fatal(err)
	}
	const limit = 2 * time.Second
	peak := codemodetest.Watch()
	for _, e := range escapes {
		t.Run(e.Name, func(t *testing.T) {
			job := codemode.Job{Code: e.Code, Limits: codemode.Limits{Time: limit}}
			// A machine that is busy with something else can make a run late, but not each time.
			for attempt := 1; ; attempt++ {
				h, err := codemodetest.NewHarbour(corpus)
				if err != nil {
					t.Fatal(err)
				}
				h.Patience = limit / 5
				job.Tools = h.Tools()
				o, took := timed(t, p, job, h.Call)
				if err := e.Check(o); err != nil && o.Error != nil && o.Error.Limit == "time" && job.Limits.Time == limit {
					job.Limits.Time *= 10 // on a busy machine time may be short before anything else is
					continue
				} else if err != nil {
					t.Fatalf("%v\n%.500s", err, e.Code)
				}
				if took <= job.Limits.Time*12/10 {
					return
				}
				if attempt == 3 {
					t.Fatalf("it took %v", took)
				}
			}
		})
	}
	_, one := peak()
	t.Logf("a child took up to %d MiB, of %d", one>>20, p.Bound()/processes>>20)
	if one > p.Bound()/processes {
		t.Errorf("a child took %d MiB, more than %d", one>>20, p.Bound()/processes>>20)
	}
}

// TestSnippets runs what models write: it comes to what it comes to in this process.
func TestSnippets(t *testing.T) {
	snippets, err := codemodetest.Snippets(corpus)
	if err != nil {
		t.Fatal(err)
	}
	p := newPool(t, sandbox.Options{})
	for _, s := range snippets {
		t.Run(s.Name, func(t *testing.T) {
			h, err := codemodetest.NewHarbour(corpus)
			if err != nil {
				t.Fatal(err)
			}
			h.Patience = 50 * time.Millisecond
			o := outcome(t, p, codemode.Job{Code: s.Code, Tools: h.Tools()}, h.Call)
			if err := s.Check(o, h.Calls()); err != nil {
				t.Errorf("%v\n%s", err, s.Code)
			}
		})
	}
}

func rank(e codemodetest.Escape) int {
	if slices.Contains(afterwards, e.Name) {
		return 1
	}
	return 0
}
