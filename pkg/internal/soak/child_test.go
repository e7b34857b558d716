package soak

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/openenv-go/openenv-go/pkg/gym"
	"github.com/openenv-go/openenv-go/pkg/session"
	"github.com/openenv-go/openenv-go/pkg/tools"
	"github.com/openenv-go/openenv-go/pkg/transport"
)

// The server's process: the test binary, started again with childVariable set. It ends when its standard input does.
const childVariable = "OPENENV_SOAK_CHILD"

// Limits of the server, small enough to be met all the time.
const (
	maxSessions = 64
	queueLength = 16
	queueWait   = time.Second
	idleTimeout = 1500 * time.Millisecond
	failEvery   = 41 // every so many environments one cannot be built
)

// A report is what the server tells of itself. What the system does not tell is -1.
type report struct {
	Goroutines, FDs, Active int
	RSS, Heap               int64
	Opened, Closed, Failed  int64 // environments
	Charges                 int   // that nobody has asked for
	Events                  map[string]int
	Odd                     []string // lines of the log that should not be there
}

// A book is what the server's process knows of all its environments.
type book struct {
	built, opened, closed, failed atomic.Int64

	mu      sync.Mutex // guards what follows
	charges map[string]int
	events  map[string]int
	odd     []string
}

// A ledger is a session's state.
type ledger struct {
	book  *book
	total int
}

type amount struct {
	N int `json:"n"`
}

type keyed struct {
	Key string `json:"key,omitempty"`
	MS  int    `json:"ms,omitempty"`
}

func (l *ledger) add(_ context.Context, in amount) (int, error) {
	l.total += in.N
	return l.total, nil
}

// charge has an effect outside of its session, after a while.
func (l *ledger) charge(ctx context.Context, in keyed) (string, error) {
	select {
	case <-time.After(time.Duration(in.MS) * time.Millisecond):
	case <-ctx.Done():
		return "", ctx.Err()
	}
	l.book.mu.Lock()
	defer l.book.mu.Unlock()
	l.book.charges[in.Key]++
	return fmt.Sprintf("%s: %d", in.Key, l.book.charges[in.Key]), nil
}

// wait waits for its context to end, or for so long if it is told.
func (l *ledger) wait(ctx context.Context, in keyed) error {
	var enough <-chan time.Time
	if in.MS > 0 {
		enough = time.After(time.Duration(in.MS) * time.Millisecond)
	}
	select {
	case <-enough:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// deaf works for a while, whatever its context says.
func (l *ledger) deaf(_ context.Context, in keyed) error {
	time.Sleep(time.Duration(in.MS) * time.Millisecond)
	return nil
}

func (l *ledger) big(_ context.Context, in amount) (string, error) {
	b := make([]byte, in.N)
	for i := range b {
		b[i] = byte('a' + i%26)
	}
	return string(b), nil
}

func (l *ledger) env(b *book) gym.Environment[*ledger] {
	return gym.Environment[*ledger]{
		Name: "ledger",
		New: func(context.Context, *gym.Session) (*ledger, error) {
			if b.built.Add(1)%failEvery == 0 {
				b.failed.Add(1)
				return nil, errors.New("no ledger today")
			}
			b.opened.Add(1)
			return &ledger{book: b}, nil
		},
		Tools: tools.New(
			tools.Func("add", "", (*ledger).add), tools.Func("charge", "", (*ledger).charge), tools.Func("big", "", (*ledger).big),
			tools.Do("wait", "", (*ledger).wait), tools.Do("deaf", "", (*ledger).deaf),
			tools.Do("boom", "", func(*ledger, context.Context, tools.None) error { panic("boom") }),
			tools.Do("fail", "", func(*ledger, context.Context, tools.None) error { return errors.New("disk on fire") }),
			tools.Do("refuse", "", func(*ledger, context.Context, tools.None) error { return tools.Fail("no such page") }),
		),
		Reset: gym.Reset(func(l *ledger, _ context.Context, _ gym.ResetRequest[tools.None]) (tools.None, error) {
			l.total = 0
			return tools.None{}, nil
		}),
		After: func(_ *ledger, _ context.Context, call gym.ToolCall) gym.Score {
			return gym.Score{Reward: gym.Bool(call.Err == nil && call.Name == "add")}
		},
		Close: func(*ledger) error { b.closed.Add(1); return nil },
	}
}

// Handle counts the events of the log.
func (b *book) Handle(_ context.Context, r slog.Record) error {
	event, text := "", r.Level.String()
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "event" {
			event = a.Value.String()
		}
		text += fmt.Sprintf(" %s=%.300s", a.Key, a.Value)
		return true
	})
	b.mu.Lock()
	defer b.mu.Unlock()
	b.events[event]++
	// Errors are bugs, save what the environment itself does wrong.
	if (r.Level >= slog.LevelError && event != "tool_panic" || event == "") && len(b.odd) < 20 {
		b.odd = append(b.odd, r.Message+": "+text)
	}
	return nil
}

func (b *book) Enabled(context.Context, slog.Level) bool { return true }
func (b *book) WithAttrs([]slog.Attr) slog.Handler       { return b }
func (b *book) WithGroup(string) slog.Handler            { return b }

func runChild() int {
	b := &book{charges: map[string]int{}, events: map[string]int{}}
	srv, err := transport.New(context.Background(), (&ledger{}).env(b), transport.Options{
		Logger: slog.New(b), Grace: 5 * time.Second,
		Sessions: session.Options{Max: maxSessions, Queue: queueLength, QueueWait: queueWait, IdleTimeout: idleTimeout},
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	listen := func() net.Listener {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			panic(err)
		}
		return ln
	}
	doors, desk := listen(), listen()
	go http.Serve(desk, b.desk(srv))
	ctx, stop := context.WithCancelCause(context.Background())
	go func() {
		io.Copy(io.Discard, os.Stdin)
		stop(transport.ErrDrain)
	}()
	told := &servingListener{Listener: doors, tell: sync.OnceFunc(func() {
		json.NewEncoder(os.Stdout).Encode([]string{doors.Addr().String(), desk.Addr().String()})
	})}
	if err := srv.Serve(ctx, told, nil); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// A servingListener tells when it is first asked for a connection. By then every goroutine of an idle server runs, so that a
// count of them is one to come back to.
type servingListener struct {
	net.Listener
	tell func()
}

func (l *servingListener) Accept() (net.Conn, error) {
	l.tell()
	return l.Listener.Accept()
}

// desk answers what the test asks of the server's process.
func (b *book) desk(srv *transport.Server) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /active", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, srv.Sessions().Active()) })
	mux.HandleFunc("GET /report", func(w http.ResponseWriter, _ *http.Request) {
		debug.FreeOSMemory() // what is kept is what counts
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		b.mu.Lock()
		defer b.mu.Unlock()
		json.NewEncoder(w).Encode(report{
			Goroutines: runtime.NumGoroutine(), FDs: openFiles(), Active: srv.Sessions().Active(), RSS: residentBytes(), Heap: int64(m.HeapAlloc),
			Opened: b.opened.Load(), Closed: b.closed.Load(), Failed: b.failed.Load(), Charges: len(b.charges), Events: b.events, Odd: b.odd,
		})
	})
	mux.HandleFunc("POST /charge", func(w http.ResponseWriter, r *http.Request) { // says how often, and forgets
		b.mu.Lock()
		defer b.mu.Unlock()
		fmt.Fprint(w, b.charges[r.FormValue("key")])
		delete(b.charges, r.FormValue("key"))
	})
	mux.HandleFunc("GET /stacks", func(w http.ResponseWriter, _ *http.Request) {
		buf := make([]byte, 1<<20)
		w.Write(buf[:runtime.Stack(buf, true)])
	})
	return mux
}

// openFiles counts the process's file descriptors, where the system has /proc.
func openFiles() int {
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return -1
	}
	return len(all)
}

func residentBytes() int64 {
	text, err := os.ReadFile("/proc/self/statm")
	var all, resident int64
	if err != nil {
		return -1
	}
	if _, err := fmt.Sscan(string(text), &all, &resident); err != nil {
		return -1
	}
	return resident * int64(os.Getpagesize())
}

// A server is the child, as the test sees it.
type server struct {
	addr, desk string
	http       *http.Client // of the desk; it keeps no connection
	stop       func() error
}

func startServer(t *testing.T) *server {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childVariable+"=1")
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stop := sync.OnceValue(func() error { stdin.Close(); return cmd.Wait() })
	t.Cleanup(func() { stop() })
	var addrs []string
	if line, err := bufio.NewReader(stdout).ReadBytes('\n'); err != nil || json.Unmarshal(line, &addrs) != nil || len(addrs) != 2 {
		t.Fatalf("the server said %q, %v", line, err)
	}
	return &server{addrs[0], addrs[1], &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}, stop}
}

// ask asks the desk.
func (s *server) ask(method, path string) ([]byte, error) {
	r, err := http.NewRequest(method, "http://"+s.desk+path, nil)
	if err != nil {
		return nil, err
	}
	res, err := s.http.Do(r)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	return io.ReadAll(res.Body)
}

func (s *server) report(t *testing.T) (r report) {
	t.Helper()
	b, err := s.ask(http.MethodGet, "/report")
	if err == nil {
		err = json.Unmarshal(b, &r)
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}
