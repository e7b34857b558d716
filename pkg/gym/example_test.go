package gym_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/openenv-go/openenv-go/pkg/gym"
	"github.com/openenv-go/openenv-go/pkg/session"
	"github.com/openenv-go/openenv-go/pkg/tools"
)

// A Counter is the state of one session.
type Counter struct{ n int }

// Step is the input of its tool.
type Step struct {
	By int `json:"by" default:"1" minimum:"1" jsonschema:"how far to count"`
}

// Count is its tool.
func (c *Counter) Count(_ context.Context, in Step) (int, error) {
	c.n += in.By
	return c.n, nil
}

// Score rewards reaching ten, which ends the episode.
func (c *Counter) Score(context.Context, gym.ToolCall) gym.Score {
	return gym.Score{Reward: gym.Bool(c.n >= 10), Done: c.n >= 10}
}

// Reset starts where the trainer says.
func (c *Counter) Reset(_ context.Context, r gym.ResetRequest[struct {
	From int `json:"from,omitempty"`
}]) (tools.None, error) {
	c.n = r.Options.From
	return tools.None{}, nil
}

// An environment is a literal of functions. A program hands it to transport.Main; here a session is driven by hand.
func Example() {
	env := gym.Environment[*Counter]{
		Name:  "counter",
		New:   func(context.Context, *gym.Session) (*Counter, error) { return &Counter{}, nil },
		Tools: tools.New(tools.Func("count", "Count on.", (*Counter).Count)),
		Reset: gym.Reset((*Counter).Reset),
		After: (*Counter).Score,
	}
	ctx := context.Background()
	class, err := env.Compile(ctx, tools.ModeSimulation)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer class.Close()
	sessions := session.NewManager(class, session.Options{})
	defer sessions.Shutdown(ctx)
	s, err := sessions.Open(ctx, session.ByCreate, "")
	if err != nil {
		fmt.Println(err)
		return
	}
	params, err := class.ParseReset([]byte(`{"episode_id":"e1","from":8}`), false)
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := s.Reset(ctx, params, 0); err != nil {
		fmt.Println(err)
		return
	}
	for _, raw := range []string{`{"tool_name":"count","arguments":{}}`, `{"tool_name":"count","arguments":{"by":0}}`, `{"tool_name":"count","arguments":{}}`} {
		action, err := class.ParseAction([]byte(raw))
		if err != nil {
			fmt.Println(err)
			return
		}
		o, err := s.Step(ctx, action, 0)
		if err != nil {
			fmt.Println(err)
			return
		}
		reward, _ := json.Marshal(o.Reward)
		fmt.Printf("reward %s, done %v\n", reward, o.Done)
	}
	state, err := s.State(ctx, 0)
	fmt.Println(string(state), err)
	// Output:
	// reward false, done false
	// reward false, done false
	// reward true, done true
	// {"episode_id":"e1","step_count":3,"reward_total":1,"last_reward":true,"done":true} <nil>
}
