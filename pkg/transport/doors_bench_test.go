package transport

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/openenv-go/openenv-go/pkg/gym"
	"github.com/openenv-go/openenv-go/pkg/session"
	"github.com/openenv-go/openenv-go/pkg/tools"
)

// What the doors cost without a network: reading a frame, writing one, and whole requests by HTTP.

type doorEcho struct{}

type doorMessage struct {
	Message string `json:"message"`
}

func (*doorEcho) echo(_ context.Context, in doorMessage) (string, error) { return in.Message, nil }

func benchServer(b testing.TB) *Server {
	b.Helper()
	srv, err := New(b.Context(), gym.Environment[*doorEcho]{
		Name:  "bench",
		New:   func(context.Context, *gym.Session) (*doorEcho, error) { return &doorEcho{}, nil },
		Tools: tools.New(tools.Func("echo", "Say it back.", (*doorEcho).echo)),
	}, Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := srv.Close(context.Background()); err != nil {
			b.Error(err)
		}
	})
	return srv
}

const benchAction = `{"type":"call_tool","tool_name":"echo","arguments":{"message":"hello world, this is a message"}}`

func BenchmarkParseFrame(b *testing.B) {
	srv, text := benchServer(b), []byte(`{"type":"step","data":`+benchAction+`}`)
	b.ReportAllocs()
	for b.Loop() {
		q, err := srv.parseFrame(text)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := srv.class.ParseAction(q.data); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEncodeFrame(b *testing.B) {
	srv := benchServer(b)
	live, err := srv.sessions.Open(b.Context(), session.ByGymSocket, "")
	if err != nil {
		b.Fatal(err)
	}
	action, err := srv.class.ParseAction([]byte(benchAction))
	if err != nil {
		b.Fatal(err)
	}
	o, err := live.Step(b.Context(), action, 0)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		encodeFrame(frame{Type: "observation", Data: newObservationData(o)})
	}
}

// BenchmarkPost is requests by HTTP, from the handler's call to its return. Those without a session build a temporary one.
func BenchmarkPost(b *testing.B) {
	srv := benchServer(b)
	live, err := srv.sessions.Open(b.Context(), session.ByCreate, "")
	if err != nil {
		b.Fatal(err)
	}
	rpc := func(session string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{` + session + `"name":"echo","arguments":{"message":"hello world, this is a message"}}}`
	}
	for _, c := range []struct{ name, path, body string }{
		{"door=mcp", "/mcp", rpc(`"session_id":"` + live.ID + `",`)},
		{"door=mcp-temporary", "/mcp", rpc("")},
		{"door=step", "/step?session_id=" + live.ID, `{"action":` + benchAction + `}`},
		{"door=step-temporary", "/step", `{"action":` + benchAction + `}`},
	} {
		b.Run(c.name, func(b *testing.B) { benchmarkPost(b, srv, c.path, c.body, nil) })
	}
	b.Run("door=streamable", func(b *testing.B) {
		w := httptest.NewRecorder()
		srv.ServeHTTP(w, benchRequest("/mcp", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}`, nil))
		agent := http.Header{"Mcp-Session-Id": w.Header()["Mcp-Session-Id"], "Mcp-Protocol-Version": {"2025-11-25"}}
		srv.ServeHTTP(httptest.NewRecorder(), benchRequest("/mcp", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, agent))
		benchmarkPost(b, srv, "/mcp", rpc(""), agent)
	})
}

func benchRequest(path, body string, header http.Header) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "http://localhost"+path, strings.NewReader(body))
	r.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
	for name, values := range header {
		r.Header[name] = values
	}
	return r
}

// A timedRecorder takes deadlines, as the writers of a network do: errors would cost more.
type timedRecorder struct{ *httptest.ResponseRecorder }

func (timedRecorder) SetReadDeadline(time.Time) error  { return nil }
func (timedRecorder) SetWriteDeadline(time.Time) error { return nil }

func benchmarkPost(b *testing.B, srv *Server, path, body string, header http.Header) {
	// The request is made anew each time, as net/http does; the answer goes into one buffer.
	var answer bytes.Buffer
	b.ReportAllocs()
	for b.Loop() {
		answer.Reset()
		w := timedRecorder{&httptest.ResponseRecorder{Body: &answer}}
		srv.ServeHTTP(w, benchRequest(path, body, header))
		if w.Code != http.StatusOK {
			b.Fatal(w.Code, answer.String())
		}
	}
	if !json.Valid(answer.Bytes()) || !strings.Contains(answer.String(), "hello world, this is a message") {
		b.Fatalf("the answer is %s", answer.Bytes())
	}
}
