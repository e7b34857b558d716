package tools

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openenv-go/openenv-go/pkg/internal/strictjson"
)

// Rules and the validator of every schema give the same verdict and blame the same places, for random schemas and values.
func TestRulesAgainstValidator(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	accepted := 0
	const n = 3_000
	for range n {
		doc := randomSchema(rng, 3)
		v, err := newValidator(doc)
		if err != nil {
			t.Fatalf("%v: %v", doc, err)
		}
		if v.rule == nil {
			t.Fatalf("no rule for %v", doc)
		}
		general := &validator{schema: v.schema}
		for range 5 {
			value := randomValue(rng, 3)
			got, want := v.validate(value), general.validate(value)
			if (got == nil) != (want == nil) {
				t.Fatalf("schema %s\nvalue %s\nrule: %v\nvalidator: %v", marshal(doc), marshal(value), got, want)
			}
			if got == nil {
				accepted++
				continue
			}
			if diff := cmp.Diff(places(want), places(got)); diff != "" {
				t.Fatalf("schema %s\nvalue %s\nplaces (-validator +rule):\n%s", marshal(doc), marshal(value), diff)
			}
		}
	}
	if accepted < n/2 {
		t.Errorf("only %d of the values are accepted: the test says little", accepted)
	}
}

func marshal(v any) []byte {
	b, err := strictjson.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

// places are where the faults are. Several faults of one place are one: rules stop at the first.
func places(err error) []string {
	set := map[string]bool{}
	for _, f := range err.(*InputError).Fields {
		set[fmt.Sprintf("%#v", f.Loc)] = true
	}
	return slices.Sorted(maps.Keys(set))
}

func randomSchema(rng *rand.Rand, depth int) any {
	one := func(options ...any) any { return options[rng.IntN(len(options))] }
	num := func(options ...string) any { return strictjson.Number(options[rng.IntN(len(options))]) }
	if rng.IntN(10) == 0 {
		return one(true, false, map[string]any{})
	}
	s := map[string]any{}
	maybe := func(name string, v any) {
		if rng.IntN(4) == 0 {
			s[name] = v
		}
	}
	if rng.IntN(3) > 0 {
		s["type"] = one("string", "integer", "number", "boolean", "null", "array", "object", []any{"null", "integer"}, []any{"string", "number"}, []any{"object", "array"})
	}
	maybe("minimum", num("-1", "0", "0.1", "5.0", "1e2"))
	maybe("maximum", num("0", "0.1", "5", "9007199254740993"))
	maybe("exclusiveMinimum", num("-1", "0", "0.1"))
	maybe("exclusiveMaximum", num("5", "0.1", "1e2"))
	maybe("multipleOf", num("2", "0.1", "5"))
	maybe("minLength", num("0", "1", "2.0"))
	maybe("maxLength", num("1", "3"))
	maybe("pattern", one("^a", "é", "."))
	maybe("format", one("date", "email", "no-such-format"))
	maybe("minItems", num("0", "1"))
	maybe("maxItems", num("1", "2"))
	maybe("uniqueItems", one(true, false))
	maybe("minProperties", num("1"))
	maybe("maxProperties", num("1", "2"))
	maybe("title", "a title")
	maybe("x-own", []any{})
	maybe("default", nil)
	if rng.IntN(8) == 0 {
		s["enum"] = one([]any{"a", nil}, []any{strictjson.Number("5"), true, strictjson.Number("0.1")}, []any{})
	}
	if depth > 0 {
		maybe("items", randomSchema(rng, depth-1))
		maybe("required", one([]any{"a"}, []any{"b", "a"}, []any{}))
		maybe("properties", map[string]any{"a": randomSchema(rng, depth-1), "b": randomSchema(rng, depth-1)})
		maybe("additionalProperties", randomSchema(rng, depth-1))
	}
	return s
}

func randomValue(rng *rand.Rand, depth int) any {
	scalars := []any{
		nil, true, false, "", "a", "é", "abcd", "2026-02-03", "a@b.example", "😀😀",
		strictjson.Number("0"), strictjson.Number("-0"), strictjson.Number("5"), strictjson.Number("5.0"), strictjson.Number("50e-1"),
		strictjson.Number("0.1"), strictjson.Number("1e-1"), strictjson.Number("1e2"), strictjson.Number("-1"), strictjson.Number("0.10000000000000000001"),
		strictjson.Number("9007199254740993"), strictjson.Number("9007199254740992"), strictjson.Number("1e400"), strictjson.Number("1e-400"),
	}
	if depth == 0 || rng.IntN(2) == 0 {
		return scalars[rng.IntN(len(scalars))]
	}
	if rng.IntN(2) == 0 {
		list := []any{}
		for range rng.IntN(4) {
			list = append(list, randomValue(rng, depth-1))
		}
		return list
	}
	obj := map[string]any{}
	for range rng.IntN(4) {
		obj[[]string{"a", "b", "c", "A"}[rng.IntN(4)]] = randomValue(rng, depth-1)
	}
	return obj
}

// Schemas with other keywords go to the validator.
func TestRulesKnowTheirLimits(t *testing.T) {
	for _, doc := range []string{
		`{"anyOf":[{}]}`, `{"oneOf":[{}]}`, `{"allOf":[{}]}`, `{"not":{}}`, `{"if":{}}`, `{"$ref":"#"}`, `{"$defs":{}}`, `{"contains":{}}`,
		`{"prefixItems":[{}]}`, `{"patternProperties":{}}`, `{"propertyNames":{}}`, `{"dependentRequired":{}}`, `{"unevaluatedProperties":false}`,
		`{"$schema":"http://json-schema.org/draft-07/schema#"}`, `{"$id":"urn:x"}`, `{"enum":[[1]]}`, `{"const":1}`, `{"unknown":1}`,
		`{"properties":{"a":{"items":{"not":{}}}}}`, `{"additionalProperties":{"not":{}}}`,
	} {
		v, err := NewValidator(strictjson.Raw(doc))
		if err != nil {
			t.Errorf("%s: %v", doc, err)
		} else if v.v.rule != nil {
			t.Errorf("%s has a rule", doc)
		}
	}
}

func TestValidatorMessages(t *testing.T) {
	for _, test := range []struct{ schema, value, want string }{
		{`{"type":"integer"}`, `"a"`, `want integer, got string`},
		{`{"type":["string","null"]}`, `[]`, `want null or string, got array`},
		{`{"type":"object","required":["b","a"]}`, `{}`, `a: field required; b: field required`},
		{`{"additionalProperties":false,"properties":{"a":{}}}`, `{"a":1,"c":1,"b":1}`, `b: unknown field; c: unknown field`},
		{`{"enum":["a",5,null]}`, `"b"`, `want one of "a", 5, null`},
		{`{"const":{"a":1}}`, `1`, `want {"a":1}`},
		{`{"minimum":0.1}`, `0`, `want at least 0.1`},
		{`{"maximum":100000000000000000000}`, `1e21`, `want at most 100000000000000000000`},
		{`{"exclusiveMinimum":0}`, `0`, `want more than 0`},
		{`{"exclusiveMaximum":0}`, `0`, `want less than 0`},
		{`{"multipleOf":0.5}`, `0.7`, `want a multiple of 0.5`},
		{`{"minLength":2}`, `"é"`, `want at least 2 characters, got 1`},
		{`{"maxLength":1}`, `"ab"`, `want at most 1 characters, got 2`},
		{`{"pattern":"^a"}`, `"b"`, `want a string that matches ^a`},
		{`{"format":"date"}`, `"b"`, `want a string of format date`},
		{`{"minItems":1}`, `[]`, `want at least 1 items, got 0`},
		{`{"maxItems":1}`, `[1,2]`, `want at most 1 items, got 2`},
		{`{"uniqueItems":true}`, `[1,2,1.0]`, `items 0 and 2 are equal`},
		{`{"minProperties":1}`, `{}`, `want at least 1 members, got 0`},
		{`{"maxProperties":0}`, `{"a":1}`, `want at most 0 members, got 1`},
		{`{"properties":{"a":false}}`, `{"a":1}`, `a: no value is allowed here`},
		{`{"not":{"type":"string"}}`, `"a"`, `breaks the schema's rule not`},
		{`{"anyOf":[{"type":"string"},{"minimum":5}]}`, `1`, `fits none of the alternatives`},
		{`{"oneOf":[{"type":"string"},{"minLength":1}]}`, `"a"`, `fits more than one of the alternatives`},
		{`{"oneOf":[{"type":"string"},{"type":"null"}]}`, `1`, `fits none of the alternatives`},
		{`{"allOf":[{"required":["a"]},{"properties":{"b":{"type":"string"}}}]}`, `{"b":1}`, `a: field required; b: want string, got number`},
		{`{"propertyNames":{"pattern":"^a"}}`, `{"b":1}`, `b: the name "b" is not allowed`},
		{`{"dependentRequired":{"a":["b"]}}`, `{"a":1}`, `b: field required`},
		{`{"contains":{"type":"string"}}`, `[1,2]`, `breaks the schema's rule contains`},
		{`{"if":{"required":["a"]},"then":{"required":["b"]}}`, `{"a":1}`, `b: field required`},
		{`{"$ref":"#/$defs/x","$defs":{"x":{"items":{"type":"integer"}}}}`, `[1,"a"]`, `1: want integer, got string`},
		{`{"items":{"properties":{"a":{"items":{"type":"integer"}}}}}`, `[{},{"a":[0,1,null]}]`, `1.a.2: want integer, got null`},
		{`{"additionalProperties":{"additionalProperties":{"type":"null"}}}`, `{"x":{"y.z":1}}`, `x.y.z: want null, got number`},
	} {
		v, err := NewValidator(strictjson.Raw(test.schema))
		if err != nil {
			t.Errorf("%s: %v", test.schema, err)
			continue
		}
		if err := v.Validate([]byte(test.value)); err == nil || err.Error() != test.want {
			t.Errorf("%s of %s: %v, want %s", test.value, test.schema, err, test.want)
		}
	}
	for _, schema := range []string{`{"type":"objekt"}`, `{"$ref":"other.json"}`, `{"$ref":"https://example.com/x"}`, `{"pattern":"("}`, `{"minLength":-1}`, `5`, `{`} {
		if _, err := NewValidator(strictjson.Raw(schema)); err == nil {
			t.Errorf("%s was taken for a schema", schema)
		} else if strings.Contains(err.Error(), "schema:///root") {
			t.Logf("%s: %v", schema, err)
		}
	}
	v, err := NewValidator(map[string]any{"required": []string{"a"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := v.Validate(nil); err == nil || err.Error() != "a: field required" {
		t.Errorf("no bytes are the empty object: %v", err)
	}
	if err := v.Validate([]byte("{")); err == nil {
		t.Error("unchecked input was accepted")
	}
}
