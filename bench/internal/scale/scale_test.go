package scale_test

import (
	"os"
	"testing"
	"time"

	"github.com/openenv-go/openenv-go/bench/internal/proc"
	"github.com/openenv-go/openenv-go/bench/internal/scale"
)

func TestMain(m *testing.M) {
	scale.Work() // in the processes that Run starts
	os.Exit(m.Run())
}

func TestRun(t *testing.T) {
	program, err := proc.Build(t.Context(), t.TempDir(), "ours")
	if err != nil {
		t.Fatal(err)
	}
	const sessions, wait = 50, 50 * time.Millisecond
	// Two servers, and so two processes of clients, as where one may not have that many connections.
	r, err := scale.Run(t.Context(), scale.Settings{Sessions: sessions, Wait: wait, Servers: 2}, []string{program, "-addr", "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	if r.Succeeded != sessions || len(r.Failures) > 0 || r.Servers != 2 || r.Clients != 2 || r.Step.P50 < wait || r.Whole.P50 < r.Step.P50 || r.ServerCPU <= 0 {
		t.Errorf("got %+v", r)
	}
	// A server with fewer slots than sessions: some fail, and that is told.
	r, err = scale.Run(t.Context(), scale.Settings{Sessions: sessions, Wait: time.Second}, []string{program, "-addr", "127.0.0.1:0", "-max-sessions", "20"})
	if err != nil {
		t.Fatal(err)
	}
	if r.Succeeded < 20 || r.Succeeded >= sessions || len(r.Failures) == 0 {
		t.Errorf("of 20 slots: got %+v", r)
	}
}
