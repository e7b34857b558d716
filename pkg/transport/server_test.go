package transport

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/openenv-go/openenv-go/pkg/gym"
	"github.com/openenv-go/openenv-go/pkg/session"
	"github.com/openenv-go/openenv-go/pkg/tools"
)

// What MCPToolClient does, in a server with one slot.
func TestCreateAttachDetachClose(t *testing.T) {
	srv, base := start(t, labEnv(), Options{Sessions: session.Options{Max: 1}})
	for range 3 {
		id := createSession(t, base)
		ws := dial(t, base+"/ws?session_id="+id)
		ws.ask(`{"type":"reset","data":{}}`)
		if o := rpcPostCaller(t, base, id)("say", `{"text":"x"}`); o.Data != `"x"` {
			t.Errorf("got %+v", o)
		}
		if got := ws.ask(`{"type":"state"}`); !strings.Contains(got, `"step_count":1`) {
			t.Errorf("the trainer does not see the call: %s", got)
		}
		ws.Close(websocket.StatusNormalClosure, "")
		waitFor(t, "the socket's end", func() bool {
			_, reply := post(t, base+"/mcp", `{"jsonrpc":"2.0","id":1,"method":"openenv/session/close","params":{"session_id":"`+id+`"}}`)
			return reply == `{"jsonrpc":"2.0","id":1,"result":{"closed":true,"session_id":"`+id+`"}}` || strings.Contains(reply, "unknown session")
		})
		waitFor(t, "the slot", func() bool { return srv.Sessions().Active() == 0 })
	}
}

// waitFor waits for what another goroutine or process is about to do.
func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(testTime); !ok(); runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatalf("%s did not come", what)
		}
	}
}

func TestLostSocketCancelsTheCallAndFreesTheSlot(t *testing.T) {
	srv, base := startLab(t, false)
	ws := dial(t, base+"/ws")
	ws.ask(`{"type":"state"}`) // the session is there
	ws.send(stepFrame("wait", "{}"))
	s, err := srv.Sessions().Get(labSession)
	if err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the call", func() bool { return s.Busy() == 1 })
	ws.CloseNow()
	waitFor(t, "the slot", func() bool { return srv.Sessions().Active() == 0 })
}

func TestFramesAreAnsweredInOrder(t *testing.T) {
	_, base := startLab(t, false)
	ws := dial(t, base+"/ws")
	const n = 100 // more than the server queues
	go func() {
		for i := range n {
			ws.Write(context.Background(), websocket.MessageText, []byte(stepFrame("say", fmt.Sprintf(`{"text":"%d"}`, i))))
		}
	}()
	for i := range n {
		if got := ws.receive(); !strings.Contains(got, fmt.Sprintf(`"data":"%d"`, i)) {
			t.Fatalf("answer %d is %s", i, got)
		}
	}
}

func TestCloseFrame(t *testing.T) {
	srv, base := startLab(t, false)
	ws := dial(t, base+"/ws")
	ws.send(stepFrame("say", `{"text":"before"}`))
	ws.send(`{"type":"close"}`)
	ws.send(stepFrame("say", `{"text":"after"}`))
	if got := ws.receive(); !strings.Contains(got, "before") {
		t.Errorf("got %s", got)
	}
	if code := ws.closed(); code != websocket.StatusNormalClosure {
		t.Errorf("closed with %v", code)
	}
	waitFor(t, "the slot", func() bool { return srv.Sessions().Active() == 0 })
}

func TestServerCloseTakesSocketsAlong(t *testing.T) {
	srv, base := startLab(t, false)
	ws, rpc := dial(t, base+"/ws"), dial(t, base+"/mcp")
	ws.ask(`{"type":"state"}`)
	rpc.ask(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	var wg sync.WaitGroup
	for _, c := range []wsClient{ws, rpc} {
		wg.Go(func() {
			if code := c.closed(); code != websocket.StatusGoingAway {
				t.Errorf("closed with %v, want 1001", code)
			}
		})
	}
	if err := srv.Close(t.Context()); err != nil {
		t.Error(err)
	}
	wg.Wait()
}

func TestBigFrames(t *testing.T) {
	_, base := start(t, labEnv(), Options{MaxMessage: 4 << 20})
	ws := dial(t, base+"/ws")
	text := strings.Repeat("x", 3<<20)
	if got := ws.ask(stepFrame("say", `{"text":"`+text+`"}`)); !strings.Contains(got, text) {
		t.Errorf("the answer has %d bytes", len(got))
	}
	// The server closes while the client is still sending, so the connection may be reset before the code is read.
	_ = ws.Write(t.Context(), websocket.MessageText, []byte(stepFrame("say", `{"text":"`+strings.Repeat("x", 5<<20)+`"}`)))
	if code := ws.closed(); code != websocket.StatusMessageTooBig && code != -1 {
		t.Errorf("closed with %v, want 1009", code)
	}
	if status, _ := post(t, base+"/mcp", strings.Repeat(" ", 5<<20)); status != http.StatusRequestEntityTooLarge {
		t.Errorf("a large body got %d", status)
	}
}

func TestDepthLimit(t *testing.T) {
	_, base := start(t, labEnv(), Options{MaxDepth: 10})
	ws := dial(t, base+"/ws")
	got := ws.ask(`{"type":"step","data":` + strings.Repeat("[", 10) + strings.Repeat("]", 10) + `}`)
	if !strings.Contains(got, "INVALID_JSON") || !strings.Contains(got, "deeper than 10") {
		t.Errorf("got %s", got)
	}
}

func TestHostAndOrigin(t *testing.T) {
	srv, base := start(t, labEnv(), Options{AllowedHosts: []string{"env.example"}})
	host := strings.TrimPrefix(base, "http://")
	for _, c := range []struct {
		host, origin string
		status       int
	}{
		{host, "", http.StatusOK},
		{host, "http://" + host, http.StatusOK},
		{"localhost", "", http.StatusOK},
		{"[::1]:80", "", http.StatusOK},
		{"env.example", "", http.StatusOK},
		{"env.example:443", "https://env.example:443", http.StatusOK},
		{"rebound.example", "", http.StatusForbidden},
		{"rebound.example", "http://rebound.example", http.StatusForbidden},
		{host, "http://evil.example", http.StatusForbidden},
		{host, "null", http.StatusForbidden},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+"/health", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = c.host
		if c.origin != "" {
			r.Header.Set("Origin", c.origin)
		}
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != c.status {
			t.Errorf("Host %s, Origin %q: got %d, want %d", c.host, c.origin, res.StatusCode, c.status)
		}
	}
	_, _, err := websocket.Dial(t.Context(), "ws"+strings.TrimPrefix(base, "http")+"/ws", &websocket.DialOptions{HTTPHeader: http.Header{"Origin": {"http://evil.example"}}})
	if err == nil {
		t.Error("a socket of a foreign page was accepted")
	}
	active(t, srv, 0)
}

func TestProductionHasNoControlRoutes(t *testing.T) {
	_, base := start(t, labEnv(), Options{Mode: tools.ModeProduction})
	for _, path := range []string{"/reset", "/step", "/state"} {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			if status, _ := request(t, method, base+path, "{}"); status != http.StatusNotFound {
				t.Errorf("%s %s got %d, want 404", method, path, status)
			}
		}
	}
	_, doc := request(t, http.MethodGet, base+"/openapi.json", "")
	for _, word := range []string{"/reset", "/step", "/state"} {
		if strings.Contains(doc, word) {
			t.Errorf("%s is in the OpenAPI document", word)
		}
	}
	for _, d := range doors {
		if d.dialect != gymChannel {
			t.Run(d.name, func(t *testing.T) {
				srv, base := start(t, labEnv(), Options{Mode: tools.ModeProduction, Sessions: session.Options{NewID: countingIDs()}})
				if o := d.open(t, srv, base)("say", `{"text":"live"}`); o.Data != `"live"` {
					t.Errorf("got %+v", o)
				}
			})
		}
	}
}

// runMain runs an environment's main function until the test stops it.
func runMain(t *testing.T, env gym.Definition, args []string, variables map[string]string) (stdout, stderr *lines, stop func(cause error) int) {
	ctx, cancel := context.WithCancelCause(t.Context())
	stdout, stderr = newLines(), newLines()
	code := make(chan int, 1)
	go func() {
		code <- Run(ctx, env, args, func(k string) string { return variables[k] }, strings.NewReader(""), stdout, stderr)
	}()
	return stdout, stderr, func(cause error) int { cancel(cause); return <-code }
}

// lines is a buffer that is written by one goroutine and read by another.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func newLines() *lines { return &lines{} }

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

var address = regexp.MustCompile(`http://127\.0\.0\.1:\d+`)

func TestMainServesAndStops(t *testing.T) {
	stdout, stderr, stop := runMain(t, labEnv(), []string{"-addr", "127.0.0.1:0"}, map[string]string{"OPENENV_MODE": "production"})
	waitFor(t, "the address", func() bool { return address.MatchString(stdout.String()) })
	base := address.FindString(stdout.String())
	if _, reply := request(t, http.MethodGet, base+"/health", ""); reply != `{"status":"healthy"}` {
		t.Errorf("got %s", reply)
	}
	ws := dial(t, base+"/ws")
	if got := ws.ask(`{"type":"reset"}`); !strings.Contains(got, "NOT_ALLOWED") {
		t.Errorf("OPENENV_MODE was not heeded: %s", got)
	}
	http.DefaultClient.CloseIdleConnections()
	closed := make(chan websocket.StatusCode, 1)
	go func() { closed <- ws.closed() }()
	if code := stop(nil); code != exitOK {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	if code := <-closed; code != websocket.StatusGoingAway {
		t.Errorf("the socket was closed with %v", code)
	}
	if strings.Contains(stdout.String(), "/ws") || strings.Contains(stdout.String(), "reset") {
		t.Errorf("the greeting offers what production does not serve:\n%s", stdout)
	}
	for _, event := range []string{"event=serving", "event=session_open", "event=session_close", "event=stopped"} {
		if !strings.Contains(stderr.String(), event) {
			t.Errorf("the log lacks %s:\n%s", event, stderr)
		}
	}
}

func TestMainRefusesAWrongStart(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	exclusive := labEnv()
	exclusive.Exclusive = true
	broken := labEnv()
	broken.Name, broken.Tools = "", tools.New(tools.Func("reset", "", (*lab).say))
	for _, c := range []struct {
		env  gym.Definition
		args []string
		vars map[string]string
		want string
	}{
		{args: []string{"-addr", taken.Addr().String()}, want: "is in use; choose another with -addr"},
		{args: []string{"-addr", "nowhere"}, want: "-addr nowhere: want host:port, such as 127.0.0.1:8000 or :8000"},
		{args: []string{"-mode", "dream"}, want: `unknown mode "dream": want simulation or production`},
		{vars: map[string]string{"OPENENV_MODE": "dream"}, want: `unknown mode "dream"`},
		{args: []string{"-nosuch"}, want: "flag provided but not defined: -nosuch"},
		{args: []string{"stray"}, want: `unexpected argument "stray"`},
		{args: []string{"-max-sessions", "0"}, want: "-max-sessions 0: want at least 1"},
		{args: []string{"-max-sessions", "many"}, want: "max-sessions"},
		{vars: map[string]string{"OPENENV_MAX_SESSIONS": "many"}, want: `invalid value "many" for OPENENV_MAX_SESSIONS`},
		{args: []string{"-session-timeout", "-1s"}, want: "-session-timeout -1s: want a duration"},
		{env: exclusive, args: []string{"-max-sessions", "2"}, want: "the environment lab is exclusive"},
		{args: []string{"-advertise", "here"}, want: "-advertise here: want host:port"},
		{args: []string{"-queue", "-1"}, want: "-queue -1: want 0 or more"},
		{args: []string{"-code-time", "-5s"}, want: "-code-time -5s: want 1ms or more"},
		{args: []string{"-code-calls", "-1"}, want: "-code-calls -1: want 1 or more"},
		{args: []string{"-code-calls", "1"}, want: "-code-calls: the environment lab has no code mode"},
		{args: []string{"-queue-wait", "0"}, want: "-queue-wait 0s: want a duration"},
		{args: []string{"-grace", "-1s"}, want: "-grace -1s: want a duration"},
		{args: []string{"-tool-timeout", "0"}, want: "-tool-timeout 0s: want a duration"},
		{env: broken, want: "it needs a Name"},
		{env: gym.Environment[*lab]{Name: "x", New: labEnv().New, Tools: tools.New(tools.Func("reset", "", (*lab).say))}, want: `tool "reset": the names [reset step state close] are reserved`},
	} {
		env := c.env
		if env == nil {
			env = labEnv()
		}
		var stdout, stderr bytes.Buffer
		code := Run(t.Context(), env, c.args, func(k string) string { return c.vars[k] }, strings.NewReader(""), &stdout, &stderr)
		if code != exitUsage || !strings.Contains(stderr.String(), c.want) || strings.Count(stderr.String(), "\n") != 1 || stdout.Len() != 0 {
			t.Errorf("%v %v: exit code %d, stdout %q, stderr %q; want one line with %q", c.args, c.vars, code, &stdout, &stderr, c.want)
		}
	}
}

func TestMainHelp(t *testing.T) {
	var stdout, stderr bytes.Buffer
	code := Run(t.Context(), labEnv(), []string{"-help"}, func(string) string { return "" }, strings.NewReader(""), &stdout, &stderr)
	if code != exitOK || stderr.Len() != 0 {
		t.Errorf("exit code %d, stderr %q", code, &stderr)
	}
	for _, flag := range []string{"-addr", "-mode", "-max-sessions", "-session-timeout", "-tool-timeout", "-allowed-hosts", "-grace", "-advertise", "-queue", "-queue-wait"} {
		if !strings.Contains(stdout.String(), flag) {
			t.Errorf("%s is missing:\n%s", flag, &stdout)
		}
	}
}

// An environment's own flags are as the server's: set before it is compiled, shown by -help, with variables, and with -stdio.
func TestFlagsOfTheEnvironment(t *testing.T) {
	for _, c := range []struct {
		args     []string
		variable string
		want     string
	}{
		{nil, "", "none"}, {[]string{"-greeting", "hi"}, "ho", "hi"}, {nil, "ho", "ho"}, {[]string{"-stdio", "-greeting", "hi"}, "", "hi"},
	} {
		var greeting string
		used := make(chan string, 1)
		env := labEnv()
		env.New = func(context.Context, *gym.Session) (*lab, error) { used <- greeting; return &lab{}, nil }
		var stdout bytes.Buffer
		ctx, stop := context.WithTimeout(t.Context(), testTime)
		args := append([]string{"-warm", "1", "-addr", "127.0.0.1:0"}, c.args...)
		if slices.Contains(c.args, "-stdio") {
			args = c.args // a session is opened at once
		}
		stderr := newLines()
		done := make(chan int, 1)
		go func() {
			done <- Run(ctx, env, args, func(k string) string { return map[string]string{"OPENENV_GREETING": c.variable}[k] }, strings.NewReader(""), &stdout, stderr, func(fs *flag.FlagSet) {
				fs.StringVar(&greeting, "greeting", "none", "what to say")
			})
		}()
		got := within(t, "New", used)
		if !slices.Contains(c.args, "-stdio") {
			waitFor(t, "the start", func() bool { return strings.Contains(stderr.String(), "event=serving") })
			stop()
		}
		if code := <-done; code != exitOK || got != c.want {
			t.Errorf("%v: exit code %d, %q; want %q: %s", c.args, code, got, c.want, stderr)
		}
		stop()
	}
	var stdout bytes.Buffer
	Run(t.Context(), labEnv(), []string{"-help"}, func(string) string { return "" }, nil, &stdout, io.Discard, func(fs *flag.FlagSet) {
		fs.String("greeting", "none", "what to say")
	})
	if !strings.Contains(stdout.String(), "-greeting") {
		t.Error(stdout.String())
	}
}

func TestFlagsWinOverVariables(t *testing.T) {
	c, err := parseConfig([]string{"-max-sessions", "3"}, func(k string) string {
		return map[string]string{"OPENENV_MAX_SESSIONS": "7", "OPENENV_TOOL_TIMEOUT": "5s", "OPENENV_SESSION_TIMEOUT": "0"}[k]
	}, io.Discard)
	o := c.options.Sessions
	if err != nil || o.Max != 3 || o.ToolTimeout != 5*time.Second || o.IdleTimeout >= 0 {
		t.Errorf("got %+v, %v", o, err)
	}
}

func TestAddressInUseIsToldByItsError(t *testing.T) {
	err := listenError("-addr", "127.0.0.1:8000", &net.OpError{Err: syscall.EADDRINUSE})
	if !strings.Contains(err.Error(), "-addr 127.0.0.1:0") {
		t.Error(err)
	}
	if err := listenError("-addr", "127.0.0.1:1", errors.New("odd")); !strings.Contains(err.Error(), "odd") {
		t.Error(err)
	}
}

// The page needs nothing from elsewhere, and what an author wrote cannot break out of it.
func TestDocsPage(t *testing.T) {
	env := labEnv()
	env.Description = `<script>alert("x")</script>`
	env.Readme = "# Lab"
	_, base := start(t, env, Options{})
	status, page := request(t, http.MethodGet, base+"/docs", "")
	if status != http.StatusOK {
		t.Fatal(status)
	}
	for _, want := range []string{"<code>say</code>", "# Lab", "/openapi.json", "call_tool", "minLength"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if outside := regexp.MustCompile(`(?i)<script|(src|href)="?(https?:)?//`).FindString(page); outside != "" {
		t.Errorf("the page has %q", outside)
	}
}
