package gymtest

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/openenv-go/openenv-go/pkg/tools"
)

// generated are schemas that the generator must find values for; each has at least min different ones.
var generated = []struct {
	name, schema string
	min          int
}{
	{"nothing", `{"type":"object","additionalProperties":{"not":{}}}`, 1},
	{"enum", `{"type":"object","properties":{"a":{"enum":["x","y",3]}},"required":["a"]}`, 3},
	{"const", `{"type":"object","properties":{"a":{"const":{"deep":[1]}}},"required":["a"]}`, 1},
	{"integers", `{"type":"object","properties":{"a":{"type":"integer","exclusiveMinimum":3,"maximum":7}},"required":["a"]}`, 4},
	{"far integers", `{"type":"object","properties":{"a":{"type":"integer","minimum":123456,"multipleOf":1000}},"required":["a"]}`, 1},
	{"unsigned", `{"type":"object","properties":{"a":{"type":"integer","minimum":0,"maximum":18446744073709551615}},"required":["a"]}`, 4},
	{"numbers", `{"type":"object","properties":{"a":{"type":"number","exclusiveMinimum":0,"exclusiveMaximum":0.001}},"required":["a"]}`, 1},
	{"large numbers", `{"type":"object","properties":{"a":{"type":"number","minimum":1e6}},"required":["a"]}`, 4},
	{"small numbers", `{"type":"object","properties":{"a":{"type":"number","maximum":-1e6}},"required":["a"]}`, 4},
	{"lengths", `{"type":"object","properties":{"a":{"type":"string","minLength":30,"maxLength":31}},"required":["a"]}`, 1},
	{"pattern", `{"type":"object","properties":{"a":{"type":"string","pattern":"^(ab|c[d-f])+\\d{2,3}(x?|\\.)$"}},"required":["a"]}`, 4},
	{"loose pattern", `{"type":"object","properties":{"a":{"type":"string","pattern":"[^a-z]"}},"required":["a"]}`, 4},
	{"date-time", `{"type":"object","properties":{"a":{"type":"string","format":"date-time"}},"required":["a"]}`, 2},
	{"nullable", `{"type":"object","properties":{"a":{"type":["null","integer"]}},"required":["a"]}`, 3},
	{"anyOf", `{"type":"object","properties":{"a":{"anyOf":[{"type":"integer"},{"type":"string"}]}},"required":["a"]}`, 4},
	{"oneOf of objects", `{"type":"object","oneOf":[
		{"properties":{"k":{"const":"a"},"x":{"type":"integer"}},"required":["k","x"]},
		{"properties":{"k":{"const":"b"},"y":{"type":"boolean"}},"required":["k","y"]}]}`, 3},
	{"allOf", `{"type":"object","allOf":[{"properties":{"a":{"type":"integer"}},"required":["a"]},{"properties":{"b":{"type":"string"}},"required":["b"]}]}`, 4},
	{"references", `{"type":"object","$defs":{"p":{"type":"object","properties":{"x":{"type":"integer"}},"required":["x"]}},
		"properties":{"from":{"$ref":"#/$defs/p"},"to":{"$ref":"#/$defs/p"}},"required":["from","to"]}`, 4},
	{"a tree", `{"$ref":"#/$defs/t","type":"object","$defs":{"t":{"type":"object","properties":{"kids":{"type":"array","items":{"$ref":"#/$defs/t"}}},"required":["kids"]}}}`, 2},
	{"arrays", `{"type":"object","properties":{"a":{"type":"array","items":{"type":"integer"},"minItems":2,"maxItems":4,"uniqueItems":true}},"required":["a"]}`, 4},
	{"tuples", `{"type":"object","properties":{"a":{"type":"array","prefixItems":[{"type":"integer"},{"type":"string"}],"items":false,"minItems":2}},"required":["a"]}`, 4},
	{"maps", `{"type":"object","additionalProperties":{"type":"integer"},"minProperties":2}`, 4},
	{"no types", `{"properties":{"a":{"minimum":3},"b":{"minLength":2},"c":{}},"required":["a","b","c"],"type":"object"}`, 4},
	{"required and undescribed", `{"type":"object","required":["a","b"]}`, 4},
	{"default", `{"type":"object","properties":{"a":{"type":"string","pattern":"^(?:x{900})y$","default":"no"}}}`, 1},
	{"dependent", `{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},"dependentRequired":{"a":["b"]}}`, 4},
}

func TestGeneratedValuesFit(t *testing.T) {
	for _, c := range generated {
		t.Run(c.name, func(t *testing.T) {
			schema := json.RawMessage(c.schema)
			check, err := tools.NewValidator(schema)
			if err != nil {
				t.Fatal(err)
			}
			got, err := generate("x", schema, 4)
			if err != nil || len(got) < c.min {
				t.Fatalf("got %s, %v; want %d", got, err, c.min)
			}
			for _, v := range got {
				if err := check.Validate(v); err != nil {
					t.Errorf("%s: %v", v, err)
				}
			}
			again, _ := generate("x", schema, 4)
			if !slices.EqualFunc(got, again, func(a, b json.RawMessage) bool { return string(a) == string(b) }) {
				t.Errorf("another time other values: %s and %s", got, again)
			}
		})
	}
}

// TestHopelessSchemas: none of these has a value that is found, and none keeps the generator.
func TestHopelessSchemas(t *testing.T) {
	for _, schema := range []string{
		`{"type":"object","properties":{"a":false},"required":["a"]}`,
		`{"$ref":"#","type":"object"}`,
		`{"type":"object","properties":{"a":{"$ref":"#"}},"required":["a"]}`,
		`{"type":"object","properties":{"a":{"type":"integer","minimum":5,"maximum":4}},"required":["a"]}`,
		`{"type":"object","properties":{"a":{"type":"string","minLength":9,"maxLength":4}},"required":["a"]}`,
	} {
		if got, err := generate("x", json.RawMessage(schema), 4); len(got) > 0 && schema[2] != '$' || err != nil {
			t.Errorf("%s: %s, %v", schema, got, err)
		}
	}
}

func TestMisfits(t *testing.T) {
	schema := json.RawMessage(`{"type":"object","properties":{
		"n":{"type":"integer","minimum":0,"maximum":9},
		"in":{"type":"object","properties":{"s":{"type":"string","minLength":1}},"required":["s"],"additionalProperties":false},
		"list":{"type":"array","items":{"type":"boolean"}}
	},"required":["n"],"additionalProperties":false}`)
	check, err := tools.NewValidator(schema)
	if err != nil {
		t.Fatal(err)
	}
	value := json.RawMessage(`{"in":{"s":"x"},"list":[true],"n":3}`)
	got, err := misfits(schema, value, 100)
	if err != nil {
		t.Fatal(err)
	}
	var what []string
	for _, m := range got {
		what = append(what, m.what)
		if check.Validate(m.value) == nil {
			t.Errorf("%s (%s) fits", m.value, m.what)
		}
	}
	for _, want := range []string{
		"n left out", "gymtest_unknown added", "n replaced by null", "n replaced by -1", "n replaced by 1000000000000000",
		"in replaced by {}", "in.gymtest_unknown added", `in.s replaced by ""`, "list.0 replaced by 1.5", `list replaced by {}`,
	} {
		if !slices.Contains(what, want) {
			t.Errorf("%q is not among %q", want, what)
		}
	}
	if few, _ := misfits(schema, value, 3); len(few) != 3 {
		t.Errorf("3 of them: %v", few)
	}
	if none, _ := misfits(json.RawMessage(`{"type":"object"}`), value, 100); len(none) != 0 {
		t.Errorf("a schema that takes all refuses %v", none)
	}
}
