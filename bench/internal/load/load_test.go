package load_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/openenv-go/openenv-go/bench/internal/load"
	"github.com/openenv-go/openenv-go/bench/internal/proc"
	"github.com/openenv-go/openenv-go/bench/internal/wire"
)

// programs is where the servers are built.
var programs string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "bench-test-*")
	if err != nil {
		panic(err)
	}
	programs = dir
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// start starts one of the servers.
func start(t *testing.T, name string, args ...string) *proc.Server {
	t.Helper()
	program := filepath.Join(programs, name)
	if _, err := os.Stat(program); err != nil {
		if _, err := proc.Build(t.Context(), programs, name); err != nil {
			t.Fatal(err)
		}
	}
	s, err := proc.Start(t.Context(), name, nil, append([]string{program, "-addr", "127.0.0.1:0"}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	return s
}

const (
	sessions = 4
	turn     = 20 * time.Millisecond
)

// drive has some sessions step for a moment.
func drive(t *testing.T, door string, target load.Target) error {
	t.Helper()
	d, err := load.DoorOf(door)
	if err != nil {
		t.Fatal(err)
	}
	g, err := load.Open(t.Context(), d, target, sessions)
	if err != nil {
		return err
	}
	defer g.Cut()
	r := load.NewRecorder()
	if _, err := g.Run(t.Context(), turn, r); err != nil {
		return err
	}
	if sum := r.Sum(); sum.Count < sessions || sum.P50 <= 0 || sum.P99 < sum.P50 || sum.Max < sum.P99 {
		t.Errorf("the latencies are %+v", sum)
	}
	return g.Close()
}

var sizes = []int{wire.MinText, 4 << 10, 1 << 20}

func TestEveryDoorOfOurs(t *testing.T) {
	s := start(t, "ours", "-max-sessions", "64")
	for _, door := range load.Doors {
		for _, size := range sizes {
			if err := drive(t, door.Name, load.Target{Addr: s.Addr, Size: size}); err != nil {
				t.Errorf("%s, %d bytes: %v", door.Name, size, err)
			}
		}
	}
}

func TestTheOthersDoors(t *testing.T) {
	for _, test := range []struct {
		server, door, path string
		bare               bool
	}{
		{"floor", "ws-step", "", true},
		{"httpecho", "post-mcp", "/bare", true},
		{"httpecho", "streamable", "", true},
		{"gosdk", "streamable", "", false},
		{"mcpgo", "streamable", "", false},
	} {
		t.Run(test.server+" "+test.door, func(t *testing.T) {
			s := start(t, test.server)
			for _, size := range sizes {
				if err := drive(t, test.door, load.Target{Addr: s.Addr, Path: test.path, Bare: test.bare, Size: size}); err != nil {
					t.Errorf("%d bytes: %v", size, err)
				}
			}
		})
	}
}

// TestFloorsAnswerAlike: the servers of least work write what ours does, byte for byte.
func TestFloorsAnswerAlike(t *testing.T) {
	ours, floor, echo := start(t, "ours"), start(t, "floor"), start(t, "httpecho")
	_, text := wire.Tag(1, 2), wire.Text(wire.Tag(1, 2), 300)
	frame := encode(t, wire.NewStepFrame(text))
	equal(t, askSocket(t, ours.Addr, frame), askSocket(t, floor.Addr, frame))
	call := encode(t, wire.NewCall("", text, 5))
	equal(t, post(t, ours.Addr+"/mcp", call), post(t, echo.Addr+"/bare", call))
}

func encode(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func equal(t *testing.T, ours, theirs []byte) {
	t.Helper()
	if !bytes.Equal(ours, theirs) {
		t.Errorf("ours answers\n%s\nthe floor\n%s", ours, theirs)
	}
}

func askSocket(t *testing.T, addr string, frame []byte) []byte {
	t.Helper()
	conn, _, err := websocket.Dial(t.Context(), "ws://"+addr+"/ws", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.CloseNow()
	if err := conn.Write(t.Context(), websocket.MessageText, frame); err != nil {
		t.Fatal(err)
	}
	_, reply, err := conn.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return reply
}

func post(t *testing.T, url string, body []byte) []byte {
	t.Helper()
	res, err := http.Post("http://"+url, "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestWrongRepliesAreSeen drives servers that err in the reply to some call.
func TestWrongRepliesAreSeen(t *testing.T) {
	var previous []byte
	for name, lie := range map[string]func(n int, reply []byte) []byte{
		"another's reply": func(n int, reply []byte) []byte {
			reply, previous = previous, reply
			if n != 20 {
				return previous
			}
			return reply
		},
		"one byte":   func(_ int, reply []byte) []byte { return bytes.Replace(reply, []byte("eels"), []byte("eals"), 1) },
		"cut short":  func(_ int, reply []byte) []byte { return reply[:len(reply)-1] },
		"goes on":    func(_ int, reply []byte) []byte { return append(reply, ' ') },
		"another id": func(_ int, reply []byte) []byte { return bytes.Replace(reply, []byte(`"id":1`), []byte(`"id":2`), 1) },
		"an error": func(int, []byte) []byte {
			return []byte(`{"jsonrpc":"2.0","id":100000020,"error":{"code":-32603,"message":"no"}}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			calls := 0
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				var c wire.Call
				if err := json.NewDecoder(r.Body).Decode(&c); err != nil {
					t.Error(err)
				}
				reply, err := json.Marshal(wire.NewBareReply(c))
				if err != nil {
					t.Error(err)
				}
				if calls++; calls >= 20 || name == "another's reply" {
					reply = lie(calls, reply)
				}
				w.Write(reply)
			}))
			defer server.Close()
			door, err := load.DoorOf("post-mcp")
			if err != nil {
				t.Fatal(err)
			}
			g, err := load.Open(t.Context(), door, load.Target{Addr: strings.TrimPrefix(server.URL, "http://"), Size: 200, Bare: true}, 1)
			if err != nil {
				t.Fatal(err)
			}
			defer g.Cut()
			_, err = g.Run(t.Context(), time.Minute, load.NewRecorder())
			t.Log(err)
			if err == nil {
				t.Error("nothing was noticed")
			}
		})
	}
}

// TestWrongFirstReplyIsSeen: a server that is wrong from the beginning teaches nothing.
func TestWrongFirstReplyIsSeen(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, `{"jsonrpc":"2.0","id":1,"result":{"content":[],"data":"no"}}`)
	}))
	defer server.Close()
	if err := drive(t, "post-mcp", load.Target{Addr: strings.TrimPrefix(server.URL, "http://"), Size: 200, Bare: true}); err == nil {
		t.Error("nothing was noticed")
	}
}

func TestChurn(t *testing.T) {
	s := start(t, "ours")
	door, err := load.DoorOf("ws-step")
	if err != nil {
		t.Fatal(err)
	}
	c, err := load.NewClients(t.Context(), door, load.Target{Addr: s.Addr, Size: wire.MinText})
	if err != nil {
		t.Fatal(err)
	}
	r := load.NewRecorder()
	if _, err := c.Churn(t.Context(), sessions, turn, r); err != nil {
		t.Fatal(err)
	}
	if r.Sum().Count < sessions {
		t.Errorf("%d sessions were opened", r.Sum().Count)
	}
}
