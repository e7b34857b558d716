// Command ours serves openenv-go with the tools that the other measured servers have: an echo, and one that waits.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"syscall"
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
	addr := flag.String("addr", "127.0.0.1:0", "`address` to listen on")
	var o transport.Options
	flag.IntVar(&o.Sessions.Max, "max-sessions", 0, "how many sessions at once; 0: the default")
	flag.Int64Var(&o.MaxInFlight, "max-in-flight", 0, "bytes of all long messages that are being read or answered; 0: the default")
	flag.DurationVar(&o.Sessions.ToolTimeout, "tool-timeout", 0, "deadline of a tool call; 0: the default")
	flag.Parse()
	o.Logger = slog.New(slog.NewTextHandler(os.Stderr, nil)) // as transport.Main has it
	host.Debug()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if err := serve(ctx, *addr, o); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func serve(ctx context.Context, addr string, o transport.Options) error {
	server, err := transport.New(ctx, env, o)
	if err != nil {
		return err
	}
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return errors.Join(err, server.Close(ctx))
	}
	fmt.Printf("listening on http://%v\n", ln.Addr())
	return server.Serve(ctx, ln, nil)
}
