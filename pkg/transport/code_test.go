package transport

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/openenv-go/openenv-go/pkg/codemode"
	"github.com/openenv-go/openenv-go/pkg/gym"
	"github.com/openenv-go/openenv-go/pkg/session"
	"github.com/openenv-go/openenv-go/pkg/tools"
)

// Code by every door: it calls the same handlers in one step, and nothing of it is left behind.

// A steps log is what After has been told, by all sessions of a server.
type stepsLog struct {
	mu    sync.Mutex
	steps []gym.ToolCall
}

func (l *stepsLog) last(t *testing.T) gym.ToolCall {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.steps) != 1 {
		t.Fatalf("After ran %d times, want once", len(l.steps))
	}
	return l.steps[0]
}

// codeEnv is the lab with code mode.
func codeEnv(l *stepsLog, limits codemode.Limits) gym.Environment[*lab] {
	env := labEnv()
	env.CodeMode = &limits
	env.After = func(_ *lab, _ context.Context, call gym.ToolCall) gym.Score {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.steps = append(l.steps, call)
		return gym.Score{Reward: gym.Number(labReward)}
	}
	return env
}

func codeArgs(t *testing.T, code string) string { return jsonOf(t, map[string]string{"code": code}) }

func TestCodeByEveryDoor(t *testing.T) {
	const code = `
heard = []
for word in ["é", "b"]:
    heard.append(say(text=word))
print("heard", len(heard))
failed = try_call(refuse)
result = {"heard": heard, "x": point()["x"], "failed": failed.error.message}
`
	const want = `{"result":{"heard":["é","b"],"x":1,"failed":"no such page"},"stdout":"heard 2\n","tool_calls":4,"error":null}`
	for _, mode := range []tools.Mode{tools.ModeSimulation, tools.ModeProduction} {
		for _, d := range doors {
			t.Run(string(mode)+"/"+d.name, func(t *testing.T) {
				var log stepsLog
				o := labOptions(false)
				o.Mode = mode
				srv, base := startDoor(t, codeEnv(&log, codemode.Limits{}), o, d)
				// The MCP client sorts members.
				sorted := func(tool, args string) outcome {
					got := d.open(t, srv, base)(tool, args)
					got.Data = jsonOf(t, parsed(t, got.Data))
					return got
				}
				c := suiteCase{tool: gym.CodeTool, args: codeArgs(t, code), want: outcome{Data: jsonOf(t, parsed(t, want))}}
				checkSuiteCase(t, srv, d, c, sorted)
				var made []string
				for _, c := range log.last(t).Calls {
					made = append(made, c.Name+string(c.Arguments))
				}
				if diff := cmp.Diff([]string{`say{"text":"é"}`, `say{"text":"b"}`, `refuse{}`, `point{}`}, made); diff != "" {
					t.Errorf("what After is told of calls (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// TestCodeFaultsByEveryDoor: code that fails is a result marked as an error, with words for the model.
func TestCodeFaultsByEveryDoor(t *testing.T) {
	for _, d := range doors {
		t.Run(d.name, func(t *testing.T) {
			var log stepsLog
			srv, base := startDoor(t, codeEnv(&log, codemode.Limits{}), labOptions(false), d)
			got := d.open(t, srv, base)(gym.CodeTool, codeArgs(t, "say(text=\"a\")\nx = fail_()\n"))
			if !got.Failed || got.Type != "" {
				t.Fatalf("want a failure that is a result: %+v", got)
			}
			for _, words := range []string{"disk on fire", "line 2", "x = fail_()", "1 tool call was made before that"} {
				if !strings.Contains(got.Data, words) {
					t.Errorf("the failure does not say %q: %s", words, got.Data)
				}
			}
			if n := len(log.last(t).Calls); n != 2 {
				t.Errorf("After is told of %d calls, want 2", n)
			}
		})
	}
}

// TestCodeAction: the gym action is a call of the tool, in an observation like any other.
func TestCodeAction(t *testing.T) {
	var log stepsLog
	srv, base := start(t, codeEnv(&log, codemode.Limits{}), labOptions(false))
	c := dial(t, base+"/ws")
	step := func(action string) string {
		t.Helper()
		var f struct {
			Type string          `json:"type"`
			Data json.RawMessage `json:"data"`
		}
		unmarshal(t, c.ask(`{"type":"step","data":`+action+`}`), &f)
		return f.Type + " " + string(f.Data)
	}
	byTool := step(`{"type":"call_tool","tool_name":"execute_code","arguments":{"code":"say(text=\"a\")"}}`)
	for _, action := range []string{
		`{"type":"execute_code","code":"say(text=\"a\")"}`, `{"code":"say(text=\"a\")","timeout_s":null,"type":"execute_code","metadata":{}}`,
		`{"type":"execute_code","code":"say(text=\"a\")","timeout_s":9.5}`,
	} {
		if got := step(action); got != byTool || !strings.Contains(got, `"result":"a"`) {
			t.Errorf("%s\ngot  %s\nwant %s", action, got, byTool)
		}
	}
	if s, err := srv.Sessions().Get(labSession); err != nil || s.Steps() != 4 {
		t.Errorf("%d steps, %v; want 4", s.Steps(), err)
	}
	for _, seconds := range []string{"1e-400", "1e400"} { // the tool's to judge, by both ways
		tool := step(`{"type":"call_tool","tool_name":"execute_code","arguments":{"code":"1","timeout_s":` + seconds + `}}`)
		if got := step(`{"type":"execute_code","code":"1","timeout_s":` + seconds + `}`); got != tool || !strings.HasPrefix(got, "observation ") {
			t.Errorf("%s: as an action %s\nas a call %s", seconds, got, tool)
		}
	}
	if s, err := srv.Sessions().Get(labSession); err != nil || s.Steps() != 8 {
		t.Errorf("%d steps, %v; want 8", s.Steps(), err)
	}
	log.mu.Lock()
	second := log.steps[1]
	log.mu.Unlock()
	if got := string(second.Arguments); got != `{"code":"say(text=\"a\")"}` {
		t.Errorf("After is told of the arguments %s", got)
	}
	for action, field := range map[string]string{
		`{"type":"execute_code"}`:                                            "code",
		`{"type":"execute_code","code":5}`:                                   "code",
		`{"type":"execute_code","code":"1","tool_name":"say"}`:               "tool_name",
		`{"type":"execute_code","code":"1","timeout_s":0}`:                   "timeout_s",
		`{"type":"call_tool","tool_name":"say","code":"1","arguments":{}}`:   "code",
		`{"type":"run_code","code":"1"}`:                                     "type",
		`{"type":"execute_code","code":"1","arguments":{"code":"2"}}`:        "arguments",
		`{"tool_name":"execute_code","arguments":{"code":"1"},"timeout_s":}`: "",
	} {
		if got := step(action); !strings.HasPrefix(got, "error ") || !strings.Contains(got, field) {
			t.Errorf("%s: %s", action, got)
		}
	}
	_, plain := start(t, labEnv(), labOptions(false))
	if got := dial(t, plain+"/ws").ask(`{"type":"step","data":{"type":"execute_code","code":"1"}}`); !strings.Contains(got, "VALIDATION_ERROR") {
		t.Errorf("an environment without code mode answers %s", got)
	}
}

// TestCodeDeadlines: a tool's own time ends its call, which the code sees; the code's time ends the code.
func TestCodeDeadlines(t *testing.T) {
	var log stepsLog
	env := codeEnv(&log, codemode.Limits{Time: 300 * time.Millisecond, Steps: 1 << 60})
	env.Tools = tools.New(
		tools.Func("wait", "", (*lab).wait, tools.Deadline(10*time.Millisecond)), tools.Func("wait_long", "", (*lab).wait),
		tools.Func("say", "", (*lab).say),
	)
	srv, base := start(t, env, labOptions(false))
	call := openStep(t, srv, base)
	got := call(gym.CodeTool, codeArgs(t, "r = try_call(wait)\nresult = [r.error.kind, r.error.tool, say(text=r.error.message)]"))
	want := `{"result":["timeout","wait","tool \"wait\" did not finish within 10ms"],"stdout":"","tool_calls":2,"error":null}`
	if got.Data != want {
		t.Errorf("got  %+v\nwant %s", got, want)
	}
	for _, code := range []string{"try_call(wait_long)\nsay(text='later')", "while True:\n    pass"} {
		if got := call(gym.CodeTool, codeArgs(t, code)); !got.Failed || !strings.Contains(got.Data, "300ms") {
			t.Errorf("%s: %+v", code, got)
		}
	}
	if got := call("say", `{"text":"on"}`); got.Data != `"on"` {
		t.Errorf("the session goes on with %+v", got)
	}
}

// TestCodeTimeEndsACall: a call that the code's time ends is told of and recorded as one that was too slow.
func TestCodeTimeEndsACall(t *testing.T) {
	var log stepsLog
	env := codeEnv(&log, codemode.Limits{Time: 100 * time.Millisecond})
	env.Tools = tools.New(tools.Func("wait", "", (*lab).wait))
	path := filepath.Join(t.TempDir(), "calls.jsonl")
	r, err := tools.OpenRecorder(path)
	if err != nil {
		t.Fatal(err)
	}
	o := labOptions(false)
	o.Recorder = r
	srv, base := start(t, env, o)
	if got := openStep(t, srv, base)(gym.CodeTool, codeArgs(t, "try_call(wait)")); !got.Failed || !strings.Contains(got.Data, "100ms") {
		t.Errorf("%+v", got)
	}
	if made := log.last(t).Calls; len(made) != 1 || made[0].Err == nil || made[0].Err.Type != tools.Timeout {
		t.Errorf("After is told of %+v", made)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(path); err != nil || !strings.Contains(string(b), `"timeout"`) {
		t.Errorf("recorded: %s, %v", b, err)
	}
}

// TestCodeWithADeafTool: a tool that does not heed its context keeps its own session, and no other one's code.
func TestCodeWithADeafTool(t *testing.T) {
	var log stepsLog
	begun, end := make(chan struct{}), make(chan struct{})
	env := codeEnv(&log, codemode.Limits{})
	env.Tools = tools.New(tools.Func("say", "", (*lab).say), tools.Do("deaf", "", func(*lab, context.Context, tools.None) error {
		close(begun)
		<-end
		return nil
	}))
	_, base := start(t, env, Options{Code: gym.CodeOptions{Processes: 1}})
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		_, reply := post(t, base+"/mcp", rpcCall(gym.CodeTool, `{"code":"deaf()","timeout_s":0.05}`, ""))
		if !strings.Contains(reply, "50ms") {
			t.Error(reply)
		}
	})
	<-begun
	defer close(end)
	if status, reply := post(t, base+"/mcp", rpcCall(gym.CodeTool, codeArgs(t, "say(text='a')"), "")); status != http.StatusOK || !strings.Contains(reply, `"result":"a"`) {
		t.Errorf("%d %s", status, reply)
	}
}

// TestCodeCancelled: who cancels a step ends the code and the tool that runs.
func TestCodeCancelled(t *testing.T) {
	for _, code := range []string{"try_call(hold)\nsay(text='later')", "say(text='begun')\nwhile True:\n    pass"} {
		begun, ended := make(chan struct{}, 1), make(chan struct{}, 1)
		var log stepsLog
		env := codeEnv(&log, codemode.Limits{Time: time.Minute, Steps: 1 << 60})
		env.Tools = tools.New(
			tools.Func("say", "", func(l *lab, ctx context.Context, in labText) (string, error) {
				if in.Text == "later" {
					t.Error("the code went on")
				}
				begun <- struct{}{}
				return l.say(ctx, in)
			}),
			tools.Do("hold", "", func(_ *lab, ctx context.Context, _ tools.None) error {
				begun <- struct{}{}
				<-ctx.Done()
				ended <- struct{}{}
				return ctx.Err()
			}),
			tools.Func("list", "", (*lab).list),
		)
		_, base := start(t, env, labOptions(false))
		cs := connectMCP(t, base+"/mcp")
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() {
			_, err := cs.CallTool(ctx, &mcp.CallToolParams{Name: gym.CodeTool, Arguments: map[string]any{"code": code}})
			done <- err
		}()
		<-begun
		cancel()
		if err := <-done; err == nil {
			t.Error("the cancelled call was answered")
		}
		if strings.Contains(code, "hold") {
			<-ended
		}
		if _, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "list"}); err != nil { // waits for the turn
			t.Error(err)
		}
	}
}

// TestCodeIsRecordedByItsCalls: what code does is recorded as its calls, and replayed to other code that makes them.
func TestCodeIsRecordedByItsCalls(t *testing.T) {
	const code = `result = [visit(url="a")["text"], count(), try_call(visit, url="none").error.message, try_call(slow).error.kind, count()]`
	play := func(srv *Server, base string) string {
		return openStep(t, srv, base)(gym.CodeTool, codeArgs(t, code)).Data
	}
	path := filepath.Join(t.TempDir(), "calls.jsonl")
	r, err := tools.OpenRecorder(path)
	if err != nil {
		t.Fatal(err)
	}
	env := webEnv(nil)
	env.CodeMode = &codemode.Limits{}
	srv, base := start(t, env, Options{Recorder: r})
	live := play(srv, base)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(live, `"result":["a (10)",2,"no such page","timeout",4]`) {
		t.Fatal(live)
	}
	env = webEnv(tools.OpenCassette(path))
	env.CodeMode = &codemode.Limits{}
	srv, base = start(t, env, Options{})
	if replayed := play(srv, base); replayed != live {
		t.Errorf("live     %s\nreplayed %s", live, replayed)
	}
}

// TestCodeOverAnOwnServer: the tools of an author's own server are functions too.
func TestCodeOverAnOwnServer(t *testing.T) {
	env := gym.Environment[*mcp.Server]{
		Name: "own", CodeMode: &codemode.Limits{},
		New: func(context.Context, *gym.Session) (*mcp.Server, error) {
			srv := mcp.NewServer(&mcp.Implementation{Name: "own", Version: "1"}, nil)
			mcp.AddTool(srv, &mcp.Tool{Name: "shout"}, func(_ context.Context, _ *mcp.CallToolRequest, in labText) (*mcp.CallToolResult, any, error) {
				return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: strings.ToUpper(in.Text)}}}, nil, nil
			})
			return srv, nil
		},
		Server: func(srv *mcp.Server) *mcp.Server { return srv },
	}
	srv, base := start(t, env, Options{})
	var listed []string
	for _, tool := range srv.class.Tools {
		listed = append(listed, tool.Name)
	}
	if diff := cmp.Diff([]string{gym.CodeTool, "shout"}, listed); diff != "" {
		t.Errorf("tools (-want +got):\n%s", diff)
	}
	status, reply := post(t, base+"/mcp", rpcCall(gym.CodeTool, codeArgs(t, "shout(text='a') + shout('b')"), ""))
	if status != http.StatusOK || !strings.Contains(reply, `"data":{"result":"AB"`) {
		t.Errorf("%d %s", status, reply)
	}
}

// TestCodeToolsNameIsTaken: a tool of that name is a fault of the environment.
func TestCodeToolsNameIsTaken(t *testing.T) {
	env := labEnv()
	env.CodeMode = &codemode.Limits{}
	env.Tools = tools.New(tools.Func(gym.CodeTool, "", (*lab).point))
	own := gym.Environment[*mcp.Server]{
		Name: "own", CodeMode: &codemode.Limits{}, Server: func(srv *mcp.Server) *mcp.Server { return srv },
		New: func(context.Context, *gym.Session) (*mcp.Server, error) {
			srv := mcp.NewServer(&mcp.Implementation{Name: "own", Version: "1"}, nil)
			mcp.AddTool(srv, &mcp.Tool{Name: gym.CodeTool}, func(context.Context, *mcp.CallToolRequest, any) (*mcp.CallToolResult, any, error) {
				return nil, nil, nil
			})
			return srv, nil
		},
	}
	for _, env := range []gym.Definition{env, own} {
		if _, err := New(t.Context(), env, Options{}); err == nil || !strings.Contains(err.Error(), "CodeMode") {
			t.Errorf("got %v", err)
		}
	}
}

// TestCodeFlags: flags go before what the environment says, and what makes no sense is refused.
func TestCodeFlags(t *testing.T) {
	var log stepsLog
	env := codeEnv(&log, codemode.Limits{Calls: 1, Steps: 1000})
	_, base := start(t, env, Options{Code: gym.CodeOptions{Limits: codemode.Limits{Calls: 2}}, Sessions: session.Options{NewID: countingIDs()}})
	call := rpcPostCaller(t, base, "")
	if got := call(gym.CodeTool, codeArgs(t, "say(text='a'); say(text='b')")); got.Failed {
		t.Errorf("two calls: %+v", got)
	}
	if got := call(gym.CodeTool, codeArgs(t, "say(text='a'); say(text='b'); say(text='c')")); !got.Failed {
		t.Errorf("three calls: %+v", got)
	}
	if got := call(gym.CodeTool, codeArgs(t, "for i in range(2000): pass")); !got.Failed || !strings.Contains(got.Data, "steps") {
		t.Errorf("the environment's steps: %+v", got)
	}
}

// TestCodeManySessions: sessions run code side by side, more of them than there are processes.
func TestCodeManySessions(t *testing.T) {
	var log stepsLog
	_, base := start(t, codeEnv(&log, codemode.Limits{}), Options{Code: gym.CodeOptions{Processes: 2}})
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			status, reply := post(t, base+"/mcp", rpcCall(gym.CodeTool, codeArgs(t, fmt.Sprintf("int(say(text='%d')) * 2", i)), ""))
			if want := fmt.Sprintf(`"data":{"result":%d,`, 2*i); status != http.StatusOK || !strings.Contains(reply, want) {
				t.Errorf("%d %s, want %s", status, reply, want)
			}
		})
	}
	wg.Wait()
}
