//go:build !race

package session

import (
	"testing"

	"github.com/openenv-go/openenv-go/pkg/gym"
)

// TestAllocations holds what a step allocates between the door and the tool, both ways: 25 when it was last looked at, in the
// goroutine that read the frame. The race detector allocates too.
func TestAllocations(t *testing.T) {
	const most = 28
	m := benchManager(t)
	s, err := m.Open(t.Context(), ByGymSocket, "")
	if err != nil {
		t.Fatal(err)
	}
	ctx, release := s.Bind(t.Context())
	defer release()
	n := testing.AllocsPerRun(200, func() {
		a, err := m.Class().ParseAction([]byte(benchAction))
		if err != nil {
			t.Fatal(err)
		}
		s.StepThen(ctx, a, 0, func(o gym.Observation, err error, here bool) {
			if err != nil || !here {
				t.Error(err, here)
			}
		})
	})
	if t.Logf("%.0f allocations", n); n > most {
		t.Errorf("a step makes %.0f allocations, want at most %d", n, most)
	}
}
