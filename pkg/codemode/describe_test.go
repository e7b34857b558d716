package codemode_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/openenv-go/openenv-go/pkg/codemode"
)

// TestHelpTellsWhatComesBack: what a tool returns is described as far as its schema says.
func TestHelpTellsWhatComesBack(t *testing.T) {
	for output, want := range map[string]string{
		`{"type":"object","properties":{"items":{"type":"array","items":{"type":"object","properties":{"id":{"type":"integer"},"tag":{"type":["string","null"]}}}},"next":{"type":["object","null"],"properties":{"at":{"type":"number"}}}}}`: `returns {"items": [{"id": integer, "tag": string or null}, …], "next": {"at": number} or null}`,
		`{"type":"string"}`: "returns string",
		`{"type":"array"}`:  "returns array",
		`{}`:                "returns any value",
		`true`:              "returns any value",
		`{"type":"object","properties":{"a":{"type":"object","properties":{"b":{"type":"object","properties":{"c":{"type":"object","properties":{"d":{"type":"object","properties":{"e":{}}}}}}}}}}}`: `returns {"a": {"b": {"c": {"d": object}}}}`,
		`null`: "",
	} {
		tool := codemode.Tool{Name: "get", Input: json.RawMessage(`{"type":"object"}`), Output: json.RawMessage(output)}
		o := codemode.Run(t.Context(), codemode.Job{Code: "help(get)", Tools: []codemode.Tool{tool}}, nil)
		var text string
		if err := json.Unmarshal(o.Result, &text); err != nil {
			t.Fatal(err, o.Error)
		}
		if _, got, _ := strings.Cut(text, "\n"); got != want {
			t.Errorf("%s\ngot  %s\nwant %s", output, got, want)
		}
	}
}

// TestParametersWithoutOrder go by name, save where there is no choice.
func TestParametersWithoutOrder(t *testing.T) {
	for _, c := range []struct{ input, call, args, says string }{
		{`{"properties":{"a":{},"b":{}}}`, `f(1)`, "", "f(a=…, b=…)"},
		{`{"properties":{"a":{},"b":{}},"required":["a","b"]}`, `f(1, 2)`, "", "f(a, b)"},
		{`{"properties":{"a":{},"b":{}}}`, `f(a=1)`, `{"a":1}`, ""},
		{`{"properties":{"a":{}}}`, `f(1)`, `{"a":1}`, ""},
		{`{"properties":{"a":{},"b":{}},"required":["b"]}`, `f(1, a=2)`, `{"b":1,"a":2}`, ""},
		{`{"properties":{"a":{},"b":{}},"required":["b"]}`, `f(1, 2)`, "", "by name"},
		{`{}`, `f(1)`, "", "no arguments"},
	} {
		tool := codemode.Tool{Name: "f", Input: json.RawMessage(c.input), Unordered: true}
		got := ""
		o := codemode.Run(t.Context(), codemode.Job{Code: c.call, Tools: []codemode.Tool{tool}}, func(_ context.Context, _ string, args json.RawMessage) (codemode.Answer, error) {
			got = string(args)
			return codemode.Answer{Value: json.RawMessage("null")}, nil
		})
		if got != c.args || (o.Error == nil) != (c.says == "") || o.Error != nil && !strings.Contains(o.Error.Text(), c.says) {
			t.Errorf("%s, %s: args %s, %v", c.input, c.call, got, o.Error)
		}
	}
}
