package transport

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/openenv-go/openenv-go/pkg/gym"
	"github.com/openenv-go/openenv-go/pkg/mount"
	"github.com/openenv-go/openenv-go/pkg/session"
	"github.com/openenv-go/openenv-go/pkg/tools"
)

// Record by every door, replay by every door: the same calls come to the same answers.

// A web is a live world: what it answers depends on what it was asked before.
type web struct{ visits int }

type webVisit struct {
	URL   string `json:"url"`
	Limit int    `json:"limit" default:"10"`
	Key   string `json:"key,omitempty" secret:"true"`
}

type webSight struct {
	Text  string `json:"text"`
	Token string `json:"token" secret:"true"`
	Visit int    `json:"visit"`
}

func (w *web) live(_ context.Context, in webVisit) (webSight, error) {
	w.visits++
	switch in.URL {
	case "none":
		return webSight{}, tools.Fail("no such page")
	case "bad":
		return webSight{}, tools.Invalid("url", "that is no address")
	case "down":
		return webSight{}, errors.New("the line is dead")
	}
	return webSight{fmt.Sprintf("%s (%d)", in.URL, in.Limit), "token-of-" + in.URL, w.visits}, nil
}

func (w *web) count(context.Context, tools.None) (int, error) { w.visits++; return w.visits, nil }
func (w *web) forget(context.Context, tools.None) error       { w.visits = 0; return nil }
func (w *web) picture(context.Context, tools.None) (*mcp.CallToolResult, error) {
	return &mcp.CallToolResult{
		Content: []mcp.Content{&mcp.ImageContent{Data: []byte("pixels"), MIMEType: "image/png"}},
		Meta:    mcp.Meta{"n": 1<<53 + 1},
	}, nil
}
func (w *web) slow(ctx context.Context, _ tools.None) error { <-ctx.Done(); return ctx.Err() }

// webEnv has the live tools in both modes, or their replays in simulation.
func webEnv(c *tools.Cassette) gym.Environment[*web] {
	env := gym.Environment[*web]{
		Name:  "web",
		New:   func(context.Context, *gym.Session) (*web, error) { return &web{}, nil },
		After: func(*web, context.Context, gym.ToolCall) gym.Score { return gym.Score{Reward: gym.Number(labReward)} },
		Tools: tools.New(
			tools.Func("visit", "", (*web).live), tools.Func("count", "", (*web).count), tools.Do("forget", "", (*web).forget),
			tools.Func("picture", "", (*web).picture), tools.Do("slow", "", (*web).slow, tools.Deadline(20*time.Millisecond)),
		),
	}
	if c == nil {
		return env
	}
	none := func(*web, context.Context, tools.None) (tools.None, error) { panic("the live function was called") }
	env.Tools = tools.New(
		tools.Modes("visit", "", tools.Simulation(tools.Replay(c, (*web).live))),
		tools.Modes("count", "", tools.Simulation(tools.Replay(c, (*web).count))),
		tools.Modes("forget", "", tools.Simulation(tools.Replay(c, none))),
		tools.Modes("picture", "", tools.Simulation(tools.Replay(c, (*web).picture))),
		tools.Modes("slow", "", tools.Simulation(tools.Replay(c, none))),
	)
	return env
}

// webCalls end in each way in which a call can.
var webCalls = [][2]string{
	{"visit", `{"url":"a"}`},
	{"visit", `{"url":"a","limit":1e1}`}, // the same again
	{"visit", `{"url":"a","limit":3}`},
	{"visit", `{"url":"none"}`}, {"visit", `{"url":"bad"}`}, {"visit", `{"url":"down"}`},
	{"visit", `{"url":5}`}, {"nosuch", `{}`}, // never reach a tool
	{"count", `{}`}, {"forget", ``}, {"count", ``}, {"slow", `{}`},
}

func playWeb(call caller) (all []outcome) {
	for _, c := range webCalls {
		all = append(all, call(c[0], c[1]))
	}
	return all
}

// withoutTokens is what a replay gives: secrets are empty.
func withoutTokens(all []outcome) []outcome {
	for i := range all {
		all[i].Data = strings.ReplaceAll(all[i].Data, `"token-of-a"`, `""`)
	}
	return all
}

func record(t *testing.T, play func(srv *Server, base string)) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "calls.jsonl")
	r, err := tools.OpenRecorder(path)
	if err != nil {
		t.Fatal(err)
	}
	srv, base := start(t, webEnv(nil), Options{Recorder: r})
	play(srv, base)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestRecordAndReplayByEveryDoor(t *testing.T) {
	live := map[dialect][]outcome{}
	var path string
	var recording []byte
	for _, d := range doors {
		if d.temporary {
			continue
		}
		path = record(t, func(srv *Server, base string) {
			live[d.dialect] = withoutTokens(playWeb(d.open(t, srv, base)))
		})
		got, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if recording == nil {
			recording = got
		}
		if diff := cmp.Diff(string(recording), string(got)); diff != "" {
			t.Errorf("%s records something else (-%s +%s):\n%s", d.name, doors[0].name, d.name, diff)
		}
	}
	if n := bytes.Count(recording, []byte("\n")); n != 1+len(webCalls)-2 || bytes.Contains(recording, []byte("token-of")) {
		t.Errorf("%d lines, want a header and each call that reached a tool, without tokens:\n%s", n, recording)
	}
	for order, c := range map[string]*tools.Cassette{"free": tools.OpenCassette(path), "strict": tools.OpenCassette(path).Strict()} {
		for _, d := range doors {
			if d.temporary {
				continue
			}
			t.Run(order+" "+d.name, func(t *testing.T) {
				srv, base := start(t, webEnv(c), Options{})
				if diff := cmp.Diff(live[d.dialect], playWeb(d.open(t, srv, base))); diff != "" {
					t.Errorf("(-live +replayed):\n%s", diff)
				}
			})
		}
	}
}

// A dicer has both that could make an episode another: chance and time.
type dicer struct{ s *gym.Session }

func (d *dicer) roll(context.Context, tools.None) (string, error) {
	return fmt.Sprintf("%d at %s", d.s.Rand().IntN(1000), d.s.Now().Format(time.RFC3339)), nil
}

type die struct {
	N  int       `json:"n"`
	At time.Time `json:"at"`
}

func (d *dicer) reset(context.Context, gym.ResetRequest[tools.None]) (die, error) {
	return die{d.s.Rand().IntN(1000), d.s.Now()}, nil
}

func dicerEnv() gym.Environment[*dicer] {
	return gym.Environment[*dicer]{
		Name:  "dicer",
		New:   func(_ context.Context, s *gym.Session) (*dicer, error) { return &dicer{s}, nil },
		Clock: gym.Clock{Start: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Step: time.Minute},
		Tools: tools.New(tools.Func("roll", "Roll.", (*dicer).roll)),
		Reset: gym.Reset((*dicer).reset),
		State: gym.StateOf(func(d *dicer) die { return die{0, d.s.Now()} }),
	}
}

// What is rolled is written out: it is the same in any process, on any machine, in years to come.
func TestEpisodesReplayByteForByte(t *testing.T) {
	frames := []string{
		`{"type":"reset","data":{"seed":7,"episode_id":"e"}}`,
		stepFrame("roll", `{}`), `{"type":"mcp","data":{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"roll"}}}`,
		stepFrame("nosuch", `{}`), `{"type":"step","data":{"type":"list_tools"}}`, stepFrame("roll", `{}`), `{"type":"state"}`,
	}
	want := []string{
		`{"type":"observation","data":{"observation":{"n":728,"at":"2026-01-02T03:04:05Z","metadata":{}},"reward":null,"done":false}}`,
		`"745 at 2026-01-02T03:04:05Z"`, `"284 at 2026-01-02T03:05:05Z"`, `unknown tool`, `"tools":[`, `"735 at 2026-01-02T03:08:05Z"`,
		`{"type":"state","data":{"episode_id":"e","step_count":5,"reward_total":0,"last_reward":null,"done":false,"n":0,"at":"2026-01-02T03:09:05Z"}}`,
	}
	var first []string
	for range 2 {
		_, base := start(t, dicerEnv(), Options{})
		for range 2 {
			ws := dial(t, base+"/ws")
			for range 2 { // on one session too
				var got []string
				for _, f := range frames {
					got = append(got, ws.ask(f))
				}
				if first == nil {
					first = got
				}
				if diff := cmp.Diff(first, got); diff != "" {
					t.Errorf("(-first +again):\n%s", diff)
				}
			}
		}
	}
	for i := range want {
		if !strings.Contains(first[i], want[i]) {
			t.Errorf("%s\ngot  %s\nwant %s", frames[i], first[i], want[i])
		}
	}
	wall := Options{Mode: tools.ModeProduction, Sessions: session.Options{Now: func() time.Time { return time.Unix(0, 0).UTC() }}}
	_, base := start(t, dicerEnv(), wall)
	if got := rpcPostCaller(t, base, createSession(t, base))("roll", `{}`); !strings.Contains(got.Data, "at 1970-01-01T00:00:00Z") {
		t.Errorf("production has %s, want its own clock", got.Data)
	}
}

func TestClocksThatAreWrong(t *testing.T) {
	for want, clock := range map[string]gym.Clock{
		"its Clock has a Step of -1s: want 0 or more": {Start: time.Unix(0, 0), Step: -time.Second},
		"its Clock has a Step and no Start":           {Step: time.Second},
	} {
		env := dicerEnv()
		env.Clock = clock
		if _, err := New(t.Context(), env, Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// Each session has its own place in a cassette, from the beginning at each reset; a divergence is a failed call that counts.
func TestReplayPositions(t *testing.T) {
	path := record(t, func(_ *Server, base string) {
		ws := dial(t, base+"/ws")
		ws.ask(stepFrame("count", `{}`))
		ws.ask(stepFrame("count", `{}`))
		ws.ask(`{"type":"reset"}`)
		ws.ask(stepFrame("visit", `{"url":"b"}`))
	})
	_, base := start(t, webEnv(tools.OpenCassette(path).Strict()), Options{})
	one, two := dial(t, base+"/ws"), dial(t, base+"/ws")
	has := func(ws wsClient, frame, want string) {
		t.Helper()
		if got := ws.ask(frame); !strings.Contains(got, want) {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	count, reset := stepFrame("count", `{}`), `{"type":"reset"}`
	has(one, count, `"data":1`)
	has(two, count, `"data":1`)
	has(one, count, `"data":2`)
	has(one, reset, `"done":false`)
	has(one, count, `"data":1`)
	has(one, stepFrame("visit", `{"url":"b","key":"hunter2"}`), `{"error_type":"execution_error","message":"the call diverges from the recording (line 3): `+
		`tool \"visit\" with {\"limit\":10,\"url\":\"b\"} was not recorded here; the server's log has what was"}`)
	has(one, `{"type":"state"}`, `"step_count":2`)
	has(one, count, `"data":2`)
	has(one, reset, `"done":false`)
	has(one, stepFrame("visit", `{"url":"b"}`), `"text":"b (10)"`) // the other recorded episode
	has(two, count, `"data":2`)
}

// The whole result of a tool that makes one comes back with all that is in it.
func TestReplayOfWholeResults(t *testing.T) {
	frame := stepFrame("picture", `{}`)
	var live string
	path := record(t, func(_ *Server, base string) { live = dial(t, base+"/ws").ask(frame) })
	_, base := start(t, webEnv(tools.OpenCassette(path)), Options{})
	if diff := cmp.Diff(live, dial(t, base+"/ws").ask(frame)); diff != "" {
		t.Errorf("(-live +replayed):\n%s", diff)
	}
}

// A fullDisk takes the header and nothing else.
type fullDisk struct{ full bool }

func (d *fullDisk) Write(b []byte) (int, error) {
	if d.full {
		return 0, errors.New("no space left on device")
	}
	d.full = true
	return len(b), nil
}

func TestRecordingThatFailsHarmsNoCall(t *testing.T) {
	r, err := tools.NewRecorder(&fullDisk{})
	if err != nil {
		t.Fatal(err)
	}
	log := newEventLog()
	o := log.options()
	o.Recorder = r
	_, base := start(t, webEnv(nil), o)
	call := rpcPostCaller(t, base, createSession(t, base))
	for i := range 3 {
		if got := call("count", `{}`); got.Data != fmt.Sprint(i+1) {
			t.Errorf("got %v", got)
		}
	}
	log.want(t, "record_error", "tool", "count", "error", "no space left on device")
	if found, _ := log.find("record_error"); len(found) != 1 {
		t.Errorf("told %d times", len(found))
	}
}

// Servers of an author's own, and mounted ones, mark their secrets by writeOnly.
func TestSecretsOfServersAreNotRecorded(t *testing.T) {
	const schema = `{"type":"object","properties":{"key":{"type":"string","writeOnly":true},"how":{"type":"string"}}}`
	handler := func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if bytes.Contains(r.Params.Arguments, []byte("wait")) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		if bytes.Contains(r.Params.Arguments, []byte("fail")) {
			return nil, fmt.Errorf("not with %s", r.Params.Arguments)
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "opened with " + string(r.Params.Arguments)}}}, nil
	}
	build := func() *mcp.Server {
		s := mcp.NewServer(&mcp.Implementation{Name: "safe", Version: "1"}, nil)
		s.AddTool(&mcp.Tool{Name: "open", InputSchema: json.RawMessage(schema)}, handler)
		return s
	}
	own := gym.Environment[*mcp.Server]{
		Name: "own", New: func(context.Context, *gym.Session) (*mcp.Server, error) { return build(), nil },
		Server: func(s *mcp.Server) *mcp.Server { return s },
	}
	mounted := gym.Environment[*lab]{
		Name: "mounted", New: func(context.Context, *gym.Session) (*lab, error) { return &lab{}, nil },
		Mounts: []gym.Mount{{Connect: mount.Transport(func(ctx context.Context) (mcp.Transport, error) {
			here, there := mcp.NewInMemoryTransports()
			_, err := build().Connect(context.WithoutCancel(ctx), there, nil)
			return here, err
		})}},
	}
	for _, env := range []gym.Definition{own, mounted} {
		text := recordedCalls(t, env, "open", `{"key":"hunter2"}`, `{"key":"hunter2","how":"fail"}`, `{"key":"hunter2","how":"wait"}`, `{"key":"hunter2","how":5}`)
		if strings.Contains(text, "hunter2") || strings.Count(text, "\n") != 4 || !strings.Contains(text, `"type":"timeout"`) {
			t.Errorf("recorded\n%s", text)
		}
	}
}

// An author's middleware may change a request. What is recorded is what came, in time or not.
func TestRecordedArgumentsAreThoseThatCame(t *testing.T) {
	addsToken := func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if call, ok := req.(*mcp.CallToolRequest); ok {
				if bytes.Contains(call.Params.Arguments, []byte("late")) {
					<-ctx.Done()
				}
				call.Params.Name, call.Params.Arguments = "look", json.RawMessage(`{"token":"hunter2"}`)
			}
			return next(ctx, method, req)
		}
	}
	env := gym.Environment[*mcp.Server]{
		Name: "own", Server: func(s *mcp.Server) *mcp.Server { return s },
		New: func(context.Context, *gym.Session) (*mcp.Server, error) {
			s := mcp.NewServer(&mcp.Implementation{Name: "own", Version: "1"}, nil)
			for _, name := range []string{"look", "glance"} {
				s.AddTool(&mcp.Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`)}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
					return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "a door"}}}, nil
				})
			}
			s.AddReceivingMiddleware(addsToken)
			return s, nil
		},
	}
	text := recordedCalls(t, env, "glance", `{"at":"once"}`, `{"at":"late"}`)
	if strings.Contains(text, "hunter2") || strings.Contains(text, `"look"`) || !strings.Contains(text, `"once"`) || !strings.Contains(text, `"late"`) || !strings.Contains(text, `"type":"timeout"`) {
		t.Errorf("recorded\n%s", text)
	}
}

func TestRecordFlag(t *testing.T) {
	path := filepath.Join(t.TempDir(), "calls.jsonl")
	for i := range 2 {
		c, stderr, _, code := runPipes(t, webEnv(nil), "-record", path)
		c.send(rpcCall("count", `{}`, ""))
		c.receive()
		c.in.Close()
		if got := <-code; got != exitOK {
			t.Fatalf("run %d: exit code %d: %v", i, got, stderr)
		}
	}
	b, err := os.ReadFile(path)
	want := strings.Repeat(`{"openenv_cassette":1}`+"\n"+`{"session":1,"episode":0,"tool":"count","arguments":{},"value":1}`+"\n", 2)
	if err != nil || string(b) != want {
		t.Errorf("recorded %s, %v", b, err)
	}
	if err := os.WriteFile(path, []byte("a shopping list\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	getenv := func(name string) string {
		if name == "OPENENV_RECORD" {
			return path
		}
		return ""
	}
	code := Run(t.Context(), webEnv(nil), []string{"-addr", "127.0.0.1:0"}, getenv, nil, io.Discard, &stderr)
	if code != exitUsage || !strings.Contains(stderr.String(), "-record: "+path+": it is not empty and no recording") {
		t.Errorf("exit code %d: %s", code, &stderr)
	}
}

// recordedCalls is the recording of some calls of a tool, each of which has 50 ms.
func recordedCalls(t *testing.T, env gym.Definition, tool string, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	r, err := tools.NewRecorder(&out)
	if err != nil {
		t.Fatal(err)
	}
	_, base := start(t, env, Options{Recorder: r, Sessions: session.Options{ToolTimeout: 50 * time.Millisecond}})
	id := createSession(t, base)
	for _, a := range args {
		post(t, base+"/mcp", rpcCall(tool, a, id))
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}
