// Command ours serves openenv-go with the tools that the other measured servers have: an echo, and one that waits.
package main

import (
	"context"
	"time"

	"github.com/openenv-go/openenv-go/bench/internal/host"
	"github.com/openenv-go/openenv-go/pkg/gym"
	"github.com/openenv-go/openenv-go/pkg/tools"
	"github.com/openenv-go/openenv-go/pkg/transport"
)

// Echo is the environment value.
type Echo struct{}

// Message is the input of echo_message.
type Message struct {
	Message string `json:"message" jsonschema:"the text to echo"`
}

// Wait is the input of wait.
type Wait struct {
	Message string  `json:"message" jsonschema:"the text to echo"`
	Seconds float64 `json:"seconds" minimum:"0" jsonschema:"how long to wait before"`
}

// EchoMessage returns the message.
func (*Echo) EchoMessage(_ context.Context, in Message) (string, error) { return in.Message, nil }

// Wait returns the message later.
func (*Echo) Wait(ctx context.Context, in Wait) (string, error) {
	select {
	case <-time.After(time.Duration(in.Seconds * float64(time.Second))):
		return in.Message, nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// reward is what every step earns. It is a constant, so that the work of a server is measured and not an environment's.
const reward = 0.5

// Score rewards a step.
func (*Echo) Score(context.Context, gym.ToolCall) gym.Score {
	return gym.Score{Reward: gym.Number(reward)}
}

var env = gym.Environment[*Echo]{
	Name: "echo_env",
	New:  func(context.Context, *gym.Session) (*Echo, error) { return &Echo{}, nil },
	Tools: tools.New(
		tools.Func("echo_message", "Echo the message back.", (*Echo).EchoMessage),
		tools.Func("wait", "Echo the message back after a while.", (*Echo).Wait),
	),
	After: (*Echo).Score,
}

func main() {
	host.Debug()
	transport.Main(env)
}
