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
	escapes, err := codemodetest.Escapes(corpus)
	if err != nil {
		t.Fatal(err)
	}
	slices.SortStableFunc(escapes, func(a, b codemodetest.Escape) int {
		return rank(a) - rank(b)
	})
	p := newPool(t, sandbox.Options{Processes: 1, Memory: 64 << 20})
	if err := p.Warm(t.Context()); err != nil {
		t.Fatal(err)
	}
	const limit = time.Second
	for _, e := range escapes {
		t.Run(e.Name, func(t *testing.T) {
			h, err := codemodetest.NewHarbour(corpus)
			if err != nil {
				t.Fatal(err)
			}
			h.Patience = 200 * time.Millisecond
			peak := watch()
			o, took := timed(t, p, codemode.Job{Code: e.Code, Tools: h.Tools(), Limits: codemode.Limits{Time: limit}}, h.Call)
			if most, bound := peak(), p.Bound(); most > bound {
				t.Errorf("it took %d MiB, of %d", most>>20, bound>>20)
			}
			if err := e.Check(o); err != nil {
				t.Errorf("%v\n%.500s", err, e.Code)
			}
			if took > limit*12/10 {
				t.Errorf("it took %v", took)
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
