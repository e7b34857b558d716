// Command echo serves the smallest useful environment: tools that echo, and a reward that depends on the answer.
package main

import (
	"context"
	"unicode/utf8"

	"github.com/openenv-go/openenv-go/pkg/gym"
	"github.com/openenv-go/openenv-go/pkg/tools"
	"github.com/openenv-go/openenv-go/pkg/transport"
)

// Echo is the environment value. Each session has its own.
type Echo struct {
	last string // the last message echoed in this episode
}

// Message is the input of the echo tools.
type Message struct {
	Message string `json:"message" jsonschema:"the text to echo"`
}

// Measured is a message and its length.
type Measured struct {
	Message string `json:"message"`
	Length  int    `json:"length" jsonschema:"in Unicode code points"`
}

// Sum is the input of add.
type Sum struct {
	A int `json:"a"`
	B int `json:"b"`
}

// EchoMessage returns the message.
func (e *Echo) EchoMessage(_ context.Context, in Message) (string, error) {
	e.last = in.Message
	return in.Message, nil
}

// EchoWithLength returns the message and its length.
func (e *Echo) EchoWithLength(_ context.Context, in Message) (Measured, error) {
	e.last = in.Message
	return Measured{in.Message, utf8.RuneCountInString(in.Message)}, nil
}

// Add adds.
func (e *Echo) Add(_ context.Context, in Sum) (int, error) { return in.A + in.B, nil }

// Reset forgets the last message.
func (e *Echo) Reset(context.Context, gym.ResetRequest[tools.None]) (tools.None, error) {
	e.last = ""
	return tools.None{}, nil
}

// State is what the environment adds to the episode's state.
type State struct {
	LastMessage string `json:"last_message"`
}

// State shows the last message.
func (e *Echo) State() State { return State{e.last} }

// rewardPerCharacter is what each character of an echo earns.
const rewardPerCharacter = 0.1

// Score rewards an echo by its length in characters, and anything else with 0.
func (e *Echo) Score(_ context.Context, call gym.ToolCall) gym.Score {
	reward := 0.0
	if call.Err == nil && call.Name != "add" {
		reward = rewardPerCharacter * float64(utf8.RuneCountInString(e.last))
	}
	return gym.Score{Reward: gym.Number(reward)}
}

// Env is the environment.
var Env = gym.Environment[*Echo]{
	Name:        "echo_env",
	Description: "Echoes what it is told.",
	Version:     "1.0.0",
	New:         func(context.Context, *gym.Session) (*Echo, error) { return &Echo{}, nil },
	Tools: tools.New(
		tools.Func("echo_message", "Echo the message back.", (*Echo).EchoMessage),
		tools.Func("echo_with_length", "Echo the message back with its length.", (*Echo).EchoWithLength),
		tools.Func("add", "Add two integers.", (*Echo).Add),
	),
	Reset: gym.Reset((*Echo).Reset),
	State: gym.StateOf((*Echo).State),
	After: (*Echo).Score,
}

func main() { transport.Main(Env) }
