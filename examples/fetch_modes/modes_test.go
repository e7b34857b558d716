package main

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/openenv-go/openenv-go/pkg/gym/gymtest"
	"github.com/openenv-go/openenv-go/pkg/tools"
	"github.com/openenv-go/openenv-go/pkg/transport"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestEnv(t *testing.T) {
	gymtest.Run(t, Env,
		gymtest.Script(
			gymtest.Call("list_pages", nil),
			gymtest.Call("fetch", Fetch{URL: "http://museum.example/old-hours", MaxBytes: 1000, Format: formatMarkdown}),
			gymtest.Call("fetch", Fetch{URL: "http://museum.example/archive", MaxBytes: 1000, Format: formatText}),
			gymtest.Call("fetch", Fetch{URL: "http://127.0.0.1/", MaxBytes: 1000, Format: "raw"}),
			gymtest.Call("answer", Answer{"Pear wood."}),
			gymtest.Call("answer", Answer{"Oak."}),
		),
		gymtest.Generate(2),
	)
}

// serve serves the environment, before the network of w, in a mode.
func serve(t *testing.T, w *world, mode tools.Mode) (url string) {
	t.Helper()
	srv, err := transport.New(t.Context(), environment(w.guard), transport.Options{Mode: mode})
	if err != nil {
		t.Fatal(err)
	}
	door := httptest.NewServer(srv)
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		srv.Close(context.Background())
		door.Close()
	})
	return door.URL
}

// rpc posts a request and reads the answer into out.
func rpc(t *testing.T, url, request string, out any) {
	t.Helper()
	res, err := http.Post(url+"/mcp", "application/json", strings.NewReader(request))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(body, out); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
}

// TestToolsOfEachMode: a tool of the other mode is neither listed nor found.
func TestToolsOfEachMode(t *testing.T) {
	for mode, c := range map[tools.Mode]struct{ here, elsewhere []string }{
		tools.ModeSimulation: {[]string{"answer", "execute_code", "fetch", "list_pages"}, []string{"head"}},
		tools.ModeProduction: {[]string{"execute_code", "fetch", "head"}, []string{"answer", "list_pages"}},
	} {
		url := serve(t, newWorld(t, "", http.HandlerFunc(hello)), mode)
		var listed struct {
			Result struct{ Tools []struct{ Name string } }
		}
		rpc(t, url, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, &listed)
		var names []string
		for _, tool := range listed.Result.Tools {
			names = append(names, tool.Name)
		}
		slices.Sort(names)
		if !slices.Equal(names, c.here) {
			t.Errorf("%s lists %v; want %v", mode, names, c.here)
		}
		for _, name := range c.elsewhere {
			var answer struct {
				Error struct {
					Code int
					Data struct {
						ErrorType tools.ErrorType `json:"error_type"`
					}
				}
			}
			rpc(t, url, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"`+name+`","arguments":{}}}`, &answer)
			if answer.Error.Code != -32602 || answer.Error.Data.ErrorType != tools.ToolNotFound {
				t.Errorf("%s in %s: %+v", name, mode, answer)
			}
		}
	}
}

// TestFetchInEachMode: one tool, the recording in simulation and the network in production.
func TestFetchInEachMode(t *testing.T) {
	for mode, want := range map[tools.Mode]string{tools.ModeSimulation: "What the sea moves, we keep.", tools.ModeProduction: "hello"} {
		w := newWorld(t, "", http.HandlerFunc(hello))
		url := serve(t, w, mode)
		var answer struct {
			Result struct {
				IsError           bool
				StructuredContent Page
			}
		}
		rpc(t, url, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"fetch","arguments":{"url":"http://museum.example/"}}}`, &answer)
		if answer.Result.IsError || !strings.Contains(answer.Result.StructuredContent.Text, want) {
			t.Errorf("%s: %+v", mode, answer)
		}
		if (len(w.dialled) > 0) != (mode == tools.ModeProduction) {
			t.Errorf("%s dialled %v", mode, w.dialled)
		}
	}
}

// A watched connection tells of its close.
type watched struct {
	net.Conn
	closed chan<- struct{}
}

func (c watched) Close() error {
	c.closed <- struct{}{}
	return c.Conn.Close()
}

// TestConnectionsEndWithTheirSession: a call without a session has one of its own, which ends when it is answered, long
// before the connection that it leaves would be given up.
func TestConnectionsEndWithTheirSession(t *testing.T) {
	w := newWorld(t, "", http.HandlerFunc(hello))
	closed := make(chan struct{}, 8)
	dial := w.guard.dial
	w.guard.dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		return watched{conn, closed}, err
	}
	var answer struct{ Result struct{ IsError bool } }
	rpc(t, serve(t, w, tools.ModeProduction), `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"fetch","arguments":{"url":"http://public.test/"}}}`, &answer)
	if answer.Result.IsError {
		t.Errorf("%+v", answer)
	}
	select {
	case <-closed:
	case <-time.After(10 * time.Second):
		t.Error("the connection is open after the end of its session")
	}
}

// TestRefusedByTheDoor: the model reads why.
func TestRefusedByTheDoor(t *testing.T) {
	url := serve(t, newWorld(t, "", http.HandlerFunc(hello)), tools.ModeProduction)
	var answer struct {
		Result struct {
			IsError bool
			Content []struct{ Text string }
		}
	}
	rpc(t, url, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"fetch","arguments":{"url":"http://127.0.0.1/"}}}`, &answer)
	if !answer.Result.IsError || len(answer.Result.Content) != 1 || !strings.Contains(answer.Result.Content[0].Text, "only public hosts") {
		t.Errorf("%+v", answer)
	}
}
