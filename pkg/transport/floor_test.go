//go:build unix

package transport_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/openenv-go/openenv-go/pkg/gym"
	"github.com/openenv-go/openenv-go/pkg/tools"
	"github.com/openenv-go/openenv-go/pkg/transport"
)

// The cost of a step is measured against a floor: the least that a Go program does which answers the same frames with
// the same bytes over the same WebSocket library. Both servers run as child processes of the test binary, so that what
// the operating system counts as theirs has no share of the client in it.

// ---- the two servers ----

// stepFrame is a step with a call of echo_message.
type stepFrame struct {
	Type string         `json:"type"`
	Data callToolAction `json:"data"`
}

type callToolAction struct {
	Type      string        `json:"type"`
	ToolName  string        `json:"tool_name"`
	Arguments echoArguments `json:"arguments"`
}

type echoArguments struct {
	Message string `json:"message" jsonschema:"the text to echo"`
}

// echoReply is the answer to a stepFrame.
type echoReply struct {
	Type string `json:"type"`
	Data struct {
		Observation struct {
			Metadata struct{}   `json:"metadata"`
			ToolName string     `json:"tool_name"`
			Result   echoResult `json:"result"`
			Error    *struct{}  `json:"error"`
		} `json:"observation"`
		Reward float64 `json:"reward"`
		Done   bool    `json:"done"`
	} `json:"data"`
}

type echoResult struct {
	Content    [1]textContent `json:"content"`
	Structured struct {
		Result string `json:"result"`
	} `json:"structured_content"`
	Meta struct {
		FastMCP struct {
			WrapResult bool `json:"wrap_result"`
		} `json:"fastmcp"`
	} `json:"meta"`
	Data    string `json:"data"`
	IsError bool   `json:"is_error"`
}

type textContent struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

func newStepFrame(message string) stepFrame {
	return stepFrame{"step", callToolAction{"call_tool", "echo_message", echoArguments{message}}}
}

const benchReward = 0.5

func newEchoReply(f stepFrame) (r echoReply) {
	r.Type = "observation"
	r.Data.Reward = benchReward
	r.Data.Observation.ToolName = f.Data.ToolName
	res := &r.Data.Observation.Result
	res.Content[0] = textContent{"text", f.Data.Arguments.Message}
	res.Structured.Result = f.Data.Arguments.Message
	res.Meta.FastMCP.WrapResult = true
	res.Data = f.Data.Arguments.Message
	return r
}

// serveFloor is the floor. Its context never ends, which spares it the library's work for those that may.
func serveFloor(w http.ResponseWriter, r *http.Request) {
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{CompressionMode: websocket.CompressionDisabled})
	if err != nil {
		return
	}
	defer conn.CloseNow()
	ctx := context.Background()
	for {
		_, text, err := conn.Read(ctx)
		if err != nil {
			return
		}
		var f stepFrame
		if err := json.Unmarshal(text, &f); err != nil {
			return
		}
		reply, err := json.Marshal(newEchoReply(f))
		if err != nil || conn.Write(ctx, websocket.MessageText, reply) != nil {
			return
		}
	}
}

type benchEcho struct{}

func (*benchEcho) echo(_ context.Context, in echoArguments) (string, error) { return in.Message, nil }

func (*benchEcho) score(context.Context, gym.ToolCall) gym.Score {
	return gym.Score{Reward: gym.Number(benchReward)}
}

var benchEnvironment = gym.Environment[*benchEcho]{
	Name:  "bench_env",
	New:   func(context.Context, *gym.Session) (*benchEcho, error) { return &benchEcho{}, nil },
	Tools: tools.New(tools.Func("echo_message", "Echo the message back.", (*benchEcho).echo)),
	After: (*benchEcho).score,
}

const (
	floorServer = "floor"
	ownServer   = "own"
)

// benchHandler makes one of the servers. stop ends it when its HTTP server has stopped.
func benchHandler(kind string) (h http.Handler, stop func(context.Context) error, err error) {
	if kind == floorServer {
		return http.HandlerFunc(serveFloor), func(context.Context) error { return nil }, nil
	}
	s, err := transport.New(context.Background(), benchEnvironment, transport.Options{})
	if err != nil {
		return nil, nil, err
	}
	return s, s.Close, nil
}

// ---- child processes ----

// childVariable tells a child which server it is.
const childVariable = "OPENENV_TEST_SERVER"

// childListener is the first descriptor of exec.Cmd's ExtraFiles.
const childListener = 3

// childGrace is how long a child may take to stop.
const childGrace = 10 * time.Second

// TestServeChild is no test, but what runs in the child processes of [startChild]. It serves until its parent has gone.
func TestServeChild(t *testing.T) {
	kind := os.Getenv(childVariable)
	if kind == "" {
		t.Skip("runs in child processes only")
	}
	handler, stop, err := benchHandler(kind)
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.FileListener(os.NewFile(childListener, "listener"))
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/", handler)
	mux.HandleFunc("GET /spent", func(w http.ResponseWriter, _ *http.Request) { json.NewEncoder(w).Encode(spentHere()) })
	server := http.Server{Handler: mux}
	served := make(chan error, 1)
	go func() { served <- server.Serve(ln) }()
	io.Copy(io.Discard, os.Stdin)
	server.Close()
	ctx, cancel := context.WithTimeout(context.Background(), childGrace)
	defer cancel()
	if err := errors.Join(ignore(<-served, http.ErrServerClosed), stop(ctx)); err != nil {
		t.Error(err)
	}
}

func ignore(err, expected error) error {
	if errors.Is(err, expected) {
		return nil
	}
	return err
}

// spent is what a process has used since it began.
type spent struct {
	CPU    time.Duration // user and system
	Allocs uint64
}

func spentHere() spent {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return spent{time.Duration(u.Utime.Nano() + u.Stime.Nano()), m.Mallocs}
}

func (s spent) since(before spent) spent { return spent{s.CPU - before.CPU, s.Allocs - before.Allocs} }

// A child is a server in a process of its own.
type child struct {
	addr string
	http *http.Client
}

// startChild starts one, which ends with the test.
func startChild(t testing.TB, kind string) child {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	f, err := ln.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	cmd := exec.Command(os.Args[0], "-test.run=^TestServeChild$")
	cmd.Env = append(os.Environ(), childVariable+"="+kind)
	cmd.ExtraFiles = []*os.File{f}
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stdin.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("the %s server: %v", kind, err)
		}
	})
	c := child{ln.Addr().String(), &http.Client{Transport: &http.Transport{}}}
	t.Cleanup(c.http.CloseIdleConnections)
	return c
}

func (c child) spent(t testing.TB) (s spent) {
	t.Helper()
	res, err := c.http.Get("http://" + c.addr + "/spent")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if err := json.NewDecoder(res.Body).Decode(&s); err != nil {
		t.Fatal(err)
	}
	return s
}
