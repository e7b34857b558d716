package session_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/openenv-go/openenv-go/pkg/gym"
	"github.com/openenv-go/openenv-go/pkg/session"
	"github.com/openenv-go/openenv-go/pkg/tools"
)

type sleeper struct{}

func (*sleeper) Sleep(ctx context.Context, _ tools.None) (string, error) {
	<-ctx.Done()
	return "", ctx.Err()
}

// A manager keeps sessions within a capacity, and gives each call a deadline.
func Example() {
	ctx := context.Background()
	class, err := gym.Environment[*sleeper]{
		Name:  "sleeper",
		New:   func(context.Context, *gym.Session) (*sleeper, error) { return &sleeper{}, nil },
		Tools: tools.New(tools.Func("sleep", "Sleep for ever.", (*sleeper).Sleep)),
	}.Compile(ctx, tools.ModeSimulation)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer class.Close()
	m := session.NewManager(class, session.Options{Max: 1, ToolTimeout: 10 * time.Millisecond})
	defer m.Shutdown(ctx)

	s, err := m.Open(ctx, session.ByCreate, "")
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = m.Open(ctx, session.ByCreate, "")
	var full *session.Error
	if errors.As(err, &full) && full.Code == session.CapacityReached {
		fmt.Println(full)
	}
	o, err := s.Step(ctx, gym.Action{Kind: gym.CallTool, Tool: "sleep"}, 0)
	fmt.Println(o.Done, err, s.Steps())
	fmt.Println(s.Close(ctx, "done"), m.Active())
	// Output:
	// no free session: 1 of 1 are in use; try again when one has ended
	// false <nil> 1
	// <nil> 0
}
