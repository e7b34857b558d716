package mount_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/openenv-go/openenv-go/pkg/gym"
	"github.com/openenv-go/openenv-go/pkg/mount"
	"github.com/openenv-go/openenv-go/pkg/tools"
)

type desk struct{}

// deskEnv has the mounts and no tools of its own.
func deskEnv(mounts ...gym.Mount) gym.Environment[*desk] {
	return gym.Environment[*desk]{
		Name:   "desk",
		New:    func(context.Context, *gym.Session) (*desk, error) { return &desk{}, nil },
		Mounts: mounts,
	}
}

func compile(t *testing.T, env gym.Definition, j journal) *gym.Class {
	t.Helper()
	class, err := env.Compile(gym.WithLog(t.Context(), j.logger()), tools.ModeSimulation)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(class.Close)
	return class
}

func open(t *testing.T, class *gym.Class, j journal) *gym.Instance {
	t.Helper()
	i, err := class.Open(t.Context(), gym.SessionOptions{ID: "s", Logger: j.logger()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := i.Close(); err != nil {
			t.Error(err)
		}
	})
	return i
}

// use calls a tool and returns its data, or the type of its error.
func use(t *testing.T, i *gym.Instance, tool string) string {
	t.Helper()
	a, _, _ := i.CallTool(t.Context(), &mcp.CallToolRequest{Params: &mcp.CallToolParamsRaw{Name: tool}, Extra: &mcp.RequestExtra{}})
	if a.Err != nil {
		return string(a.Err.Type) + ": " + a.Err.Message
	}
	return string(a.Data)
}

func want(t *testing.T, got, words string) {
	t.Helper()
	if !strings.Contains(got, words) {
		t.Errorf("got %s; want %q in it", got, words)
	}
}

// Each session has a process of its own, and loses it alone; what is shared is one for all.
func TestSessionsAndProcesses(t *testing.T) {
	j := newJournal()
	class := compile(t, deskEnv(
		gym.Mount{Prefix: "own", Connect: child(t, "plain")},
		gym.Mount{Prefix: "again", Connect: child(t, "plain"), Restart: true},
		gym.Mount{Prefix: "all", Connect: child(t, "plain"), Shared: true},
	), j)
	a, b := open(t, class, j), open(t, class, j)
	for _, step := range []struct {
		on         *gym.Instance
		tool, want string
	}{
		{a, "own_count", `{"n":1}`}, {a, "own_count", `{"n":2}`}, {b, "own_count", `{"n":1}`},
		{a, "all_count", `{"n":1}`}, {b, "all_count", `{"n":2}`},
		{a, "own_crash", "transport_error"}, {a, "own_count", "in a new session"}, {b, "own_count", `{"n":2}`},
		{a, "again_count", `{"n":1}`}, {a, "again_crash", "starts the server again, without its state"}, {a, "again_count", `{"n":1}`},
		{a, "all_crash", "the next call connects again"}, {b, "all_count", `{"n":1}`}, {a, "all_count", `{"n":2}`},
	} {
		want(t, use(t, step.on, step.tool), step.want)
	}
}

// A reset makes a lost connection again, and one that must not outlive its episode.
func TestResetsRenew(t *testing.T) {
	j := newJournal()
	class := compile(t, deskEnv(
		gym.Mount{Prefix: "kept", Connect: child(t, "plain")},
		gym.Mount{Prefix: "new", Connect: child(t, "plain"), PerEpisode: true},
	), j)
	i := open(t, class, j)
	reset := func() {
		t.Helper()
		if _, err := i.Reset(t.Context(), gym.ResetParams{}); err != nil {
			t.Fatal(err)
		}
	}
	reset()
	want(t, use(t, i, "kept_count"), `{"n":1}`)
	want(t, use(t, i, "new_count"), `{"n":1}`)
	reset()
	want(t, use(t, i, "kept_count"), `{"n":2}`)
	want(t, use(t, i, "new_count"), `{"n":1}`)
	want(t, use(t, i, "kept_crash"), "until a reset")
	want(t, use(t, i, "kept_count"), "until a reset")
	reset()
	want(t, use(t, i, "kept_count"), `{"n":1}`)
}

// Sessions call a shared server side by side.
func TestSharedServersServeSideBySide(t *testing.T) {
	const sessions = 4
	var arrived sync.WaitGroup
	arrived.Add(sessions)
	url := startHTTP(t, "127.0.0.1:0", func(s *mcp.Server) {
		s.AddTool(&mcp.Tool{Name: "meet", InputSchema: map[string]any{"type": "object"}}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			arrived.Done()
			arrived.Wait() // none returns before all have come
			return &mcp.CallToolResult{StructuredContent: map[string]any{"met": true}}, nil
		})
	}).url
	j := newJournal()
	class := compile(t, deskEnv(gym.Mount{Prefix: "x", Connect: mount.URL(url), Shared: true}), j)
	var wg sync.WaitGroup
	for range sessions {
		i := open(t, class, j)
		wg.Go(func() { want(t, use(t, i, "x_meet"), `{"met":true}`) })
	}
	wg.Wait()
}

// A web is an MCP server on loopback that can be stopped.
type web struct {
	url  string
	addr string
	cut  func() // closes the listener and all connections
	stop func() // and waits for what the server still does
}

func startHTTP(t *testing.T, addr string, fill func(*mcp.Server)) web {
	t.Helper()
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	s := mcp.NewServer(&mcp.Implementation{Name: "web", Version: "1"}, nil)
	fill(s)
	srv := &http.Server{Handler: mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = srv.Serve(ln)
	}()
	stop := sync.OnceFunc(func() {
		srv.Close()
		<-done
		for ss := range s.Sessions() {
			ss.Close()
		}
	})
	t.Cleanup(stop)
	return web{"http://" + ln.Addr().String() + "/mcp", ln.Addr().String(), func() { srv.Close() }, stop}
}

func counter(s *mcp.Server) {
	n := 0
	s.AddTool(&mcp.Tool{Name: "count", InputSchema: map[string]any{"type": "object"}}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		n++
		return &mcp.CallToolResult{StructuredContent: map[string]any{"n": n}}, nil
	})
}

// A server that restarts no longer knows its sessions: 404. What is shared goes on by itself, a session's own has lost its
// state.
func TestHTTPServerRestarts(t *testing.T) {
	first := startHTTP(t, "127.0.0.1:0", counter)
	j := newJournal()
	class := compile(t, deskEnv(
		gym.Mount{Prefix: "own", Connect: mount.URL(first.url)},
		gym.Mount{Prefix: "all", Connect: mount.URL(first.url), Shared: true},
	), j)
	i := open(t, class, j)
	want(t, use(t, i, "own_count"), `{"n":1}`)
	want(t, use(t, i, "all_count"), `{"n":2}`)
	first.stop()
	down := use(t, i, "all_count")
	want(t, down, `transport_error: tool "all_count": its server did not answer: `)
	if strings.Contains(down, first.addr) {
		t.Errorf("the caller learns the address: %s", down)
	}
	startHTTP(t, first.addr, counter)
	want(t, use(t, i, "all_count"), `{"n":1}`)
	want(t, use(t, i, "own_count"), "its server did not answer: it no longer knows the session; the server's state is lost")
	want(t, use(t, i, "own_count"), "transport_error")
	want(t, use(t, i, "all_count"), `{"n":2}`)
}

// A server that ends while a tool runs fails the call at once.
func TestHTTPServerEndsMidCall(t *testing.T) {
	started, release := make(chan struct{}), make(chan struct{})
	defer close(release)
	server := startHTTP(t, "127.0.0.1:0", func(s *mcp.Server) {
		s.AddTool(&mcp.Tool{Name: "hang", InputSchema: map[string]any{"type": "object"}}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			close(started)
			<-release
			return &mcp.CallToolResult{}, nil
		})
	})
	up, err := mount.URL(server.url).Connect(t.Context(), newJournal().logger())
	if err != nil {
		t.Fatal(err)
	}
	defer up.Close()
	go func() {
		<-started
		server.cut()
	}()
	if err := call(t, up, "hang"); typeOf(err) != tools.TransportError || errors.Is(err, gym.ErrNotSent) {
		t.Errorf("got %v", err)
	}
}

// A server that takes connections and never answers is given up in time.
func TestHTTPServerThatDoesNotAnswer(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	ctx, cancel := context.WithCancelCause(t.Context())
	tooLate := errors.New("too late")
	go func() {
		conn, err := ln.Accept()
		cancel(tooLate)
		<-t.Context().Done()
		if err == nil {
			conn.Close()
		}
	}()
	if _, err := mount.URL("http://"+ln.Addr().String()).Connect(ctx, newJournal().logger()); !errors.Is(err, tooLate) {
		t.Error(err)
	}
}

func TestHTTPHeaders(t *testing.T) {
	var mu sync.Mutex
	seen := map[string]bool{}
	s := mcp.NewServer(&mcp.Implementation{Name: "web", Version: "1"}, nil)
	counter(s)
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		seen[fmt.Sprint(r.Method, " ", r.Header.Get("Authorization"), " ", r.Header.Get("Mcp-Protocol-Version"))] = true
		mu.Unlock()
		handler.ServeHTTP(w, r)
	})}
	go func() { _ = srv.Serve(ln) }()
	defer srv.Close()
	up, err := mount.HTTP{URL: "http://" + ln.Addr().String(), Header: http.Header{"authorization": {"Bearer x"}}}.Connect(t.Context(), newJournal().logger())
	if err != nil {
		t.Fatal(err)
	}
	if err := call(t, up, "count"); err != nil {
		t.Error(err)
	}
	if err := up.Close(); err != nil {
		t.Error(err)
	}
	mu.Lock()
	defer mu.Unlock()
	all := map[string]bool{"POST Bearer x ": true, "POST Bearer x 2025-11-25": true, "DELETE Bearer x 2025-11-25": true}
	if diff := cmp.Diff(all, seen); diff != "" {
		t.Error(diff)
	}
}

// A session that cannot be opened leaves nothing behind.
func TestSessionThatDoesNotOpen(t *testing.T) {
	var order []string
	opened := 0
	env := deskEnv(
		gym.Mount{Prefix: "good", Connect: child(t, "plain")},
		gym.Mount{Prefix: "bad", Connect: connector(func(ctx context.Context) (gym.Upstream, error) {
			if opened++; opened > 1 {
				return child(t, "dead").Connect(ctx, newJournal().logger())
			}
			return child(t, "plain").Connect(ctx, newJournal().logger())
		})},
	)
	env.Close = func(*desk) error { order = append(order, "closed"); return nil }
	class := compile(t, env, newJournal())
	_, err := class.Open(t.Context(), gym.SessionOptions{})
	if err == nil || !strings.Contains(err.Error(), `the mount "bad"`) || !strings.Contains(err.Error(), "exit status 4") {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"closed"}, order); diff != "" {
		t.Error(diff)
	}
}
