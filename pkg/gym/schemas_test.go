package gym_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/openenv-go/openenv-go/pkg/gym"
	"github.com/openenv-go/openenv-go/pkg/internal/strictjson"
	"github.com/openenv-go/openenv-go/pkg/tools"
)

// holds compiles a published schema with another library than the one that checks actions, and gives its verdicts. On
// the way it looks for what must not be published.
func holds(t *testing.T, schema *jsonschema.Schema) func(value string) error {
	t.Helper()
	b, err := strictjson.Marshal(schema)
	if err != nil {
		t.Fatal(err)
	}
	var doc any
	if err := json.Unmarshal(b, &doc); err != nil {
		t.Fatal(err)
	}
	if hasBareTrue(doc) {
		t.Errorf("a schema is a bare true, which some agents refuse: %s", b)
	}
	if text := string(b); strings.Contains(text, `"$ref":"`) && !strings.Contains(text, `"$ref":"#`) {
		t.Errorf("the schema refers to another document: %s", b)
	}
	resolved, err := schema.CloneSchemas().Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	return func(value string) error {
		var v any
		if err := json.Unmarshal([]byte(value), &v); err != nil {
			return err
		}
		return resolved.Validate(v)
	}
}

// hasBareTrue looks for true where these schemas have schemas: below the keywords that hold one, or a list or a map of
// them.
func hasBareTrue(schema any) bool {
	obj, ok := schema.(map[string]any)
	if !ok {
		return schema == true
	}
	for name, v := range obj {
		switch name {
		case "properties", "patternProperties", "$defs":
			for _, sub := range v.(map[string]any) {
				if hasBareTrue(sub) {
					return true
				}
			}
		case "anyOf", "oneOf", "allOf":
			if slices.ContainsFunc(v.([]any), hasBareTrue) {
				return true
			}
		case "items", "additionalProperties", "not", "if", "then", "else":
			if hasBareTrue(v) {
				return true
			}
		}
	}
	return false
}

// wire is an observation as it goes out, with reward and done in it and without.
func wire(t *testing.T, o gym.Observed) []string {
	t.Helper()
	appended, err := strictjson.Append(nil, o.Fields)
	if err != nil {
		t.Fatal(err)
	}
	marshalled, err := strictjson.Marshal(o.Fields)
	if err != nil {
		t.Fatal(err)
	}
	if string(appended) != string(marshalled) {
		t.Errorf("appended it is %s, marshalled %s", appended, marshalled)
	}
	if err := strictjson.Check(appended, strictjson.DefaultMaxDepth); err != nil {
		t.Errorf("%s: %v", appended, err)
	}
	out := []string{string(appended)}
	for _, extra := range []string{`"reward":null,"done":false`, `"reward":1.5,"done":true`, `"reward":true`} {
		out = append(out, `{`+extra+`,`+string(appended[1:]))
	}
	return out
}

// A shop is an environment of tools, one for each way a call can end.
type shop struct{}

type item struct {
	Name  string   `json:"name"`
	Price *float64 `json:"price"`
	Tags  []string `json:"tags"`
}

func shopEnv() gym.Environment[*shop] {
	return gym.Environment[*shop]{
		Name: "shop",
		New:  func(context.Context, *gym.Session) (*shop, error) { return &shop{}, nil },
		Tools: tools.New(
			tools.Func("object", "", func(*shop, context.Context, tools.None) (item, error) { return item{}, nil }),
			tools.Func("scalar", "", func(*shop, context.Context, tools.None) (string, error) { return "a", nil }),
			tools.Func("list", "", func(*shop, context.Context, tools.None) ([]item, error) { return nil, nil }),
			tools.Func("any", "", func(_ *shop, _ context.Context, in map[string]any) (any, error) { return in["v"], nil }),
			tools.Do("nothing", "", func(*shop, context.Context, tools.None) error { return nil }),
			tools.Do("fail", "", func(*shop, context.Context, tools.None) error { return tools.Fail("sold out") }),
			tools.Do("break", "", func(*shop, context.Context, tools.None) error { return errors.New("broken") }),
			tools.Do("panic", "", func(*shop, context.Context, tools.None) error { panic("bang") }),
			tools.Func("nan", "", func(*shop, context.Context, tools.None) (float64, error) { return math.NaN(), nil }),
			tools.Func("image", "", func(*shop, context.Context, tools.None) (*mcp.CallToolResult, error) {
				return &mcp.CallToolResult{Content: []mcp.Content{&mcp.ImageContent{Data: []byte{1}, MIMEType: "image/png"}}, Meta: mcp.Meta{"k": "v"}}, nil
			}),
		),
	}
}

// The observation schema of a tool environment takes every answer that its tools can give.
func TestToolObservationSchema(t *testing.T) {
	class := compile(t, shopEnv())
	accepts := holds(t, class.Schemas.Observation)
	i := open(t, class)
	for _, call := range []struct{ tool, args string }{
		{"object", ``}, {"scalar", `{}`}, {"list", `{}`}, {"nothing", `{}`}, {"fail", `{}`}, {"break", `{}`}, {"panic", `{}`}, {"nan", `{}`},
		{"image", `{}`}, {"no such tool", `{}`}, {"object", `{"unknown":1}`},
		{"any", `{"v":null}`}, {"any", `{"v":5}`}, {"any", `{"v":"a"}`}, {"any", `{"v":[1]}`}, {"any", `{"v":{"a":true}}`},
	} {
		answer, _, err := i.CallTool(t.Context(), &mcp.CallToolRequest{Params: &mcp.CallToolParamsRaw{Name: call.tool, Arguments: json.RawMessage(call.args)}})
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range wire(t, answer.Observation()) {
			if err := accepts(o); err != nil {
				t.Errorf("%s of %s: the schema refuses %s: %v", call.tool, call.args, o, err)
			}
		}
	}
	list, err := i.ListTools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, observed := range []gym.Observed{gym.ListObservation(list, nil), gym.ListObservation(nil, nil), gym.ListObservation(nil, errors.New("no"))} {
		for _, o := range wire(t, observed) {
			if err := accepts(o); err != nil {
				t.Errorf("the schema refuses %s: %v", o, err)
			}
		}
	}
	for _, o := range []string{
		`{}`, `{"metadata":{}}`, `{"tool_name":"a"}`, `{"tool_name":"a","result":null}`, `{"tools":[{"name":"a"}]}`, `{"tools":{}}`,
		`{"tool_name":"a","result":null,"error":{"error_type":"other","message":""}}`, `{"tool_name":"a","result":null,"error":null,"extra":1}`,
		`{"tool_name":"a","result":{"content":[]},"error":null}`, `{"tools":[],"reward":"much"}`, `{"tools":[],"done":null}`, `[]`,
	} {
		if accepts(o) == nil {
			t.Errorf("the schema takes %s for an observation", o)
		}
	}
}

// The action schema of a tool environment and the parser of its actions give the same verdict.
func TestToolActionSchema(t *testing.T) {
	class := compile(t, shopEnv())
	if class.Schemas.Action.Title != "CallToolAction" {
		t.Errorf("trainers know tool environments by the title CallToolAction, not %q", class.Schemas.Action.Title)
	}
	accepts := holds(t, class.Schemas.Action)
	var actions []string
	for _, typ := range []string{``, `"type":"call_tool"`, `"type":"list_tools"`, `"type":"step"`, `"type":null`, `"type":5`} {
		for _, name := range []string{``, `"tool_name":"object"`, `"tool_name":""`, `"tool_name":null`, `"tool_name":5`} {
			for _, args := range []string{``, `"arguments":{}`, `"arguments":{"a":[1]}`, `"arguments":[]`, `"arguments":null`} {
				for _, more := range []string{``, `"metadata":{}`, `"metadata":{"a":1}`, `"metadata":null`, `"extra":1`, `"Type":"call_tool"`} {
					members := slices.DeleteFunc([]string{typ, name, args, more}, func(s string) bool { return s == "" })
					actions = append(actions, `{`+strings.Join(members, ",")+`}`)
				}
			}
		}
	}
	good := 0
	for _, a := range append(actions, `[]`, `null`, `"call_tool"`, ` { "tool_name" : "x" } `) {
		bySchema := accepts(a)
		_, byParser := class.ParseAction([]byte(a))
		if (bySchema == nil) != (byParser == nil) {
			t.Errorf("%s: the schema says %v, the parser %v", a, bySchema, byParser)
		}
		var input *tools.InputError
		if byParser != nil && (!errors.As(byParser, &input) || len(input.Fields) == 0) {
			t.Errorf("%s: %v is no *InputError", a, byParser)
		}
		if bySchema == nil {
			good++
		}
	}
	if want := 2*2*3*3 + 3 + 1; good != want {
		t.Errorf("%d of the actions are good, want %d", good, want)
	}
}

// A lab is an environment with an action, observation, options and state of its own, of many types.
type lab struct{}

type labAction struct {
	Kind   string         `json:"kind" enum:"look,take"`
	Amount *float64       `json:"amount" minimum:"0"`
	Extra  map[string]any `json:"extra,omitempty"`
}

type labView struct {
	Seen     []item          `json:"seen"`
	Best     *item           `json:"best"`
	Anything any             `json:"anything"`
	Raw      json.RawMessage `json:"raw"`
	Note     string          `json:"note,omitempty"`
	Metadata labMeta         `json:"metadata"`
}

type labMeta struct {
	Level int `json:"level,omitempty"`
}

type labState struct {
	Shelves map[string][]item `json:"shelves"`
	Last    *labAction        `json:"last"`
	Deep    struct {
		Any any `json:"any"`
	} `json:"deep"`
}

func labEnv(view labView, state labState) gym.Environment[lab] {
	return gym.Environment[lab]{
		Name: "lab",
		New:  func(context.Context, *gym.Session) (lab, error) { return lab{}, nil },
		Reset: gym.Reset(func(lab, context.Context, gym.ResetRequest[tools.None]) (labView, error) {
			return view, nil
		}),
		Act:   gym.Act(func(lab, context.Context, labAction) (labView, gym.Score, error) { return view, gym.Score{}, nil }),
		State: gym.StateOf(func(lab) labState { return state }),
	}
}

func TestOwnSchemas(t *testing.T) {
	price := 2.5
	for n, sample := range []struct {
		view  labView
		state labState
	}{
		{},
		{
			labView{[]item{{Tags: []string{"a"}}}, &item{Price: &price}, map[string]any{"a": []any{nil}}, json.RawMessage(`[1]`), "n", labMeta{3}},
			labState{Shelves: map[string][]item{"a": nil, "b": {{}}}, Last: &labAction{Kind: "look", Amount: &price}},
		},
	} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			class := compile(t, labEnv(sample.view, sample.state))
			i := open(t, class)
			o := reset(t, class, i, `{"seed":1,"whatever":{"a":1}}`)
			accepts := holds(t, class.Schemas.ResetObservation)
			for _, w := range wire(t, o.Observed) {
				if err := accepts(w); err != nil {
					t.Errorf("the schema of reset's observation refuses %s: %v", w, err)
				}
			}
			action, err := class.ParseAction([]byte(`{"kind":"take","amount":null,"metadata":{"a":1}}`))
			if err != nil {
				t.Fatal(err)
			}
			observed, _, err := i.Act(t.Context(), action)
			if err != nil {
				t.Fatal(err)
			}
			accepts = holds(t, class.Schemas.Observation)
			for _, w := range wire(t, observed) {
				if err := accepts(w); err != nil {
					t.Errorf("the schema of observations refuses %s: %v", w, err)
				}
			}
			accepts = holds(t, class.Schemas.State)
			for range 2 {
				state, err := i.State(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if err := accepts(string(state)); err != nil {
					t.Errorf("the schema of the state refuses %s: %v", state, err)
				}
				i.Count(gym.Score{Reward: gym.Bool(true), Done: true})
			}
		})
	}
}

// The schema of an environment's own actions and their parser give the same verdict.
func TestOwnActionSchema(t *testing.T) {
	class := compile(t, labEnv(labView{}, labState{}))
	accepts := holds(t, class.Schemas.Action)
	for action, good := range map[string]bool{
		`{"kind":"look"}`: true, `{"kind":"take","amount":null}`: true, `{"kind":"take","amount":1e1,"extra":{"a":[null]},"metadata":{}}`: true,
		`{}`: false, `{"kind":"steal"}`: false, `{"kind":"take","amount":-1}`: false, `{"kind":"take","amount":"1"}`: false,
		`{"kind":"look","extra":null}`: false, `{"kind":"look","metadata":[]}`: false, `{"Kind":"look","kind":"look"}`: false,
		`{"type":"call_tool","tool_name":"x"}`: false, `{"type":"list_tools"}`: false, `[]`: false, `null`: false,
	} {
		_, err := class.ParseAction([]byte(action))
		if bySchema := accepts(action); (bySchema == nil) != good || (err == nil) != good {
			t.Errorf("%s: the schema says %v, the parser %v", action, bySchema, err)
		}
	}
}

// Without functions of its own an environment still resets to an observation and has a state.
func TestSchemasWithoutFunctions(t *testing.T) {
	class := compile(t, shopEnv())
	i := open(t, class)
	accepts := holds(t, class.Schemas.ResetObservation)
	for _, w := range wire(t, reset(t, class, i, `{}`).Observed) {
		if err := accepts(w); err != nil {
			t.Errorf("the schema of reset's observation refuses %s: %v", w, err)
		}
	}
	state, err := i.State(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	accepts = holds(t, class.Schemas.State)
	if err := accepts(string(state)); err != nil {
		t.Errorf("the schema of the state refuses %s: %v", state, err)
	}
	for _, s := range []string{`{}`, `{"episode_id":"a","step_count":-1,"reward_total":0,"last_reward":null,"done":false}`, strings.Replace(string(state), `{`, `{"extra":1,`, 1)} {
		if accepts(s) == nil {
			t.Errorf("the schema takes %s for a state", s)
		}
	}
}

// What tools/list publishes has no bare true either, and is of type object, as MCP clients want it.
func TestPublishedToolSchemas(t *testing.T) {
	class := compile(t, shopEnv())
	if len(class.Tools) != 10 {
		t.Errorf("%d tools", len(class.Tools))
	}
	for _, tool := range class.Tools {
		for _, schema := range []any{tool.InputSchema, tool.OutputSchema} {
			s, ok := schema.(*jsonschema.Schema)
			if !ok || s == nil {
				continue
			}
			holds(t, s)
			if s.Type != "object" {
				t.Errorf("%s: type %q", tool.Name, s.Type)
			}
		}
	}
}

// open is a type that writes itself, and shows a schema of any object.
type openValue struct{ raw string }

func (o openValue) MarshalJSON() ([]byte, error) { return []byte(o.raw), nil }

func (openValue) JSONSchema() *jsonschema.Schema { return &jsonschema.Schema{Type: "object"} }

// What a type writes beyond its schema never makes an object with one name twice.
func TestNamesThatTheServerWritesToo(t *testing.T) {
	for raw, fails := range map[string]bool{
		`{}`: false, `{"a":1}`: false, `{"metadata":{"a":1}}`: true, `{"a":{"metadata":1}}`: false,
	} {
		env := gym.Environment[lab]{
			Name: "open",
			New:  func(context.Context, *gym.Session) (lab, error) { return lab{}, nil },
			Reset: gym.Reset(func(lab, context.Context, gym.ResetRequest[tools.None]) (openValue, error) {
				return openValue{raw}, nil
			}),
			Act:   gym.Act(func(lab, context.Context, labAction) (labView, gym.Score, error) { return labView{}, gym.Score{}, nil }),
			State: gym.StateOf(func(lab) openValue { return openValue{strings.Replace(raw, "metadata", "done", 1)} }),
		}
		class := compile(t, env)
		i := open(t, class)
		p, err := class.ParseReset([]byte(`{}`), false)
		if err != nil {
			t.Fatal(err)
		}
		if o, err := i.Reset(t.Context(), p); (err != nil) != fails || err != nil && !strings.Contains(err.Error(), `"metadata"`) {
			t.Errorf("a reset that returns %s: %s, %v", raw, text(t, o.Fields), err)
		}
		if state, err := i.State(t.Context()); (err != nil) != fails || err != nil && !strings.Contains(err.Error(), `"done"`) {
			t.Errorf("a state like %s: %s, %v", raw, state, err)
		}
	}
}
