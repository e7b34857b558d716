package tools

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"
)

type (
	inner struct {
		Depth int    `json:"depth" default:"3" maximum:"9"`
		Label string `json:"label"`
	}
	loose struct {
		Mode  string `json:"mode" default:"fast" enum:"fast,slow"`
		Other string `json:"other,omitempty"`
	}
	defaulted struct {
		Text  string            `json:"text" default:"a \"b\", c"`
		Empty string            `json:"empty" default:""`
		Int   int               `json:"int" default:"5.0"`
		Big   int64             `json:"big" default:"9007199254740993"`
		Float float64           `json:"float" default:"1e-3"`
		Bool  bool              `json:"bool" default:"true"`
		List  []inner           `json:"list" default:"[{\"label\":\"x\",\"depth\":1},{\"label\":\"y\"}]"`
		Map   map[string]int    `json:"map" default:"{\"a\":1}"`
		Ptr   *int              `json:"ptr" default:"7"`
		Any   any               `json:"any" default:"[1]"`
		Raw   json.RawMessage   `json:"raw" default:"{\"k\": 1.0}"`
		Inner inner             `json:"inner,omitempty"`
		Loose *loose            `json:"loose"`
		Dict  map[string]*inner `json:"dict,omitempty"`
	}
)

func TestDefaults(t *testing.T) {
	in := mustInput[defaulted](t)
	everything := func() defaulted {
		return defaulted{
			Text: `a "b", c`, Int: 5, Big: 9007199254740993, Float: 1e-3, Bool: true,
			List: []inner{{1, "x"}, {3, "y"}}, Map: map[string]int{"a": 1}, Ptr: orNil(7), Any: []any{1.0},
			Raw: json.RawMessage(`{"k":1.0}`), Inner: inner{Depth: 3},
		}
	}
	with := func(change func(*defaulted)) defaulted { d := everything(); change(&d); return d }
	for _, test := range []struct {
		name, raw string
		want      defaulted
	}{
		{"nothing sent", ``, everything()},
		{"an empty object", ` { } `, everything()},
		{"one member sent", `{"int":0}`, with(func(d *defaulted) { d.Int = 0 })},
		{"empty values are values", `{"text":"","bool":false,"list":[],"map":{},"ptr":null,"any":null}`, with(func(d *defaulted) {
			d.Text, d.Bool, d.List, d.Map, d.Ptr, d.Any = "", false, []inner{}, map[string]int{}, nil, nil
		})},
		{"a list is not merged with the default", `{"list":[{"label":"z"}]}`, with(func(d *defaulted) { d.List = []inner{{3, "z"}} })},
		{"a map is not merged with the default", `{"map":{"b":2}}`, with(func(d *defaulted) { d.Map = map[string]int{"b": 2} })},
		{"any is not merged with the default", `{"any":{"b":2}}`, with(func(d *defaulted) { d.Any = map[string]any{"b": 2.0} })},
		{"members of a struct", `{"inner":{"label":"x"}}`, with(func(d *defaulted) { d.Inner.Label = "x" })},
		{"members of a struct, sent", `{"inner":{"label":"x","depth":0}}`, with(func(d *defaulted) { d.Inner = inner{0, "x"} })},
		{"an absent pointer stays nil", `{"loose":null}`, everything()},
		{"members of a pointer", `{"loose":{"other":"o"}}`, with(func(d *defaulted) { d.Loose = &loose{"fast", "o"} })},
		{"members of items", `{"list":[{"label":"a"},{"label":"b","depth":4}]}`, with(func(d *defaulted) { d.List = []inner{{3, "a"}, {4, "b"}} })},
		{"members of members", `{"dict":{"k":{"label":"a"},"n":null}}`, with(func(d *defaulted) {
			d.Dict = map[string]*inner{"k": {3, "a"}, "n": nil}
		})},
		{"odd spelling of what is sent", "{\"int\":1e1 ,\n\"text\":\"}\"}\n", with(func(d *defaulted) { d.Int, d.Text = 10, "}" })},
		{"exact numbers survive", `{"big":9007199254740995,"list":[{"label":"a"}]}`, with(func(d *defaulted) {
			d.Big, d.List = 9007199254740995, []inner{{3, "a"}}
		})},
	} {
		t.Run(test.name, func(t *testing.T) {
			for range 3 { // one call must not leave anything to the next
				raw := []byte(test.raw)
				got, err := in.Decode(raw)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(test.want, got); diff != "" {
					t.Fatalf("(-want +got):\n%s", diff)
				}
				if string(raw) != test.raw {
					t.Fatalf("the input was changed to %s", raw)
				}
			}
		})
	}
}

// What is missing without a default is still missing, and a default is part of the published schema.
func TestDefaultsInSchema(t *testing.T) {
	in := mustInput[holder[inner]](t)
	want := `{"type":"object","properties":{"depth":{"type":"integer","default":3,"maximum":9},"label":{"type":"string"}},"required":["label"],"additionalProperties":false}`
	if diff := cmp.Diff(canonicalJSON(t, want), canonicalJSON(t, property(t, marshalSchema(t, in.Schema), "v"))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if f := fieldsOf(t, in, `{"v":{}}`); len(f) != 1 || f[0].Path() != "v.label" {
		t.Errorf("got %v", f)
	}
	if f := fieldsOf(t, in, `{}`); len(f) != 1 || f[0].Path() != "v" {
		t.Errorf("a struct that is required is not made of defaults: %v", f)
	}
	out, err := NewOutput[inner](nil)
	if err != nil || strings.Join(out.Schema.Required, " ") != "depth label" {
		t.Errorf("an output always has the field: %v, %v", out.Schema.Required, err)
	}
}

// The defaults of an author's own schema work too.
func TestDefaultsOfAuthorsSchema(t *testing.T) {
	in, err := NewInput[map[string]any](&jsonschema.Schema{
		Type: "object",
		Properties: map[string]*jsonschema.Schema{
			"a": {Type: "string", Default: json.RawMessage(`"x"`)},
			"n": {Default: json.RawMessage(`null`)},
		},
		AdditionalProperties: &jsonschema.Schema{Type: "object", Properties: map[string]*jsonschema.Schema{"b": {Default: json.RawMessage(`true`)}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	got, err := in.Decode([]byte(`{"more":{}}`))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]any{"a": "x", "n": nil, "more": map[string]any{"b": true}}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	_, err = NewInput[point](&jsonschema.Schema{Type: "object", Properties: map[string]*jsonschema.Schema{"X": {Default: json.RawMessage(`"five"`)}}})
	if err == nil || !strings.Contains(err.Error(), "defaults of tools.point: X: a string does not fit int") {
		t.Errorf("a default that the Go type cannot take: %v", err)
	}
}
