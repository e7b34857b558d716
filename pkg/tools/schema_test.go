package tools

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"
)

type (
	node struct {
		Value int     `json:"value"`
		Next  *node   `json:"next"`
		Kids  []*node `json:"kids"`
	}
	tree     map[string]tree
	stringer interface{ String() string }
	panicky  struct{}
	nilly    struct{}
	remote   struct{}
	broken   struct{}
	unionIn  struct { // a root union that says it is an object
		Circle *float64 `json:"circle,omitempty"`
		Square *float64 `json:"square,omitempty"`
	}
	lowerEmbed struct{ *common }
)

func (p *panicky) JSONSchema() *jsonschema.Schema { panic("no zero value, please") }
func (nilly) JSONSchema() *jsonschema.Schema      { return nil }
func (remote) JSONSchema() *jsonschema.Schema {
	return &jsonschema.Schema{Ref: "https://example.com/schema.json"}
}
func (broken) JSONSchema() *jsonschema.Schema { return &jsonschema.Schema{Type: "objekt"} }

func (unionIn) JSONSchema() *jsonschema.Schema {
	return &jsonschema.Schema{
		Type:       "object",
		Properties: map[string]*jsonschema.Schema{"circle": {Type: "number"}, "square": {Type: "number"}},
		OneOf:      []*jsonschema.Schema{{Required: []string{"circle"}}, {Required: []string{"square"}}},
	}
}

// Every fault of a type is an error when the tool is made, and says where it is.
func TestTypeErrors(t *testing.T) {
	for _, test := range []struct {
		name string
		make func() error
		want string
	}{
		{"input of a string", newIn[string], `string: an input must be a JSON object, so its type must be a struct or a map`},
		{"input of a list", newIn[[]point], `[]tools.point: an input must be a JSON object, so its type must be a struct or a map`},
		{"input of any", newIn[any], `interface {}: an input must be a JSON object, so its type must be a struct or a map`},
		{"input of a union without a type", newIn[shape], `tools.shape: an input must be a JSON object, so its type must be a struct or a map`},
		{"recursive struct", newIn[node], `tools.node.Next: the type tools.node contains itself; give it a schema (see tools.Schemer)`},
		{"recursive struct, out", newOut[[]node], `tools.node.Next: the type tools.node contains itself; give it a schema (see tools.Schemer)`},
		{"recursive map", newIn[tree], `the type tools.tree contains itself; give it a schema (see tools.Schemer)`},
		{"function", newIn[struct{ F func() }], `struct { F func() }.F: the type func() has no JSON form`},
		{"channel, out", newOut[map[string]chan int], `the type chan int has no JSON form`},
		{"complex number, deep", newOut[struct{ L []map[string]complex128 }], `struct { L []map[string]complex128 }.L: the type complex128 has no JSON form`},
		{"keys", newOut[map[float64]int], `the type map[float64]int has no JSON form: keys must be strings, integers or marshal to text`},
		{"interface to decode into", newIn[holder[stringer]], `holder[github.com/openenv-go/openenv-go/pkg/tools.stringer].V: nothing can be decoded into the interface tools.stringer; use a concrete type that implements tools.Schemer, or any`},
		{"embedded pointer to an unexported type", newIn[lowerEmbed], `tools.lowerEmbed: the embedded *tools.common cannot be decoded into, since its type is not exported`},
		{"two fields of one name", newOutOf(reflect.StructOf([]reflect.StructField{
			{Name: "A", Type: reflect.TypeFor[int](), Tag: `json:"x"`}, {Name: "B", Type: reflect.TypeFor[int](), Tag: `json:"x"`},
		})), `Go struct fields A and B conflict over JSON object name "x"`},
		{"malformed json tag", newOutOf(reflect.StructOf([]reflect.StructField{
			{Name: "A", Type: reflect.TypeFor[int](), Tag: `json:"a,omit_empty"`},
		})), "invalid appearance of `omit_empty` tag option; specify `omitempty` instead"},
		{"embedded string", newIn[struct{ color }], `embedded Go struct field color of non-struct type must be explicitly given a JSON name`},
		{"option string on a list", newOutOf(reflect.StructOf([]reflect.StructField{
			{Name: "L", Type: reflect.TypeFor[[]int](), Tag: `json:"l,string"`},
		})), `.L: the json option string is for numbers, booleans and strings`},

		{"schema method that panics", newIn[holder[panicky]], `the JSONSchema method of tools.panicky panicked on the zero value: no zero value, please`},
		{"schema method that returns nil", newIn[holder[nilly]], `the JSONSchema method of tools.nilly returned nil`},
		{"schema that refers elsewhere", newOut[remote], `https://example.com/schema.json: only local references are allowed`},
		{"schema that is none", newOut[broken], `schema of tools.broken: not a JSON Schema: `},
		{"author's schema that is none", func() error {
			_, err := NewInput[point](&jsonschema.Schema{Type: "object", Pattern: "("})
			return err
		}, `schema of tools.point: `},
		{"author's schema of another type", func() error {
			_, err := NewInput[point](&jsonschema.Schema{Type: "array"})
			return err
		}, `an input must be a JSON object`},

		{"description that is a rule", newIn[struct {
			A int `jsonschema:"required,minimum=1"`
		}], `.A: tag jsonschema:"required,minimum=1": want a description; bounds have tags of their own`},
		{"empty description", newIn[struct {
			A int `jsonschema:""`
		}], `.A: tag jsonschema:"": want a description`},
		{"bound of a string", newIn[struct {
			A string `minimum:"1"`
		}], `.A: tag minimum:"1": it is for integer and number, not for string`},
		{"length of a number", newIn[struct {
			A int `maxLength:"1"`
		}], `.A: tag maxLength:"1": it is for string, not for integer`},
		{"items of a map", newIn[struct {
			A map[string]int `minItems:"1"`
		}], `.A: tag minItems:"1": it is for array, not for object`},
		{"enum of a struct", newIn[struct {
			A point `enum:"1"`
		}], `.A: tag enum:"1": it is for string and integer and number and boolean, not for object`},
		{"bound that is no number", newIn[struct {
			A int `minimum:"one"`
		}], `.A: tag minimum:"one": want a number`},
		{"bound that is not finite", newIn[struct {
			A float64 `maximum:"Inf"`
		}], `.A: tag maximum:"Inf": want a number`},
		{"length that is negative", newIn[struct {
			A string `minLength:"-1"`
		}], `.A: tag minLength:"-1": want a number of at least 0, without fraction`},
		{"length that is a fraction", newIn[struct {
			A []int `maxItems:"1.5"`
		}], `.A: tag maxItems:"1.5": want a number of at least 0, without fraction`},
		{"multiple of nothing", newIn[struct {
			A int `multipleOf:"0"`
		}], `.A: tag multipleOf:"0": want a number above 0`},
		{"pattern that is none", newIn[struct {
			A string `pattern:"("`
		}], ".A: tag pattern:\"(\": error parsing regexp"},
		{"flag that is none", newIn[struct {
			A []int `uniqueItems:"yes"`
		}], `.A: tag uniqueItems:"yes": `},
		{"bounds the wrong way round", newIn[struct {
			A int `minimum:"5" maximum:"4"`
		}], `.A: minimum 5 is above maximum 4`},
		{"lengths the wrong way round", newIn[struct {
			A string `minLength:"5" maxLength:"4"`
		}], `.A: minLength 5 is above maxLength 4`},
		{"enum of another type", newIn[struct {
			A int `enum:"1,two"`
		}], `.A: tag enum:"1,two": "two" is not JSON; want a JSON integer`},
		{"enum of a fraction", newIn[struct {
			A int `enum:"1,1.5"`
		}], `.A: tag enum:"1,1.5": 1.5: want integer, got number`},
		{"enum outside of the bounds", newIn[struct {
			A int8 `enum:"1,128"`
		}], `.A: tag enum:"1,128": 128: want at most 127`},
		{"default of another type", newIn[struct {
			A bool `default:"1"`
		}], `.A: tag default:"1": 1: want boolean, got number`},
		{"default that is not JSON", newIn[struct {
			A []string `default:"a,b"`
		}], `.A: tag default:"a,b": "a,b" is not JSON; want a JSON array`},
		{"default outside of the bounds", newIn[struct {
			A int `default:"11" maximum:"10"`
		}], `.A: tag default:"11": 11: want at most 10`},
		{"default outside of the enum", newIn[struct {
			A string `default:"c" enum:"a,b"`
		}], `.A: tag default:"c": "c": want one of "a", "b"`},
		{"default of a type that refuses it", newIn[struct {
			A ownJSON `default:"5"`
		}], `A: want the list own, number`},
		{"fault deep inside", newIn[struct {
			A []map[string]*struct {
				B struct {
					C string `minimum:"1"`
				}
			}
		}], `.C: tag minimum:"1"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := test.make()
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v\nwant %s", err, test.want)
			}
		})
	}
}

func newIn[T any]() error  { _, err := NewInput[T](nil); return err }
func newOut[T any]() error { _, err := NewOutput[T](nil); return err }

// newOutOf is for types that vet would not have in the source.
func newOutOf(t reflect.Type) func() error {
	return func() error { _, _, err := infer(t, outward); return err }
}

// The schema of a whole input or output differs from that of a field in what null means, and in being wrapped.
func TestRootSchemas(t *testing.T) {
	pointSchema := `{"type":"object","properties":{"X":{"type":"integer"},"Y":{"type":"integer"}},"required":["X","Y"],"additionalProperties":false}`
	for _, test := range []struct {
		name   string
		schema func() (*jsonschema.Schema, bool, error)
		want   string
		object bool
	}{
		{"struct", outSchema[point], pointSchema, true},
		{"pointer to a struct", outSchema[*point], pointSchema, true},
		{"pointer to a pointer", outSchema[**point], pointSchema, true},
		{"map", outSchema[map[string]any], `{"type":"object","additionalProperties":` + anyJSON + `}`, true},
		{"pointer to an integer", outSchema[*int], `{"type":["null","integer"]}`, false},
		{"list", outSchema[[]int], `{"type":"array","items":{"type":"integer"}}`, false},
		{"pointer to a list", outSchema[*[]int], `{"type":["null","array"],"items":{"type":"integer"}}`, false},
		{"any", outSchema[any], anyJSON, false},
		{"interface with methods", outSchema[stringer], anyJSON, false},
		{"error", outSchema[error], anyJSON, false},
		{"own MarshalJSON", outSchema[ownJSON], anyJSON, false},
		{"raw", outSchema[json.RawMessage], anyJSON, false},
		{"union without a type", outSchema[shape], `{"anyOf":[` + circle + `,` + square + `]}`, false},
		{"pointer to a union", outSchema[*shape], `{"anyOf":[{"anyOf":[` + circle + `,` + square + `]},{"type":"null"}]}`, false},
		{"union of objects", outSchema[*unionIn], unionInSchema, true},

		{"input of a pointer", inSchema[*point], pointSchema, true},
		{"input without arguments", inSchema[None], `{"type":"object","additionalProperties":false}`, true},
		{"input of a map", inSchema[map[string]any], `{"type":"object","additionalProperties":` + anyJSON + `}`, true},
		{"input of a union", inSchema[unionIn], unionInSchema, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, object, err := test.schema()
			if err != nil {
				t.Fatal(err)
			}
			if object != test.object {
				t.Errorf("object: %v", object)
			}
			if diff := cmp.Diff(canonicalJSON(t, test.want), canonicalJSON(t, marshalSchema(t, s))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

const unionInSchema = `{"type":"object","properties":{"circle":{"type":"number"},"square":{"type":"number"}},"oneOf":[{"required":["circle"]},{"required":["square"]}]}`

func outSchema[T any]() (*jsonschema.Schema, bool, error) {
	out, err := NewOutput[T](nil)
	if err != nil {
		return nil, false, err
	}
	return out.Schema, out.Object, nil
}

func inSchema[T any]() (*jsonschema.Schema, bool, error) {
	in, err := NewInput[T](nil)
	if err != nil {
		return nil, false, err
	}
	return in.Schema, true, nil
}

// An author's own schemas are published without bare trues too, and are not changed.
func TestAuthorsSchemas(t *testing.T) {
	own := &jsonschema.Schema{
		Types: []string{"null", "object"},
		Properties: map[string]*jsonschema.Schema{
			"a": {}, "b": {Type: "array", Items: &jsonschema.Schema{}}, "c": {AnyOf: []*jsonschema.Schema{{}, {Type: "null"}}},
			"d": {Not: &jsonschema.Schema{}}, "e": {Ref: "#/$defs/e"},
		},
		Defs:                 map[string]*jsonschema.Schema{"e": {}},
		PatternProperties:    map[string]*jsonschema.Schema{"^x": {}},
		AdditionalProperties: &jsonschema.Schema{},
	}
	before, err := json.Marshal(own)
	if err != nil {
		t.Fatal(err)
	}
	in, err := NewInput[map[string]any](own)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"type":"object","properties":{"a":` + anyJSON + `,"b":{"type":"array","items":` + anyJSON + `},"c":{"anyOf":[` + anyJSON + `,{"type":"null"}]},"d":false,"e":{"$ref":"#/$defs/e"}},
		"$defs":{"e":` + anyJSON + `},"patternProperties":{"^x":` + anyJSON + `},"additionalProperties":` + anyJSON + `}`
	if diff := cmp.Diff(canonicalJSON(t, want), canonicalJSON(t, marshalSchema(t, in.Schema))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	after, err := json.Marshal(own)
	if err != nil || string(after) != string(before) {
		t.Errorf("the author's schema became %s, %v", after, err)
	}
	if _, err := in.Decode([]byte(`{"a":null,"b":[1],"e":5,"xyz":{},"other":1}`)); err != nil {
		t.Error(err)
	}
	if _, err := in.Decode([]byte(`{"d":1}`)); err == nil || err.Error() != "d: no value is allowed here" {
		t.Errorf("got %v", err)
	}
}

func TestOpenInput(t *testing.T) {
	in, err := NewOpenInput[plainEmbed](nil)
	if err != nil {
		t.Fatal(err)
	}
	v, err := in.Decode([]byte(`{"id":1,"name":"a","unknown":{"id":2},"Name":"b"}`))
	if err != nil || v.ID != 1 || v.Name != "a" {
		t.Errorf("got %+v, %v", v, err)
	}
	if _, err := in.Decode([]byte(`{"name":"a"}`)); err == nil || err.Error() != "id: field required" {
		t.Errorf("got %v", err)
	}
	free, err := NewOpenInput[*map[string]int](nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := free.Decode([]byte(`{"a":"1"}`)); err == nil || err.Error() != "a: want integer, got string" {
		t.Errorf("the members of a map are checked still: %v", err)
	}
}

// The published schema is a promise: what a tag or an author's words exclude does not go out. What the type alone
// guarantees is not looked at again.
func TestOutputIsHeldToItsSchema(t *testing.T) {
	type result struct {
		Score int    `json:"score" minimum:"0" maximum:"10"`
		Grade string `json:"grade" enum:"a,b"`
	}
	out, err := NewOutput[[]result](nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := out.Encode([]result{{10, "a"}}); err != nil {
		t.Error(err)
	}
	_, err = out.Encode([]result{{10, "a"}, {11, "c"}})
	if err == nil || err.Error() != `the value returned does not fit its schema: 1.grade: want one of "a", "b"; 1.score: want at most 10` {
		t.Errorf("got %v", err)
	}
	if ie := (*InputError)(nil); errors.As(err, &ie) {
		t.Error("the caller would be blamed for it")
	}
	own, err := NewOutput[any](&jsonschema.Schema{Type: "object", Required: []string{"a"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := own.Encode(map[string]int{"b": 1}); err == nil || !strings.Contains(err.Error(), "a: field required") {
		t.Errorf("got %v", err)
	}
	union, err := NewOutput[shape](nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := union.Encode(shape{Kind: "cube"}); err == nil || !strings.Contains(err.Error(), "fits none of the alternatives") {
		t.Errorf("got %v", err)
	}
	plain, err := NewOutput[point](nil)
	if err != nil || plain.check != nil {
		t.Errorf("a schema that the type guarantees is checked: %v", err)
	}
}

func TestEncodeErrors(t *testing.T) {
	encode := func(b json.RawMessage, err error) error { return err }
	floats, err := NewOutput[map[string]any](nil)
	if err != nil {
		t.Fatal(err)
	}
	points, err := NewOutput[*point](nil)
	if err != nil {
		t.Fatal(err)
	}
	for want, err := range map[string]error{
		"the value returned cannot be written as JSON: a.0: unsupported value: NaN":  encode(floats.Encode(map[string]any{"a": []float64{math.NaN()}})),
		"the value returned cannot be written as JSON: a: unsupported value: +Inf":   encode(floats.Encode(map[string]any{"a": math.Inf(1)})),
		"the value returned cannot be written as JSON: f: the Go type func() has no": encode(floats.Encode(map[string]any{"f": func() {}})),
		"the value returned is null where an object is due":                          encode(points.Encode(nil)),
	} {
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// A type that contains itself says its schema with references, which must lead somewhere from wherever it stands.
type (
	chain struct {
		Value int    `json:"value"`
		Next  *chain `json:"next,omitempty"`
	}
	forest struct {
		Trees []branch          `json:"trees"`
		Named map[string]branch `json:"named"`
		Maybe *chain            `json:"maybe"`
		Chain chain             `json:"chain"`
	}
	branch struct {
		Twigs []branch `json:"twigs"`
	}
)

func (chain) JSONSchema() *jsonschema.Schema { // refers to its root
	return &jsonschema.Schema{
		Type: "object", Required: []string{"value"},
		Properties: map[string]*jsonschema.Schema{"value": {Type: "integer"}, "next": {Ref: "#"}},
	}
}

func (branch) JSONSchema() *jsonschema.Schema { // refers to a definition
	return &jsonschema.Schema{Ref: "#/$defs/branch", Defs: map[string]*jsonschema.Schema{"branch": {
		Type: "object", Required: []string{"twigs"},
		Properties: map[string]*jsonschema.Schema{"twigs": {Type: "array", Items: &jsonschema.Schema{Ref: "#/$defs/branch"}}},
	}}}
}

func TestReferences(t *testing.T) {
	in := mustInput[forest](t)
	judge := newJudge(t, marshalSchema(t, in.Schema))
	for sample, path := range map[string]string{
		`{"trees":[{"twigs":[{"twigs":[]}]}],"named":{"a":{"twigs":[]}},"chain":{"value":1,"next":{"value":2}}}`: "",
		`{"trees":[],"named":{},"maybe":{"value":1},"chain":{"value":1}}`:                                        "",
		`{"trees":[],"named":{},"maybe":null,"chain":{"value":1}}`:                                               "",
		`{"trees":[{"twigs":[{"twigs":[5]}]}],"named":{},"chain":{"value":1}}`:                                   "trees.0.twigs.0.twigs.0",
		`{"trees":[],"named":{"a":{}},"chain":{"value":1}}`:                                                      "named.a.twigs",
		`{"trees":[],"named":{},"chain":{"value":1,"next":{"value":"x"}}}`:                                       "chain.next.value",
		`{"trees":[],"named":{},"maybe":{"value":1,"next":{}},"chain":{"value":1}}`:                              "maybe",
	} {
		_, err := in.Decode([]byte(sample))
		bySchema := judge.accepts([]byte(sample))
		if (err == nil) != (path == "") || (bySchema == nil) != (path == "") {
			t.Errorf("%s: the decoder says %v, the schema %v", sample, err, bySchema)
		}
		if ie := (*InputError)(nil); errors.As(err, &ie) && ie.Fields[0].Path() != path {
			t.Errorf("%s: %v, want it at %s", sample, err, path)
		}
	}
	twig := branch{Twigs: []branch{{}}}
	for _, tool := range []struct {
		tool Tool[*desk]
		want string
	}{
		{returning([]branch{twig}, nil), `{"result":[{"twigs":[{"twigs":[]}]}]}`},
		{returning(&twig, nil), `{"result":{"twigs":[{"twigs":[]}]}}`},
		{returning(twig, nil), `{"result":{"twigs":[{"twigs":[]}]}}`},
		{returning(chain{1, &chain{2, nil}}, nil), `{"value":1,"next":{"value":2}}`},
		{returning(&chain{1, &chain{2, nil}}, nil), `{"value":1,"next":{"value":2}}`},
		{returning([]*chain{nil, {1, nil}}, nil), `{"result":[null,{"value":1}]}`},
		{returning(forest{Trees: []branch{twig}}, nil), `{"trees":[{"twigs":[{"twigs":[]}]}],"named":{},"maybe":null,"chain":{"value":0}}`},
		{Func("t", "", func(*desk, context.Context, None) (any, error) { return [][]any{{}}, nil },
			OutputSchema(&jsonschema.Schema{Type: "array", Items: &jsonschema.Schema{Ref: "#"}})), `{"result":[[]]}`},
	} {
		res, err := invoke(t, tool.tool, &desk{}, "")
		if err != nil {
			t.Error(err)
			continue
		}
		got := marshal(res.StructuredContent)
		if string(got) != tool.want {
			t.Errorf("got %s, want %s", got, tool.want)
		}
		schema := marshalSchema(t, tool.tool.spec.OutputSchema)
		if err := newJudge(t, schema).accepts(got); err != nil {
			t.Errorf("the schema %s refuses %s: %v", schema, got, err)
		}
	}
}
