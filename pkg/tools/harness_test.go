package tools

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	gojsonschema "github.com/google/jsonschema-go/jsonschema"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/openenv-go/openenv-go/pkg/internal/strictjson"
)

// holder puts a type in the place where types stand: as the type of a field.
type holder[T any] struct {
	V T `json:"v"`
}

// A typeCase is one Go type with what is to be true of its schemas. in, out and the samples are of the field v.
type typeCase struct {
	name    string
	in, out string // the schemas wanted; out is "" if it is the same as in
	good    []string
	bad     []badSample

	// ownRules is set for types whose methods refuse more than a schema can say.
	ownRules bool
	// oneWay is set for types that are not written as they are read.
	oneWay bool

	open func() (inSchema, outSchema any, decode func([]byte) (any, error), encoded [][]byte, err error)
}

// A badSample is JSON that must be refused, with the path that the error must name.
type badSample struct{ json, path string }

// caseOf makes the case of type T. encode are values that must fit the schema of outputs.
func caseOf[T any](name, in, out string, encode []T, good []string, bad []badSample) typeCase {
	return typeCase{name: name, in: in, out: out, good: good, bad: bad, open: func() (any, any, func([]byte) (any, error), [][]byte, error) {
		input, err := NewInput[holder[T]](nil)
		if err != nil {
			return nil, nil, nil, nil, err
		}
		output, err := NewOutput[holder[T]](nil)
		if err != nil {
			return nil, nil, nil, nil, err
		}
		var encoded [][]byte
		for _, v := range encode {
			b, err := output.Encode(holder[T]{v})
			if err != nil {
				return nil, nil, nil, nil, fmt.Errorf("encoding %#v: %w", v, err)
			}
			encoded = append(encoded, b)
		}
		decode := func(b []byte) (any, error) {
			v, err := input.Decode(b)
			if err != nil {
				return nil, err
			}
			return v, nil
		}
		return input.Schema, output.Schema, decode, encoded, nil
	}}
}

func (c typeCase) withOwnRules() typeCase { c.ownRules = true; return c }
func (c typeCase) readOnly() typeCase     { c.oneWay = true; return c }

// optional gives the schema of a pointer type, where it differs from that of what it points to.
func (c typeCase) optional(schema string) typeCase {
	if schema != "" {
		c.in = schema
	}
	return c
}

func wrapped(sample string) []byte {
	if sample == absent {
		return []byte(`{}`)
	}
	return []byte(`{"v":` + sample + `}`)
}

// absent as a sample is the member left out.
const absent = "absent"

func (c typeCase) run(t *testing.T) {
	inSchema, outSchema, decode, encoded, err := c.open()
	if err != nil {
		t.Fatal(err)
	}
	wantOut := c.out
	if wantOut == "" {
		wantOut = c.in
	}
	inText, outText := marshalSchema(t, inSchema), marshalSchema(t, outSchema)
	if diff := cmp.Diff(canonicalJSON(t, c.in), canonicalJSON(t, property(t, inText, "v"))); diff != "" {
		t.Errorf("input schema (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(canonicalJSON(t, wantOut), canonicalJSON(t, property(t, outText, "v"))); diff != "" {
		t.Errorf("output schema (-want +got):\n%s", diff)
	}
	inJudge, outJudge := newJudge(t, inText), newJudge(t, outText)
	inJudge.add(t, inSchema)
	outJudge.add(t, outSchema)
	for _, b := range encoded {
		if err := outJudge.accepts(b); err != nil {
			t.Errorf("%s does not fit the output schema: %v", b, err)
		}
		v, err := decode(b)
		if c.oneWay {
			continue
		}
		if err != nil {
			t.Errorf("%s cannot be read back: %v", b, err)
		} else if again, _ := strictjson.Marshal(v); !bytes.Equal(again, b) {
			t.Errorf("%s came back as %s", b, again)
		}
	}
	for _, sample := range c.good {
		if err := inJudge.accepts(wrapped(sample)); err != nil {
			t.Errorf("the schema refuses %s: %v", sample, err)
		}
		if _, err := decode(wrapped(sample)); err != nil {
			t.Errorf("Decode refuses %s: %v", sample, err)
		}
	}
	for _, sample := range c.bad {
		_, err := decode(wrapped(sample.json))
		var ie *InputError
		if !errors.As(err, &ie) || len(ie.Fields) == 0 {
			t.Errorf("Decode(%s) = %v, want an *InputError", sample.json, err)
			continue
		}
		if got := ie.Fields[0].Path(); got != sample.path {
			t.Errorf("Decode(%s) blames %q (%v), want %q", sample.json, got, err, sample.path)
		}
		checkFieldErrors(t, ie, wrapped(sample.json))
	}
	c.mutate(t, inJudge, decode)
}

// mutate holds schema and decoder to the same verdict on variants of the good samples.
func (c typeCase) mutate(t *testing.T, judge *judge, decode func([]byte) (any, error)) {
	rng := rand.New(rand.NewPCG(1, uint64(len(c.name))))
	for _, sample := range c.good {
		for range 300 / len(c.good) {
			tree, _, err := strictjson.Parse(wrapped(sample))
			if err != nil {
				t.Fatal(err)
			}
			for range 1 + rng.IntN(2) {
				tree = mutated(rng, tree)
			}
			b, err := strictjson.Marshal(tree)
			if err != nil {
				t.Fatal(err)
			}
			bySchema := judge.accepts(b)
			_, byDecoder := decode(b)
			var ie *InputError
			switch {
			case byDecoder != nil && !errors.As(byDecoder, &ie):
				t.Fatalf("Decode(%s): %T", b, byDecoder)
			case bySchema != nil && byDecoder == nil:
				t.Errorf("%s: the schema refuses it (%v), the decoder does not", b, bySchema)
			case bySchema == nil && byDecoder != nil && !c.ownRules && !beyondSchema(byDecoder):
				t.Errorf("%s: the decoder refuses it (%v), the schema does not", b, byDecoder)
			}
			if ie != nil {
				checkFieldErrors(t, ie, b)
			}
		}
	}
}

// beyondSchema reports the refusals that no schema can express: numbers of 64 bits are not exact in schemas.
func beyondSchema(err error) bool {
	return strings.Contains(err.Error(), "is out of the range of") || strings.Contains(err.Error(), "cannot be held exactly")
}

// checkFieldErrors holds errors to what callers do with them: both encoders write the input as it was sent, or
// shortened, and the place is there.
func checkFieldErrors(t *testing.T, ie *InputError, input []byte) {
	t.Helper()
	root, _, err := strictjson.Parse(input)
	if err != nil {
		return // with numbers that nobody looks at
	}
	for _, f := range ie.Fields {
		if f.Loc == nil || f.Type == "" || f.Msg == "" || !strings.Contains(ie.Error(), f.Path()) {
			t.Errorf("incomplete: %#v", f)
		}
		ours, err := strictjson.Marshal(f)
		if err != nil {
			t.Errorf("%#v: %v", f, err)
		}
		std, err := json.Marshal(f)
		if err != nil {
			t.Errorf("%#v: %v", f, err)
		}
		if a, b := canonicalJSON(t, string(ours)), canonicalJSON(t, string(std)); a != b {
			t.Errorf("written as %s by one encoder, as %s by the other", a, b)
		}
		at, place := root, f.Loc
		if f.Type == "missing" {
			place = place[:len(place)-1]
		}
		for _, step := range place {
			switch step := step.(type) {
			case int:
				at = at.([]any)[step]
			case string:
				at = at.(map[string]any)[step]
			}
		}
		want, _ := strictjson.Marshal(shorten(at))
		if got, _ := strictjson.Marshal(f.Input); f.Type != "invalid_key" && !bytes.Equal(got, want) {
			t.Errorf("%v: input is %s, want %s", f, got, want)
		}
	}
}

// A judge is the verdict of validators of other makers.
type judge struct {
	one *jsonschema.Schema
	two []*gojsonschema.Resolved
}

func newJudge(t testing.TB, schema string) *judge {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(schema))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	c.AssertContent()
	if err := c.AddResource("s.json", doc); err != nil {
		t.Fatal(err)
	}
	j := &judge{}
	if j.one, err = c.Compile("s.json"); err != nil {
		t.Fatal(err)
	}
	var s gojsonschema.Schema
	if err := json.Unmarshal([]byte(schema), &s); err != nil {
		t.Fatal(err)
	}
	j.add(t, &s)
	return j
}

// add has the judge ask jsonschema-go's validator too, with a schema as it is in memory.
func (j *judge) add(t testing.TB, schema any) {
	t.Helper()
	resolved, err := schema.(*gojsonschema.Schema).CloneSchemas().Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	j.two = append(j.two, resolved)
}

func (j *judge) accepts(b []byte) error {
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	if err != nil {
		return err
	}
	if err := j.one.Validate(v); err != nil {
		return err
	}
	var plain any
	if err := json.Unmarshal(b, &plain); err != nil {
		return err
	}
	for _, resolved := range j.two {
		if err := resolved.Validate(plain); err != nil {
			return fmt.Errorf("jsonschema-go: %w", err)
		}
	}
	return nil
}

// marshalSchema writes a schema as it is published and looks for what must not be in it.
func marshalSchema(t testing.TB, schema any) string {
	t.Helper()
	b, err := strictjson.Marshal(schema)
	if err != nil {
		t.Fatal(err)
	}
	std, err := json.Marshal(schema)
	if err != nil {
		t.Fatal(err)
	}
	if canonicalJSON(t, string(b)) != canonicalJSON(t, string(std)) {
		t.Errorf("the encoders write different schemas: %s, %s", b, std)
	}
	var doc any
	if err := json.Unmarshal(b, &doc); err != nil {
		t.Fatal(err)
	}
	for _, place := range bareTrues(doc, "") {
		t.Errorf("the schema at %s is a bare true: %s", place, b)
	}
	return string(b)
}

// bareTrues finds the places of a schema where true stands for a schema.
func bareTrues(schema any, at string) (places []string) {
	obj, ok := schema.(map[string]any)
	if !ok {
		if schema == true {
			places = append(places, at+"#")
		}
		return places
	}
	for name, v := range obj {
		switch name {
		case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas":
			for member, sub := range v.(map[string]any) {
				places = append(places, bareTrues(sub, at+"/"+name+"/"+member)...)
			}
		case "anyOf", "oneOf", "allOf", "prefixItems":
			for i, sub := range v.([]any) {
				places = append(places, bareTrues(sub, fmt.Sprint(at, "/", name, "/", i))...)
			}
		case "items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames", "unevaluatedProperties", "unevaluatedItems":
			places = append(places, bareTrues(v, at+"/"+name)...)
		}
	}
	return places
}

func canonicalJSON(t testing.TB, text string) string {
	t.Helper()
	v, _, err := strictjson.Parse([]byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	b, err := strictjson.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func property(t *testing.T, schema, name string) string {
	t.Helper()
	var s struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if err := json.Unmarshal([]byte(schema), &s); err != nil {
		t.Fatal(err)
	}
	return string(s.Properties[name])
}

// strangers are values that mutations put in the place of others.
var strangers = []string{
	`null`, `true`, `false`, `0`, `-0`, `1`, `-1`, `5.0`, `1e2`, `-2.50e1`, `1.5`, `127`, `128`, `255`, `256`, `-129`, `70000`,
	`-70000`, `4294967296`, `9007199254740993`, `18446744073709551615`, `18446744073709551616`, `1e300`, `0.1`,
	`""`, `"x"`, `"a"`, `"5"`, `"true"`, `"AQID"`, `"10.0.0.1"`, `"2026-02-03T04:05:06Z"`, `"2026-02-03"`, `"\"q\""`, `"😀😀😀😀"`,
	`[]`, `[1]`, `["a","b"]`, `[null]`, `[1,2,3]`, `{}`, `{"a":1}`, `{"a":null}`, `{"kind":"circle"}`, `{"0":"a"}`,
}

// mutated changes one place of a tree, which it may reuse.
func mutated(rng *rand.Rand, v any) any {
	stranger := func() any {
		s, _, _ := strictjson.Parse([]byte(strangers[rng.IntN(len(strangers))]))
		return s
	}
	switch c := v.(type) {
	case []any:
		switch {
		case len(c) > 0 && rng.IntN(3) > 0:
			i := rng.IntN(len(c))
			c[i] = mutated(rng, c[i])
			return c
		case len(c) > 0 && rng.IntN(2) > 0:
			return slices.Delete(c, 0, 1)
		case rng.IntN(2) > 0:
			return append(c, stranger())
		}
	case map[string]any:
		names := slices.Sorted(maps.Keys(c))
		switch {
		case len(c) > 0 && rng.IntN(4) > 0:
			name := names[rng.IntN(len(names))]
			c[name] = mutated(rng, c[name])
			return c
		case len(c) > 0 && rng.IntN(3) == 0:
			delete(c, names[rng.IntN(len(names))])
			return c
		case len(c) > 0 && rng.IntN(2) == 0: // the same name in another case
			name := names[rng.IntN(len(names))]
			c[strings.ToUpper(name)] = c[name]
			delete(c, name)
			return c
		case rng.IntN(2) > 0:
			c[[]string{"a", "kind", "0", "-1", "01", "é"}[rng.IntN(6)]] = stranger()
			return c
		}
	}
	return stranger()
}
