package transport

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/openenv-go/openenv-go/pkg/internal/memnet"
)

// An agent that is replaced, or leaves, while its calls run gets whole answers: none is cut short.
func TestAnswersOfAnEndingAgentAreWhole(t *testing.T) {
	_, base := startLab(t, false)
	for i := range 20 {
		id := rawInitialize(t, base+"/mcp?session_id="+createSession(t, base), "2025-11-25")
		headers := []string{"Accept", "application/json, text/event-stream", "Mcp-Session-Id", id, "MCP-Protocol-Version", "2025-11-25"}
		var wg sync.WaitGroup
		begun := make(chan struct{})
		for n := range 3 {
			wg.Go(func() {
				if n == 0 {
					close(begun)
				}
				status, body := post(t, base+"/mcp", rpcCall("wait", "{}", ""), headers...) // fails the test if it is cut
				if status == http.StatusOK && !strings.Contains(body, `"id":7`) {
					t.Errorf("got %d %q", status, body)
				}
			})
		}
		<-begun
		for range i { // vary the moment
			time.Sleep(100 * time.Microsecond)
		}
		if status, _ := request(t, http.MethodDelete, base+"/mcp", "", "Mcp-Session-Id", id); status != http.StatusNoContent {
			t.Errorf("DELETE got %d", status)
		}
		wg.Wait()
	}
}

// A client that reads nothing, or sends half a body, does not make a stop a failed one.
func TestStopDoesNotWaitForIdlers(t *testing.T) {
	env := labEnv()
	stdout, stderr, stop := runMain(t, env, []string{"-addr", "127.0.0.1:0"}, nil)
	waitFor(t, "the address", func() bool { return address.MatchString(stdout.String()) })
	c, err := net.Dial("tcp", strings.TrimPrefix(address.FindString(stdout.String()), "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprintf(c, "POST /step HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\nExpect: 100-continue\r\n\r\n")
	if line, err := bufio.NewReader(c).ReadString('\n'); err != nil || !strings.Contains(line, "100 Continue") {
		t.Fatalf("got %q, %v", line, err)
	}
	if code := stop(nil); code != exitOK {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

func TestBodiesHaveTheirTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, err := New(t.Context(), labEnv(), Options{})
		if err != nil {
			t.Fatal(err)
		}
		ln := memnet.Listen()
		ctx, stop := context.WithCancel(context.Background())
		served := make(chan error, 1)
		go func() { served <- srv.Serve(ctx, ln, nil) }()
		defer func() { stop(); <-served }()
		client := &http.Client{Transport: &http.Transport{DialContext: ln.Dial}}
		defer client.CloseIdleConnections()
		for _, c := range []struct {
			path  string
			every time.Duration // a byte comes that often; 0: never
			want  time.Duration
		}{
			{"/step", 0, readTimeout},
			{"/mcp", 0, readTimeout},
			{"/step", 10 * time.Second, timeFor(100)},
		} {
			start := time.Now()
			body, feed := io.Pipe()
			var feeder sync.WaitGroup
			feeder.Go(func() {
				feed.Write([]byte(`{`))
				for c.every > 0 && time.Since(start) < time.Hour {
					time.Sleep(c.every)
					if _, err := feed.Write([]byte(" ")); err != nil {
						return
					}
				}
			})
			r, err := http.NewRequest(http.MethodPost, "http://localhost"+c.path, body)
			if err != nil {
				t.Fatal(err)
			}
			r.ContentLength = 100
			res, err := client.Do(r)
			took := time.Since(start)
			body.CloseWithError(errors.New("enough"))
			feeder.Wait()
			if err == nil {
				res.Body.Close()
				if res.StatusCode != http.StatusRequestTimeout {
					t.Errorf("%s: got %d", c.path, res.StatusCode)
				}
			}
			if took < c.want || took > c.want+10*time.Second {
				t.Errorf("%s, a byte every %v: ended after %v, want %v", c.path, c.every, took, c.want)
			}
		}
	})
}

func TestAmbiguousRequestsAreRefused(t *testing.T) {
	srv, base := startLab(t, false)
	id := createSession(t, base)
	for _, query := range []string{"session_id=%zz", "a;session_id=" + id, "session_id=" + id + "&session_id=" + id} {
		for _, path := range []string{"/state", "/ws", "/mcp"} {
			if status, reply := request(t, http.MethodGet, base+path+"?"+query, ""); status != http.StatusBadRequest || !strings.Contains(reply, "query") {
				t.Errorf("%s?%s: got %d %s", path, query, status, reply)
			}
		}
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+"/health", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header["Origin"] = []string{base, "http://evil.example"}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusForbidden {
		t.Errorf("two Origins: got %d", res.StatusCode)
	}
	for _, path := range []string{"/step", "/mcp"} {
		if status, reply := post(t, base+path, "{}", "Content-Encoding", "gzip"); status != http.StatusUnsupportedMediaType || !strings.Contains(reply, "Content-Encoding") {
			t.Errorf("%s: got %d %s", path, status, reply)
		}
	}
	active(t, srv, 1)
}

func TestLogLinesAreBounded(t *testing.T) {
	var buf lines
	log := slog.New(slog.NewTextHandler(&buf, &slog.HandlerOptions{ReplaceAttr: clip}))
	huge := strings.Repeat("é", 1<<20)
	log.Info(huge, "error", errors.New(huge), "path", huge, "stack", huge)
	if n := len(buf.String()); n > 100<<10 || strings.Count(buf.String(), "\n") != 1 {
		t.Errorf("a line of %d bytes", n)
	}
}

// A close frame is a goodbye: the slot is free at once, however long the client takes with the socket's own close.
func TestCloseFrameFreesTheSlotAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, open := inMemory(t, Options{})
		c := open()
		if err := c.Write(context.Background(), 1, []byte(`{"type":"close"}`)); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		synctest.Wait()
		active(t, srv, 0)
		if d := time.Since(start); d != 0 {
			t.Errorf("it took %v", d)
		}
	})
}

// What hurries an answer may come when the answer is out: an agent ends just then. The next request on the connection, which
// may be anybody's, has its own time.
func TestLateHurryLeavesTheNextRequestAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, err := New(t.Context(), labEnv(), Options{})
		if err != nil {
			t.Fatal(err)
		}
		var answers []*slowWriter
		srv.public.mux.HandleFunc("POST /probe", func(w http.ResponseWriter, _ *http.Request) {
			answers = append(answers, w.(*slowWriter))
			w.WriteHeader(http.StatusAccepted) // no body, as for a notification
		})
		ln := memnet.Listen()
		ctx, stop := context.WithCancel(context.Background())
		served := make(chan error, 1)
		go func() { served <- srv.Serve(ctx, ln, nil) }()
		defer func() { stop(); <-served }()
		dials := 0
		client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			dials++
			return ln.Dial(ctx, network, addr)
		}}}
		defer client.CloseIdleConnections()
		for range 3 {
			res, err := client.Post("http://localhost/probe", "", nil)
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			synctest.Wait()
			for _, w := range answers {
				w.hurry()
			}
			time.Sleep(2 * hurryTime)
		}
		if dials != 1 {
			t.Errorf("%d connections for requests one after the other", dials)
		}
	})
}

// timedWriter notes the deadline that it was given last.
type timedWriter struct {
	*httptest.ResponseRecorder
	deadline time.Time
}

func (w *timedWriter) SetWriteDeadline(t time.Time) error { w.deadline = t; return nil }

// An answer without a body has its time too: a peer that sends on and on and reads nothing must not hold its goroutine.
func TestEveryAnswerHasItsTime(t *testing.T) {
	srv, err := New(t.Context(), labEnv(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer mustClose(t, srv)
	for _, c := range []struct {
		method, path, body string
		status             int
	}{
		{http.MethodPost, "/mcp", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, http.StatusAccepted},
		{http.MethodGet, "/", "", http.StatusFound},
		{http.MethodGet, "/health", "", http.StatusOK},
		{http.MethodGet, "/nosuch", "", http.StatusNotFound},
	} {
		w := &timedWriter{ResponseRecorder: httptest.NewRecorder()}
		srv.ServeHTTP(w, httptest.NewRequest(c.method, c.path, strings.NewReader(c.body)))
		if w.Code != c.status || time.Until(w.deadline) < writeTimeout/2 {
			t.Errorf("%s %s got %d and the deadline %v", c.method, c.path, w.Code, w.deadline)
		}
	}
}
