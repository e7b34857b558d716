//go:build !race

package transport

import (
	"bytes"
	"testing"
)

// TestAllocations holds what a call by HTTP allocates. The race detector allocates too.
func TestAllocations(t *testing.T) {
	srv := benchServer(t)
	for _, c := range postCases(t, srv) {
		if c.allocs == 0 {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			var answer bytes.Buffer
			n := testing.AllocsPerRun(200, func() { c.post(t, srv, &answer) })
			c.check(t, answer.Bytes())
			if t.Logf("%.0f allocations", n); n > c.allocs {
				t.Errorf("a request makes %.0f allocations, want at most %.0f", n, c.allocs)
			}
		})
	}
}
