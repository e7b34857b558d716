package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type login struct {
	User string `json:"user"`
	Pass string `json:"pass" secret:"true"`
	Pin  *int   `json:"pin" secret:"true"`
	vault
	Logins []struct {
		Key string `json:"key,omitempty" secret:"true"`
		At  string `json:"at"`
	} `json:"logins,omitempty"`
	ByName map[string]vaultItem `json:"by_name,omitempty"`
	Keys   map[string]string    `json:"keys,omitempty" secret:"true"`
}

type vault struct {
	Door vaultItem `json:"door" secret:"true"`
}

type vaultItem struct {
	Code string `json:"code,omitempty" secret:"true"`
	Name string `json:"name,omitempty"`
}

type ticket struct {
	User  string      `json:"user"`
	Token string      `json:"token" secret:"true"`
	All   []vaultItem `json:"all"`
}

const loginArgs = `{"user":"ann","pass":"hunter2","pin":4711,"door":{"code":"sesame","name":"back-door"},
	"logins":[{"key":"k-e-y-1","at":"bank"}],"by_name":{"x":{"code":"sekrit","name":"shown"}},"keys":{"a":"alpha-key"}}`

func TestSecretsAreNotRecorded(t *testing.T) {
	s := newStudio(t)
	ok := func(_ *desk, _ context.Context, in login) (ticket, error) {
		return ticket{in.User + " with " + in.Pass, "tok-en", []vaultItem{{"sesame", "n"}, {Name: "m"}}}, nil
	}
	bad := func(_ *desk, _ context.Context, in login) (ticket, error) {
		return ticket{}, fmt.Errorf("no: %q, %d", in.Pass, *in.Pin)
	}
	refused := func(_ *desk, _ context.Context, in login) (ticket, error) {
		return ticket{}, &InputError{[]FieldError{{Type: "value_error", Loc: []any{"pass"}, Msg: "not " + in.Pass, Input: in.Pass}}}
	}
	no := func(_ *desk, _ context.Context, in login) (string, error) { return "", Fail("not " + in.Pass) }
	echo := func(*desk, context.Context, None) (map[string]string, error) {
		return map[string]string{"tok-en": "the last was hunter2"}, nil
	}
	whole := func(*desk, context.Context, login) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{
			Content:           []mcp.Content{&mcp.TextContent{Text: "xy and 4711"}},
			StructuredContent: map[string]any{"a": "xy", "b": 9007199254740993},
		}, nil
	}
	list := func(*desk, context.Context, None) ([]vaultItem, error) { return []vaultItem{{"sesame", "n"}}, nil }
	marked := &jsonschema.Schema{Type: "object", Properties: map[string]*jsonschema.Schema{"a": {WriteOnly: true}}}
	tools := []Tool[*desk]{
		Func("ok", "", ok), Func("bad", "", bad), Func("refused", "", refused), Func("no", "", no), Func("whole", "", whole, OutputSchema(marked)),
	}
	for _, tool := range tools {
		s.call(tool, loginArgs)
	}
	s.call(Func("echo", "", echo), ``)
	s.call(Func("list", "", list), ``)
	s.call(tools[0], strings.Replace(loginArgs, `"user":"ann"`, `"user":5`, 1)) // never reaches the tool
	for _, secret := range []string{"hunter2", "4711", "sesame", "back-door", "k-e-y-1", "sekrit", "alpha-key", "tok-en"} {
		if strings.Contains(s.out.String(), secret) {
			t.Errorf("%s is in the recording:\n%s", secret, s.out.String())
		}
	}
	args := `"arguments":{"by_name":{"x":{"code":"[secret]","name":"shown"}},"door":"[secret]","keys":"[secret]","logins":[{"at":"bank","key":"[secret]"}],"pass":"[secret]","pin":"[secret]","user":"ann"}`
	want := []string{
		`"tool":"ok",` + args + `,"value":{"all":[{"code":"[secret]","name":"n"},{"name":"m"}],"token":"[secret]","user":"ann with [secret]"}}`,
		`"tool":"bad",` + args + `,"error":{"type":"execution_error","message":"no: \"[secret]\", [secret]"}}`,
		`"tool":"refused",` + args + `,"error":{"type":"invalid_args","message":"invalid arguments: pass: not [secret]","fields":[{"type":"value_error","loc":["pass"],"msg":"not [secret]"}]}}`,
		`"tool":"no",` + args + `,"failure":"not [secret]"}`,
		`"tool":"whole",` + args + `,"result":{"content":[{"text":"{\"a\":\"[secret]\",\"b\":9007199254740993}","type":"text"}],"structuredContent":{"a":"[secret]","b":9007199254740993}}}`,
		`"tool":"echo","arguments":{},"value":{"[secret]":"the last was [secret]"}}`,
		`"tool":"list","arguments":{},"value":[{"code":"[secret]","name":"n"}]}`,
	}
	for i := range want {
		want[i] = `{"session":1,"episode":0,` + want[i]
	}
	if diff := cmp.Diff(want, s.lines()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	// Replayed, what was secret is empty, and a call with other secrets is the same call.
	c := s.cassette()
	again := Modes("ok", "", Simulation(Replay(c, ok)))
	r := replaying(t, New(again, Modes("list", "", Simulation(Replay(c, list)))))
	other := strings.NewReplacer("hunter2", "else", "4711", "1", `"keys":{"a":"alpha-key"}`, `"keys":{}`).Replace(loginArgs)
	res, err := r.call(again, other)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(res.StructuredContent.(Structured).Value); got != `{"user":"ann with [secret]","token":"","all":[{"name":"n"},{"name":"m"}]}` {
		t.Errorf("replayed as %s", got)
	}
}

// A secret that is a word of the schema, or of MCP, leaves the recording readable.
func TestSecretsThatAreNames(t *testing.T) {
	typed := func(_ *desk, _ context.Context, in login) (ticket, error) {
		return ticket{"said " + in.Pass, "", nil}, nil
	}
	whole := func(_ *desk, _ context.Context, in login) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{
			Content:           []mcp.Content{&mcp.TextContent{Text: in.Pass}, &mcp.ImageContent{Data: []byte(in.Pass), MIMEType: "image/" + in.Pass}},
			StructuredContent: map[string]string{"a": in.Pass},
		}, nil
	}
	for _, pass := range []string{"user", "token", "text", "type", "content", "result", "structuredContent", "pass", "secret", "[secret]", "value"} {
		s := newStudio(t)
		args := `{"user":"ann","pin":null,"door":{},"pass":"` + pass + `"}`
		s.call(Func("typed", "", typed), args)
		s.call(Func("whole", "", whole), args)
		c := s.cassette()
		tool, other := Modes("typed", "", Simulation(Replay(c, typed))), Modes("whole", "", Simulation(Replay(c, whole)))
		r := replaying(t, New(tool, other))
		res, err := r.call(tool, args)
		if err != nil || !strings.HasPrefix(string(res.StructuredContent.(Structured).Value), `{"user":"said [`) {
			t.Errorf("%s: %v, %v", pass, res, err)
		}
		if res, err = r.call(other, args); err != nil || res.Content[0].(*mcp.TextContent).Text != "[secret]" {
			t.Errorf("%s: %v, %v", pass, res, err)
		}
	}
}

func TestSecretTag(t *testing.T) {
	tool := Func("t", "", func(*desk, context.Context, login) (ticket, error) { return ticket{}, nil })
	in, out := marshalSchema(t, tool.spec.InputSchema), marshalSchema(t, tool.spec.OutputSchema)
	if n := strings.Count(in, `"writeOnly":true`); n != 7 || strings.Contains(in, "x-secret") {
		t.Errorf("%d marks in %s", n, in)
	}
	if n := strings.Count(out, `"x-secret":true`); n != 2 || strings.Contains(out, "writeOnly") {
		t.Errorf("%d marks in %s", n, out)
	}
	for want, tool := range map[string]Tool[*desk]{
		`tag secret:"yes": want secret:"true", or no tag`: Func("t", "", func(*desk, context.Context, struct {
			A string `secret:"yes"`
		}) (int, error) {
			return 0, nil
		}),
		`tag secret:"true": a secret has no default, since that would be published`: Func("t", "", func(*desk, context.Context, struct {
			A string `secret:"true" default:"x"`
		}) (int, error) {
			return 0, nil
		}),
	} {
		if err := New(tool).Register(newServer(), ModeSimulation); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// TestSecretsOfOtherSchemas: the marks of schemas that were not derived from Go types.
func TestSecretsOfOtherSchemas(t *testing.T) {
	for _, test := range []struct{ name, schema, value, want string }{
		{"reference", `{"$defs":{"k":{"writeOnly":true}},"properties":{"a":{"$ref":"#/$defs/k"}}}`, `{"a":"x","b":1}`, `{"a":"[secret]","b":1}`},
		{"itself", `{"properties":{"a":{"$ref":"#"},"k":{"writeOnly":true}}}`, `{"a":{"a":{"k":"x"}}}`, `{"a":{"a":{"k":"[secret]"}}}`},
		{"circle", `{"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"anyOf":[{"$ref":"#/$defs/a"},{"properties":{"k":{"writeOnly":true}}}]}},"$ref":"#/$defs/a"}`, `{"k":1}`, `{"k":"[secret]"}`},
		{"elsewhere", `{"properties":{"a":{"$ref":"other.json"},"k":{"writeOnly":true}}}`, `{"a":1}`, `{"a":"[secret]"}`},
		{"branches", `{"oneOf":[{"properties":{"a":{"writeOnly":true}}},{"properties":{"b":{"x-secret":true}}}],"then":{"properties":{"c":{"writeOnly":true}}},"dependentSchemas":{"a":{"properties":{"d":{"writeOnly":true}}}}}`, `{"a":1,"b":2,"c":3,"d":4,"e":5}`, `{"a":"[secret]","b":"[secret]","c":"[secret]","d":"[secret]","e":5}`},
		{"others", `{"properties":{"a":{}},"patternProperties":{"^p":{"writeOnly":true}},"additionalProperties":{"properties":{"k":{"writeOnly":true}}}}`, `{"a":{"k":1},"b":{"k":1},"p1":1}`, `{"a":{"k":1},"b":{"k":"[secret]"},"p1":"[secret]"}`},
		{"lists", `{"prefixItems":[{},{"writeOnly":true}],"items":{"properties":{"k":{"writeOnly":true}}}}`, `[1,2,{"k":3}]`, `[1,"[secret]",{"k":"[secret]"}]`},
		{"all", `{"writeOnly":true}`, `{"a":1}`, `"[secret]"`},
		{"a property of that name", `{"properties":{"writeOnly":{"const":true}}}`, `{"writeOnly":true}`, `{"writeOnly":true}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, err := newSecrets(json.RawMessage(test.schema))
			if err != nil {
				t.Fatal(err)
			}
			got, _, err := redactJSON(s, []byte(test.value), &memory{}, nil)
			if err != nil || string(got) != test.want {
				t.Errorf("%s, %v; want %s", got, err, test.want)
			}
		})
	}
}
