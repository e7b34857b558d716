package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// desk is the environment of these tests.
type desk struct{ calls int }

type none struct{}

// invoke calls a tool as the SDK server does.
func invoke[E any](t *testing.T, tool Tool[E], env E, args string) (*mcp.CallToolResult, error) {
	t.Helper()
	if len(tool.errs) > 0 {
		t.Fatal(tool.errs)
	}
	return serve(tool.spec.Name, tool.handlers[ModeSimulation])(WithEnvironment(t.Context(), env), &mcp.CallToolRequest{
		Params: &mcp.CallToolParamsRaw{Name: tool.spec.Name, Arguments: json.RawMessage(args)},
	})
}

func returning[Out any](out Out, err error) Tool[*desk] {
	return Func("t", "", func(d *desk, _ context.Context, _ None) (Out, error) { d.calls++; return out, err })
}

func TestResults(t *testing.T) {
	for _, test := range []struct {
		name       string
		tool       Tool[*desk]
		text       string // of the content; "" for no content at all
		structured string
		data       string
	}{
		{"string", returning("a \"b\"\n", nil), "a \"b\"\n", `{"result":"a \"b\"\n"}`, `"a \"b\"\n"`},
		{"integer", returning(5, nil), `5`, `{"result":5}`, `5`},
		{"boolean", returning(false, nil), `false`, `{"result":false}`, `false`},
		{"list", returning([]string{"a"}, nil), `["a"]`, `{"result":["a"]}`, `["a"]`},
		{"nil list", returning([]string(nil), nil), `[]`, `{"result":[]}`, `[]`},
		{"struct", returning(point{1, 2}, nil), `{"X":1,"Y":2}`, `{"X":1,"Y":2}`, `{"X":1,"Y":2}`},
		{"pointer to a struct", returning(&point{1, 2}, nil), `{"X":1,"Y":2}`, `{"X":1,"Y":2}`, `{"X":1,"Y":2}`},
		{"nil map", returning(map[string]int(nil), nil), `{}`, `{}`, `{}`},
		{"nil pointer to an integer", returning((*int)(nil), nil), `null`, `{"result":null}`, `null`},
		{"any", returning[any](nil, nil), `null`, `{"result":null}`, `null`},
		{"union", returning(shape{Kind: "circle", Radius: 1}, nil), `{"kind":"circle","radius":1}`, `{"result":{"kind":"circle","radius":1}}`, `{"kind":"circle","radius":1}`},
		{"raw", returning(json.RawMessage(`{"a":9007199254740993}`), nil), `{"a":9007199254740993}`, `{"result":{"a":9007199254740993}}`, `{"a":9007199254740993}`},
		{"nothing", returning(None{}, nil), ``, `null`, `null`},
	} {
		t.Run(test.name, func(t *testing.T) {
			res, err := invoke(t, test.tool, &desk{}, `{}`)
			if err != nil {
				t.Fatal(err)
			}
			text := ""
			if len(res.Content) > 0 {
				text = res.Content[0].(*mcp.TextContent).Text
			}
			if res.Content == nil || len(res.Content) > 1 || text != test.text || res.IsError {
				t.Errorf("content %#v, error: %v", res.Content, res.IsError)
			}
			structured, err := json.Marshal(res.StructuredContent)
			if err != nil || string(structured) != test.structured {
				t.Errorf("structured content %s, %v, want %s", structured, err, test.structured)
			}
			if data, err := Data(res); err != nil || string(data) != test.data {
				t.Errorf("data %s, %v, want %s", data, err, test.data)
			}
			wrapped := strings.HasPrefix(test.structured, `{"result":`)
			if meta := string(marshal(res.Meta)); wrapped != (meta == WrapMetaJSON) || wrapped != IsWrapMeta(res.Meta) || !wrapped && res.Meta != nil {
				t.Errorf("wrapped: %v, meta %s", wrapped, meta)
			}
			spec, _ := test.tool.spec.OutputSchema.(*jsonschema.Schema)
			if spec == nil {
				if test.structured != `null` {
					t.Error("no output schema")
				}
				return
			}
			text = marshalSchema(t, spec)
			if strings.Contains(text, `"x-fastmcp-wrap-result":true`) != wrapped || spec.Type != "object" {
				t.Errorf("output schema %s", text)
			}
			if err := newJudge(t, text).accepts(structured); err != nil {
				t.Errorf("the output schema refuses the result: %v", err)
			}
		})
	}
}

type kept struct{ error }

func TestErrorsOfTools(t *testing.T) {
	own := &Error{Type: TransportError, Tool: "t", Message: "the page did not answer"}
	for _, test := range []struct {
		name string
		tool Tool[*desk]
		args string
		want Error
	}{
		{"error", returning(0, errors.New("disk full")), ``, Error{Type: ExecutionError, Message: "disk full"}},
		{"wrapped error", returning(0, fmt.Errorf("saving: %w", errors.ErrUnsupported)), ``, Error{Type: ExecutionError, Message: "saving: unsupported operation"}},
		{"time-out", returning(0, context.DeadlineExceeded), ``, Error{Type: ExecutionError, Message: "context deadline exceeded"}},
		{"typed error", returning(0, error(own)), ``, *own},
		{"wrapped typed error", returning(0, fmt.Errorf("fetching: %w", own)), ``, *own},
		{"Invalid", returning(0, Invalid("board.3", "the cell is taken")), ``, Error{
			Type: InvalidArgs, Message: "invalid arguments: board.3: the cell is taken",
			Fields: []FieldError{{Type: "value_error", Loc: []any{"board", 3}, Msg: "the cell is taken"}},
		}},
		{"wrapped Invalid", returning(0, fmt.Errorf("move: %w", Invalid("", "no"))), ``, Error{
			Type: InvalidArgs, Message: "invalid arguments: no", Fields: []FieldError{{Type: "value_error", Loc: []any{}, Msg: "no"}},
		}},
		{"bad arguments", returning(0, nil), `{"a":1}`, Error{
			Type: InvalidArgs, Message: "invalid arguments: a: unknown field", Refused: true,
			Fields: []FieldError{{Type: "extra_forbidden", Loc: []any{"a"}, Msg: "unknown field", Input: json.Number("1")}},
		}},
		{"NaN", returning(math.NaN(), nil), ``, Error{Type: ExecutionError, Message: "the value returned cannot be written as JSON: unsupported value: NaN"}},
		{"NaN inside", returning(map[string]any{"a": []any{math.Inf(-1)}}, nil), ``, Error{Type: ExecutionError, Message: "the value returned cannot be written as JSON: a.0: unsupported value: -Inf"}},
		{"invalid UTF-8", returning("\xff", nil), ``, Error{Type: ExecutionError, Message: "the value returned cannot be written as JSON: invalid UTF-8"}},
		{"nil pointer to a struct", returning((*point)(nil), nil), ``, Error{Type: ExecutionError, Message: "the value returned is null where an object is due"}},
		{"nil result", returning((*mcp.CallToolResult)(nil), nil), ``, Error{Type: ExecutionError, Message: "the tool returned neither a result nor an error"}},
		{"value outside of its schema", returning(struct {
			N int `maximum:"1"`
		}{2}, nil), ``, Error{Type: ExecutionError, Message: "the value returned does not fit its schema: N: want at most 1"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			res, err := invoke(t, test.tool, &desk{}, test.args)
			var got *Error
			if res != nil || !errors.As(err, &got) {
				t.Fatalf("got %v, %v, want an *Error", res, err)
			}
			test.want.Tool = "t"
			if diff := cmp.Diff(test.want, *got, cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Err" }, cmp.Ignore())); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if got.Error() != got.Message {
				t.Errorf("Error() = %q", got.Error())
			}
		})
	}
	cause := kept{errors.New("x")}
	_, err := invoke(t, returning(0, fmt.Errorf("outer: %w", cause)), &desk{}, "")
	if !errors.As(err, new(kept)) {
		t.Errorf("what the function returned is not wrapped: %v", err)
	}
}

// A tool's own failure is a result; a tool that was never run, because its arguments are bad, was never run.
func TestFail(t *testing.T) {
	for _, err := range []error{Fail("no such page"), Failf("no such %s", "page"), fmt.Errorf("fetch: %w", Fail("no such page"))} {
		res, callErr := invoke(t, returning(5, err), &desk{}, "")
		if callErr != nil {
			t.Fatal(callErr)
		}
		want := &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: "no such page"}}}
		if diff := cmp.Diff(want, res, cmp.AllowUnexported(mcp.CallToolResult{})); diff != "" {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
		if data, err := Data(res); err != nil || string(data) != `"no such page"` {
			t.Errorf("data %s, %v", data, err)
		}
	}
	d := &desk{}
	if _, err := invoke(t, returning(5, nil), d, `{"a":1}`); err == nil || d.calls != 0 {
		t.Errorf("the function ran on bad arguments: %v", err)
	}
	if _, err := invoke(t, returning(5, nil), d, ``); err != nil || d.calls != 1 {
		t.Errorf("no arguments at all: %v", err)
	}
}

// A result of the author's own making goes out untouched.
func TestCallToolResult(t *testing.T) {
	own := &mcp.CallToolResult{Content: []mcp.Content{&mcp.ImageContent{Data: []byte{1}, MIMEType: "image/png"}}, Meta: mcp.Meta{"a": 1}}
	res, err := invoke(t, returning(own, nil), &desk{}, "")
	if err != nil || res != own {
		t.Errorf("got %v, %v", res, err)
	}
	if data, err := Data(res); err != nil || string(data) != "null" {
		t.Errorf("data %s, %v", data, err)
	}
	structured := Func("t", "", func(*desk, context.Context, None) (*mcp.CallToolResult, error) { return own, nil },
		OutputSchema(&jsonschema.Schema{Type: "object", Properties: map[string]*jsonschema.Schema{"a": {}}}))
	if got := marshalSchema(t, structured.spec.OutputSchema); got != `{"type":"object","properties":{"a":`+anyJSON+`}}` {
		t.Errorf("output schema %s", got)
	}
	list := Func("t", "", func(*desk, context.Context, None) (*mcp.CallToolResult, error) { return own, nil },
		OutputSchema(&jsonschema.Schema{Type: "array"}))
	if len(list.errs) != 1 || !strings.Contains(list.errs[0].Error(), "must be of type object") {
		t.Errorf("got %v", list.errs)
	}
}

// Data reads results of other libraries too.
func TestData(t *testing.T) {
	wrap := mcp.Meta{"fastmcp": map[string]any{"wrap_result": true}}
	for _, test := range []struct {
		name string
		res  mcp.CallToolResult
		want string
	}{
		{"structured", mcp.CallToolResult{StructuredContent: map[string]any{"a": 1}}, `{"a":1}`},
		{"structured, not marked", mcp.CallToolResult{StructuredContent: map[string]any{"result": 1}}, `{"result":1}`},
		{"wrapped", mcp.CallToolResult{Meta: wrap, StructuredContent: json.RawMessage(`{"result":[1]}`)}, `[1]`},
		{"wrapped, without a result", mcp.CallToolResult{Meta: wrap, StructuredContent: json.RawMessage(`{}`)}, `null`},
		{"marked otherwise", mcp.CallToolResult{Meta: mcp.Meta{"fastmcp": true}, StructuredContent: json.RawMessage(`{"result":1}`)}, `{"result":1}`},
		{"text", mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "a<b"}}}, `"a<b"`},
		{"two texts", mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{}, &mcp.TextContent{}}}, `null`},
		{"nothing", mcp.CallToolResult{}, `null`},
	} {
		got, err := Data(&test.res)
		if err != nil || canonicalJSON(t, string(got)) != canonicalJSON(t, test.want) {
			t.Errorf("%s: %s, %v, want %s", test.name, got, err, test.want)
		}
	}
}

// A frozen result does not change with what it was made of, and loses nothing.
func TestFreeze(t *testing.T) {
	live := map[string]any{"n": json.Number("9007199254740993"), "list": []int{1}}
	content := &mcp.TextContent{Text: "before"}
	res := &mcp.CallToolResult{
		Content: []mcp.Content{content, &mcp.ImageContent{Data: []byte{1}, MIMEType: "image/png"}}, StructuredContent: live,
		Meta: mcp.Meta{"big": json.Number("9007199254740993")}, IsError: true,
	}
	want := string(marshal(res))
	frozen, err := Freeze(res)
	if err != nil {
		t.Fatal(err)
	}
	live["n"], content.Text, res.Meta["big"] = 1, "after", 2
	if got := string(marshal(frozen)); canonicalJSON(t, got) != canonicalJSON(t, want) {
		t.Errorf("got %s, want %s", got, want)
	}
	if data, err := Data(frozen); err != nil || canonicalJSON(t, string(data)) != `{"list":[1],"n":9007199254740993}` {
		t.Errorf("data %s, %v", data, err)
	}
	wrapped, err := Freeze(&mcp.CallToolResult{Meta: mcp.Meta{"fastmcp": map[string]any{"wrap_result": true}}, StructuredContent: map[string]any{"result": []int{1}}})
	if err != nil {
		t.Fatal(err)
	}
	if data, err := Data(wrapped); err != nil || string(data) != "[1]" {
		t.Errorf("data of a wrapped one: %s, %v", data, err)
	}
	for _, bad := range []any{math.NaN(), func() {}, json.RawMessage(`{`)} {
		if _, err := Freeze(&mcp.CallToolResult{StructuredContent: bad}); err == nil {
			t.Errorf("%v was frozen", bad)
		}
	}
	made, err := invoke(t, returning(5, nil), &desk{}, "")
	if err != nil {
		t.Fatal(err)
	}
	if again, err := Freeze(made); err != nil || again != made {
		t.Errorf("a result of this package was copied: %v", err)
	}
}

// A panic is not the tools' to handle: whoever calls them knows what to log.
func TestPanicsPass(t *testing.T) {
	tool := Func("t", "", func(*desk, context.Context, None) (int, error) { panic("bang") })
	defer func() {
		if r := recover(); r != "bang" {
			t.Errorf("recovered %v", r)
		}
	}()
	res, err := invoke(t, tool, &desk{}, "")
	t.Errorf("got %v, %v", res, err)
}

func TestOutsideOfASession(t *testing.T) {
	tool := returning(5, nil)
	for name, ctx := range map[string]context.Context{
		"no environment":      t.Context(),
		"another type":        WithEnvironment(t.Context(), desk{}),
		"a nil environment":   WithEnvironment(t.Context(), nil),
		"another context key": context.WithValue(t.Context(), none{}, &desk{}),
	} {
		_, err := serve("t", tool.handlers[ModeSimulation])(ctx, &mcp.CallToolRequest{Params: &mcp.CallToolParamsRaw{Name: "t"}})
		var e *Error
		if !errors.As(err, &e) || e.Type != ExecutionError || e.Message != "the tool was called outside of a session" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestOptions(t *testing.T) {
	tool := Func("t", "Do it.", func(_ *desk, _ context.Context, in map[string]any) (any, error) { return in["a"], nil },
		Title("The tool"), Annotations(mcp.ToolAnnotations{ReadOnlyHint: true}),
		InputSchema(&jsonschema.Schema{Type: "object", Required: []string{"a"}}),
		OutputSchema(&jsonschema.Schema{Type: "integer", Minimum: new(float64)}),
	)
	b, err := json.Marshal(tool.spec)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"annotations":{"idempotentHint":false,"readOnlyHint":true},"description":"Do it.","inputSchema":{"type":"object","required":["a"]},"name":"t",
		"outputSchema":{"type":"object","properties":{"result":{"type":"integer","minimum":0}},"required":["result"],"x-fastmcp-wrap-result":true},"title":"The tool"}`
	if diff := cmp.Diff(canonicalJSON(t, want), canonicalJSON(t, string(b))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if res, err := invoke(t, tool, nil, `{"a":5}`); err != nil || fmt.Sprint(res.Content[0].(*mcp.TextContent).Text) != "5" {
		t.Errorf("got %v, %v", res, err)
	}
	if _, err := invoke(t, tool, nil, `{}`); err == nil || err.Error() != "invalid arguments: a: field required" {
		t.Errorf("got %v", err)
	}
	if _, err := invoke(t, tool, nil, `{"a":-1}`); err == nil || !strings.Contains(err.Error(), "does not fit its schema: want at least 0") {
		t.Errorf("got %v", err)
	}
}

func TestParseMode(t *testing.T) {
	for _, m := range []Mode{ModeSimulation, ModeProduction} {
		if got, err := ParseMode(string(m)); got != m || err != nil {
			t.Errorf("ParseMode(%q) = %v, %v", m, got, err)
		}
	}
	for _, s := range []string{"", "Simulation", "prod"} {
		if _, err := ParseMode(s); err == nil || !strings.Contains(err.Error(), "want simulation or production") {
			t.Errorf("ParseMode(%q): %v", s, err)
		}
	}
}
