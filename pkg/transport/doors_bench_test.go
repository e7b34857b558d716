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

// A postCase is a request by HTTP, and how many objects it may allocate, the server's part and the test's together: what it
// was when it was last looked at, and a few. 0 is any number.
type postCase struct {
	name, path, body string
	header           http.Header
	allocs           float64
}

func postCases(tb testing.TB, srv *Server) []postCase {
	live, err := srv.sessions.Open(tb.Context(), session.ByCreate, "")
	if err != nil {
		tb.Fatal(err)
	}
	w := httptest.NewRecorder()
	srv.ServeHTTP(w, benchRequest("/mcp", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}`, nil))
	agent := http.Header{"Mcp-Session-Id": w.Header()["Mcp-Session-Id"], "Mcp-Protocol-Version": {"2025-11-25"}}
	srv.ServeHTTP(httptest.NewRecorder(), benchRequest("/mcp", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, agent))
	rpc := func(session string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{` + session + `"name":"echo","arguments":{"message":"hello world, this is a message"}}}`
	}
	return []postCase{
		{"door=mcp", "/mcp", rpc(`"session_id":"` + live.ID + `",`), nil, 63},
		{"door=mcp-temporary", "/mcp", rpc(""), nil, 0},
		{"door=step", "/step?session_id=" + live.ID, `{"action":` + benchAction + `}`, nil, 0},
		{"door=step-temporary", "/step", `{"action":` + benchAction + `}`, nil, 0},
		{"door=streamable", "/mcp", rpc(""), agent, 69},
	}
}

// BenchmarkPost is requests by HTTP, from the handler's call to its return. Those without a session build a temporary one.
func BenchmarkPost(b *testing.B) {
	srv := benchServer(b)
	for _, c := range postCases(b, srv) {
		b.Run(c.name, func(b *testing.B) {
			var answer bytes.Buffer
			b.ReportAllocs()
			for b.Loop() {
				c.post(b, srv, &answer)
			}
			c.check(b, answer.Bytes())
		})
	}
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

// post makes the request anew, as net/http does; the answer goes into one buffer.
func (c postCase) post(tb testing.TB, srv *Server, answer *bytes.Buffer) {
	answer.Reset()
	w := timedRecorder{&httptest.ResponseRecorder{Body: answer}}
	srv.ServeHTTP(w, benchRequest(c.path, c.body, c.header))
	if w.Code != http.StatusOK {
		tb.Fatal(w.Code, answer.String())
	}
}

func (c postCase) check(tb testing.TB, answer []byte) {
	if !json.Valid(answer) || !strings.Contains(string(answer), "hello world, this is a message") {
		tb.Fatalf("the answer is %s", answer)
	}
}
