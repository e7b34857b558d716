package tools

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"github.com/openenv-go/openenv-go/pkg/internal/strictjson"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newServer() *mcp.Server {
	return mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ServerOptions{
		Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}},
	})
}

// connect gives a client of srv whose calls find env.
func connect(t *testing.T, srv *mcp.Server, env any) *mcp.ClientSession {
	t.Helper()
	srv.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			return next(WithEnvironment(ctx, env), method, req)
		}
	})
	here, there := mcp.NewInMemoryTransports()
	server, err := srv.Connect(t.Context(), there, nil)
	if err != nil {
		t.Fatal(err)
	}
	client, err := mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, nil).Connect(t.Context(), here, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		client.Close()
		server.Wait()
	})
	return client
}

func listed(t *testing.T, client *mcp.ClientSession) map[string]*mcp.Tool {
	t.Helper()
	out := map[string]*mcp.Tool{}
	for tool, err := range client.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		out[tool.Name] = tool
	}
	return out
}

func fn(*desk, context.Context, None) (int, error) { return 1, nil }

func TestRegisterErrors(t *testing.T) {
	type bad struct{ F func() }
	set := New(
		Func("fine", "", fn),
		Func("reset", "", fn), Func("step", "", fn), Func("state", "", fn), Func("close", "", fn),
		Func("", "", fn), Func("two words", "", fn), Func("näme", "", fn), Func(strings.Repeat("a", 129), "", fn), Func("a/b", "", fn),
		Func("twin", "", fn), Func("twin", "", fn),
		Func[*desk, None, int]("nil_func", "", nil),
		Do[*desk, None]("nil_do", "", nil),
		Modes("nil_mode", "", Simulation(fn), Production[*desk, None, int](nil)),
		Modes("no_mode", "", Variant[*desk, None, int]{}),
		Modes("two_variants", "", Simulation(fn), Production(fn), Simulation(fn), Production(fn)),
		Func("bad_types", "", func(*desk, context.Context, bad) (bad, error) { return bad{}, nil }),
		Func[*desk, string, chan int]("close", "", nil),
		Func("latin1", "caf\xe9", fn), Func("latin1_title", "", fn, Title("\xe9")),
		Func("latin1_hint", "", fn, Annotations(mcp.ToolAnnotations{Title: "\xe9"})),
		Tool[*desk]{},
	)
	srv := newServer()
	err := set.Register(srv, ModeSimulation)
	want := []string{
		`tool "reset": the names [reset step state close] are reserved`,
		`tool "step": the names [reset step state close] are reserved`,
		`tool "state": the names [reset step state close] are reserved`,
		`tool "close": the names [reset step state close] are reserved`,
		`tool "": a name is 1 to 128 of the characters A-Z a-z 0-9 _ - and the dot`,
		`tool "two words": a name is 1 to 128 of the characters A-Z a-z 0-9 _ - and the dot`,
		`tool "näme": a name is 1 to 128 of the characters A-Z a-z 0-9 _ - and the dot`,
		`tool "` + strings.Repeat("a", 129) + `": a name is 1 to 128 of the characters A-Z a-z 0-9 _ - and the dot`,
		`tool "a/b": a name is 1 to 128 of the characters A-Z a-z 0-9 _ - and the dot`,
		`tool "twin": the name is taken by another tool of the set`,
		`tool "nil_func": the function is nil`,
		`tool "nil_do": the function is nil`,
		`tool "nil_mode": the function is nil`,
		`tool "no_mode": a variant without a mode: make it with Simulation or Production`,
		`tool "two_variants": two variants for simulation`,
		`tool "two_variants": two variants for production`,
		`tool "bad_types": input: tools.bad.F: the type func() has no JSON form`,
		`tool "bad_types": output: tools.bad.F: the type func() has no JSON form`,
		`tool "close": input: string: an input must be a JSON object, so its type must be a struct or a map`,
		`tool "close": output: the type chan int has no JSON form`,
		`tool "close": the function is nil`,
		`tool "close": the names [reset step state close] are reserved`,
		`tool "latin1": the title or description "caf\xe9" is not valid UTF-8`,
		`tool "latin1_title": the title or description "\xe9" is not valid UTF-8`,
		`tool "latin1_hint": the title or description "\xe9" is not valid UTF-8`,
		`tool 22 of the set is the zero Tool: make it with Func, Do or Modes`,
	}
	if diff := cmp.Diff(want, strings.Split(fmt.Sprint(err), "\n")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if names := slices.Collect(maps.Keys(listed(t, connect(t, srv, nil)))); len(names) > 0 {
		t.Errorf("registered all the same: %v", names)
	}
	if again := set.Register(srv, ModeSimulation); fmt.Sprint(again) != fmt.Sprint(err) {
		t.Errorf("the second time: %v", again)
	}
}

func TestRegisterByMode(t *testing.T) {
	answer := func(s string) func(*desk, context.Context, None) (string, error) {
		return func(*desk, context.Context, None) (string, error) { return s, nil }
	}
	set := New(
		Func("both", "", answer("both")),
		Modes("variants", "", Production(answer("live")), Simulation(answer("recorded"))),
		Modes("only_simulation", "", Simulation(answer("recorded"))),
		Modes("only_production", "", Production(answer("live"))),
	)
	for _, test := range []struct {
		mode        Mode
		want        map[string]string
		other       string
		elsewhereIn Mode
	}{
		{ModeSimulation, map[string]string{"both": "both", "variants": "recorded", "only_simulation": "recorded"}, "only_production", ModeProduction},
		{ModeProduction, map[string]string{"both": "both", "variants": "live", "only_production": "live"}, "only_simulation", ModeSimulation},
	} {
		t.Run(string(test.mode), func(t *testing.T) {
			srv := newServer()
			if err := set.Register(srv, test.mode); err != nil {
				t.Fatal(err)
			}
			client := connect(t, srv, &desk{})
			got := map[string]string{}
			for name := range listed(t, client) {
				res, err := client.CallTool(t.Context(), &mcp.CallToolParams{Name: name})
				if err != nil {
					t.Fatal(err)
				}
				got[name] = res.Content[0].(*mcp.TextContent).Text
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if m, ok := set.ElsewhereOnly(test.other, test.mode); !ok || m != test.elsewhereIn {
				t.Errorf("ElsewhereOnly(%s) = %v, %v", test.other, m, ok)
			}
			for _, name := range []string{"both", "variants", "no such tool"} {
				if m, ok := set.ElsewhereOnly(name, test.mode); ok {
					t.Errorf("ElsewhereOnly(%s) = %v", name, m)
				}
			}
		})
	}
	var none *Set[*desk]
	if _, ok := none.ElsewhereOnly("a", ModeSimulation); ok || none.Register(newServer(), ModeSimulation) != nil {
		t.Error("a nil set has tools")
	}
}

func TestCheckNames(t *testing.T) {
	if err := CheckNames([]*mcp.Tool{{Name: "fetch"}, {Name: "Reset"}}); err != nil {
		t.Error(err)
	}
	for _, name := range ReservedNames {
		if err := CheckNames([]*mcp.Tool{{Name: "fetch"}, {Name: name}}); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Tools of many types, through a server of the SDK and its client: the SDK takes their schemas, and what comes back fits
// the schema that the client was shown.
func TestThroughTheSDK(t *testing.T) {
	type search struct {
		Query  string     `json:"query" minLength:"1" jsonschema:"what to look for"`
		Limit  int        `json:"limit" default:"10" minimum:"1" maximum:"100"`
		Colors []color    `json:"colors,omitempty" enum:"red,green"`
		Near   *point     `json:"near"`
		Shapes []shape    `json:"shapes,omitempty"`
		Free   any        `json:"free,omitempty"`
		Pair   pair[int8] `json:"pair,omitzero"`
	}
	set := New(
		Func("search", "Search.", func(d *desk, _ context.Context, in search) (search, error) { d.calls++; return in, nil }),
		Func("add", "Add.", func(_ *desk, _ context.Context, in point) (int, error) { return in.X + in.Y, nil }),
		Func("list", "List.", func(*desk, context.Context, None) ([]shape, error) { return nil, nil }),
		Func("union", "Give one.", func(*desk, context.Context, unionIn) (shape, error) { return shape{Kind: "square", Side: 2}, nil }),
		Func("map", "Give a map.", func(_ *desk, _ context.Context, in map[string]any) (map[string]any, error) { return in, nil }),
		Func("image", "Give a picture.", func(*desk, context.Context, None) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.ImageContent{Data: []byte{1}, MIMEType: "image/png"}}}, nil
		}),
		Do("do", "Do it.", func(d *desk, _ context.Context, _ None) error { d.calls++; return nil }),
		Do("fail", "Fail.", func(*desk, context.Context, None) error { return Fail("no such page") }),
	)
	srv, env := newServer(), &desk{}
	if err := set.Register(srv, ModeProduction); err != nil {
		t.Fatal(err)
	}
	client := connect(t, srv, env)
	specs := listed(t, client)
	for _, test := range []struct {
		tool, args, structured string
		content                int
		isError                bool
	}{
		{"search", `{"query":"a"}`, `{"query":"a","limit":10,"near":null}`, 1, false},
		{"search", `{"query":"a","limit":20.0,"colors":["red"],"near":{"X":1,"Y":2},"shapes":[{"kind":"circle","radius":1}],"free":[null],"pair":{"first":1}}`,
			`{"query":"a","limit":20,"colors":["red"],"near":{"X":1,"Y":2},"shapes":[{"kind":"circle","radius":1}],"free":[null],"pair":{"first":1,"second":null}}`, 1, false},
		{"add", `{"X":1,"Y":2}`, `{"result":3}`, 1, false},
		{"list", `{}`, `{"result":[]}`, 1, false},
		{"union", `{"circle":1}`, `{"result":{"kind":"square","side":2}}`, 1, false},
		{"map", `{"a":{"b":[1,null]}}`, `{"a":{"b":[1,null]}}`, 1, false},
		{"image", `{}`, `null`, 1, false},
		{"do", `{}`, `null`, 0, false},
		{"fail", `{}`, `null`, 1, true},
	} {
		res, err := client.CallTool(t.Context(), &mcp.CallToolParams{Name: test.tool, Arguments: strictjson.Raw(test.args)})
		if err != nil {
			t.Errorf("%s: %v", test.tool, err)
			continue
		}
		structured := marshal(res.StructuredContent)
		if canonicalJSON(t, string(structured)) != canonicalJSON(t, test.structured) || len(res.Content) != test.content || res.IsError != test.isError {
			t.Errorf("%s: structured %s, want %s, content %v, error %v", test.tool, structured, test.structured, res.Content, res.IsError)
		}
		judge := newJudge(t, marshalSchema(t, specs[test.tool].InputSchema))
		if err := judge.accepts([]byte(test.args)); err != nil {
			t.Errorf("%s: the schema that the client got refuses the arguments: %v", test.tool, err)
		}
		if specs[test.tool].OutputSchema == nil {
			continue
		}
		judge = newJudge(t, marshalSchema(t, specs[test.tool].OutputSchema))
		if err := judge.accepts(structured); err != nil {
			t.Errorf("%s: the schema that the client got refuses the result: %v", test.tool, err)
		}
	}
	if env.calls != 3 {
		t.Errorf("the environment saw %d calls", env.calls)
	}
	for args, want := range map[string]string{
		`{"query":"","colors":["blue"]}`:      `invalid arguments: colors.0: want one of "red", "green"; query: want at least 1 characters, got 0`,
		`{"query":"a","pair":{"first":300}}`:  `invalid arguments: pair.first: want at most 127`,
		`{"query":"a","Query":"b","limit":0}`: `invalid arguments: Query: unknown field; limit: want at least 1`,
	} {
		_, err := client.CallTool(t.Context(), &mcp.CallToolParams{Name: "search", Arguments: strictjson.Raw(args)})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", args, err, want)
		}
	}
}

// One set serves many sessions at once, each with its own environment value.
func TestOneSetManySessions(t *testing.T) {
	set := New(Func("count", "Count.", func(d *desk, _ context.Context, in struct {
		By int `json:"by" default:"1"`
	}) (int, error) {
		d.calls += in.By
		return d.calls, nil
	}))
	tool := set.tools[0]
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			d := &desk{}
			for i := range 100 {
				res, err := serve("count", tool.handlers[ModeSimulation])(WithEnvironment(context.Background(), d), &mcp.CallToolRequest{
					Params: &mcp.CallToolParamsRaw{Name: "count"},
				})
				if err != nil {
					t.Error(err)
					return
				}
				if got := res.Content[0].(*mcp.TextContent).Text; got != fmt.Sprint(i+1) {
					t.Errorf("count %s after %d calls", got, i+1)
				}
			}
		})
	}
	wg.Wait()
}

func TestErrorText(t *testing.T) {
	err := fmt.Errorf("door: %w", &Error{Type: Timeout, Message: "too late", Err: context.DeadlineExceeded})
	if !errors.Is(err, context.DeadlineExceeded) || err.Error() != "door: too late" {
		t.Errorf("got %v", err)
	}
	var f *Failure
	if !errors.As(fmt.Errorf("x: %w", Fail("no")), &f) || f.Error() != "no" {
		t.Errorf("got %v", f)
	}
}
