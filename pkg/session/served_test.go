package session

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/openenv-go/openenv-go/pkg/gym"
)

type traceKey struct{}

// TestServedRequests: what a door serves itself has the values of its HTTP request, and ends with its client's word or with
// the agent, not with the connection. Who is still writing when the agent is gone is hurried.
func TestServedRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := new(world).manager(t, Options{}).mustOpen(t, ByInitialize)
		transport, _ := mcp.NewInMemoryTransports()
		a, err := s.Join(func(*Agent) (mcp.Transport, gym.Gate) { return transport, nil })
		if err != nil {
			t.Fatal(err)
		}
		hurried := make(chan string, 9)
		begin := func(ctx context.Context, id string) (context.Context, func()) {
			ctx, done, err := a.Begin(ctx, id, func() { hurried <- id })
			if err != nil {
				t.Fatal(err)
			}
			return ctx, done
		}

		request, lost := context.WithCancel(context.WithValue(t.Context(), traceKey{}, "trace"))
		one, done := begin(request, "1")
		if _, _, err := a.Begin(request, "1", nil); err == nil {
			t.Error("an id is taken twice")
		}
		lost()
		if one.Err() != nil || one.Value(traceKey{}) != "trace" {
			t.Errorf("with its connection lost, the request has ended with %v, or lost the value %v", one.Err(), one.Value(traceKey{}))
		}
		if !a.Cancel("1") || context.Cause(one) != context.Canceled {
			t.Errorf("cancelled by its client, the request ends with %v", context.Cause(one))
		}
		done()
		if a.Cancel("1") {
			t.Error("a request that has been answered is cancelled")
		}

		two, answered := begin(t.Context(), "2")
		go a.Leave()
		synctest.Wait()
		if codeOf(context.Cause(two)) != Closed || len(hurried) != 0 {
			t.Errorf("with the agent, the request ends with %v; %d are hurried", context.Cause(two), len(hurried))
		}
		time.Sleep(2 * drainTime)
		three, alsoAnswered := begin(t.Context(), "3") // found before the agent left
		if codeOf(context.Cause(three)) != Closed {
			t.Errorf("after the agent, a request ends with %v", context.Cause(three))
		}
		close(hurried)
		var got []string
		for id := range hurried {
			got = append(got, id)
		}
		if diff := cmp.Diff([]string{"2", "3"}, got); diff != "" {
			t.Errorf("hurried (-want +got):\n%s", diff)
		}
		answered()
		alsoAnswered()
	})
}
