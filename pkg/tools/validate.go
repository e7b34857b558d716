package tools

import (
	"cmp"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/openenv-go/openenv-go/pkg/internal/strictjson"
)

// A validator holds values to a JSON Schema (2020-12; formats are asserted). Safe for concurrent use.
//
// Schemas are written as jsonschema-go's, but validation is done by another library, because jsonschema-go reports a
// fault as text only, while callers need location and kind as values.
type validator struct {
	rule   *rule              // nil if the schema has keywords that rules do not know
	schema *jsonschema.Schema // used where there is no rule
}

// localOnly refuses every reference that leaves the schema.
type localOnly struct{}

func (localOnly) Load(url string) (any, error) {
	return nil, fmt.Errorf("%s: only local references are allowed", url)
}

// schemaDocument is a schema, given as any value that marshals to one, as the JSON that it is.
func schemaDocument(schema any) (strictjson.Value, error) {
	b, err := strictjson.Marshal(schema)
	if err != nil {
		return nil, err
	}
	doc, _, err := strictjson.Parse(b)
	return doc, err
}

// newValidator compiles a schema given as any value that marshals to one.
func newValidator(schema any) (*validator, error) {
	doc, err := schemaDocument(schema)
	if err != nil {
		return nil, err
	}
	s, err := compile(doc)
	if err != nil {
		return nil, err
	}
	v := &validator{schema: s}
	if r, ok := newRule(doc); ok {
		v.rule = r
	}
	return v, nil
}

func compile(doc any) (*jsonschema.Schema, error) {
	const url = "schema:///root"
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	c.UseLoader(localOnly{})
	if err := c.AddResource(url, doc); err != nil {
		return nil, err
	}
	s, err := c.Compile(url)
	var invalid *jsonschema.SchemaValidationError
	if errors.As(err, &invalid) {
		return nil, fmt.Errorf("not a JSON Schema: %v", invalid.Err)
	}
	return s, err
}

// validate returns nil or an *[InputError].
func (v *validator) validate(value strictjson.Value) error {
	var out faults
	if v.rule != nil {
		if v.rule.accepts(value) {
			return nil
		}
		v.rule.report(value, nil, &out)
		return &InputError{Fields: out.fields}
	}
	err := v.schema.Validate(value)
	if err == nil {
		return nil
	}
	var ve *jsonschema.ValidationError
	if !errors.As(err, &ve) {
		return &InputError{Fields: []FieldError{{Type: "value_error", Loc: []any{}, Msg: err.Error()}}}
	}
	var leaves []leaf
	collectLeaves(ve, &leaves)
	// The validator walks maps in random order; which faults are reported must not depend on it.
	slices.SortStableFunc(leaves, compareLeaves)
	for _, l := range leaves {
		if out.full() {
			break
		}
		loc, at := locate(value, l.e.InstanceLocation)
		switch {
		case !l.named:
			out.add(loc, at, l.e.ErrorKind)
		case l.key:
			out.add(append(loc, l.name), l.name, l.e.ErrorKind)
		case l.missing:
			out.missing(loc, l.name, at)
		default:
			obj, _ := at.(map[string]any)
			out.unknown(append(loc, l.name), obj[l.name])
		}
	}
	return &InputError{Fields: out.fields}
}

// A leaf is a fault of the value at e's place, or of its member name: missing, named against the rules, or unknown.
type leaf struct {
	e                   *jsonschema.ValidationError
	name                string
	named, missing, key bool
}

// collectLeaves walks the causes down to the leaves, which name the fields. What is below an anyOf, oneOf or contains is
// not walked: which of the branches, or items, the caller meant is unknown.
func collectLeaves(e *jsonschema.ValidationError, out *[]leaf) {
	named := func(names []string, missing bool) {
		for _, name := range names {
			*out = append(*out, leaf{e: e, name: name, named: true, missing: missing})
		}
	}
	switch k := e.ErrorKind.(type) {
	case *kind.Required:
		named(k.Missing, true)
	case *kind.DependentRequired:
		named(k.Missing, true)
	case *kind.Dependency:
		named(k.Missing, true)
	case *kind.PropertyNames:
		*out = append(*out, leaf{e: e, name: k.Property, named: true, key: true})
	case *kind.AdditionalProperties:
		named(k.Properties, false)
	case *kind.AnyOf, *kind.OneOf, *kind.Contains, *kind.MinContains, *kind.MaxContains:
		*out = append(*out, leaf{e: e})
	default:
		if len(e.Causes) == 0 {
			*out = append(*out, leaf{e: e})
		}
		for _, c := range e.Causes {
			collectLeaves(c, out)
		}
	}
}

func compareLeaves(a, b leaf) int {
	if c := slices.CompareFunc(a.path(), b.path(), compareSteps); c != 0 {
		return c
	}
	return strings.Compare(fmt.Sprintf("%T", a.e.ErrorKind), fmt.Sprintf("%T", b.e.ErrorKind))
}

func (l leaf) path() []string {
	if !l.named {
		return l.e.InstanceLocation
	}
	return append(slices.Clip(l.e.InstanceLocation), l.name)
}

// compareSteps orders list indexes as numbers.
func compareSteps(a, b string) int {
	x, errX := strconv.Atoi(a)
	y, errY := strconv.Atoi(b)
	if errX == nil && errY == nil {
		return cmp.Compare(x, y)
	}
	return strings.Compare(a, b)
}

// firstKind is the kind of the one fault in an error of a schema without subschemas.
func firstKind(err error) jsonschema.ErrorKind {
	var ve *jsonschema.ValidationError
	if !errors.As(err, &ve) {
		return &kind.FalseSchema{}
	}
	for len(ve.Causes) > 0 {
		ve = ve.Causes[0]
	}
	return ve.ErrorKind
}

// locate follows an instance location, giving list indexes as integers.
func locate(v strictjson.Value, path []string) (loc []any, at strictjson.Value) {
	loc = []any{}
	for _, p := range path {
		switch c := v.(type) {
		case []any:
			i, err := strconv.Atoi(p)
			if err != nil || i < 0 || i >= len(c) {
				return loc, v
			}
			loc, v = append(loc, i), c[i]
		case map[string]any:
			loc, v = append(loc, p), c[p]
		default:
			return loc, v
		}
	}
	return loc, v
}

// typeWords are Pydantic's words for "not of this type".
var typeWords = map[string]string{
	"string": "string_type", "integer": "int_type", "number": "float_type", "boolean": "bool_type",
	"array": "list_type", "object": "dict_type", "null": "none_required",
}

func describe(k jsonschema.ErrorKind) (typ, msg string) {
	switch k := k.(type) {
	case *kind.Type:
		typ, want := "none_required", slices.Sorted(slices.Values(k.Want))
		for _, t := range want {
			if t != "null" {
				typ = typeWords[t]
			}
		}
		return typ, fmt.Sprintf("want %s, got %s", strings.Join(want, " or "), k.Got)
	case *kind.AnyOf:
		return "union_error", "fits none of the alternatives"
	case *kind.OneOf:
		if len(k.Subschemas) > 0 {
			return "union_error", "fits more than one of the alternatives"
		}
		return "union_error", "fits none of the alternatives"
	case *kind.PropertyNames:
		return "invalid_key", fmt.Sprintf("the name %q is not allowed", cut(k.Property, maxShownName))
	case *kind.Not:
		return "value_error", "breaks the schema's rule not"
	case *kind.FalseSchema:
		return "value_error", "no value is allowed here"
	case *kind.Enum:
		return "enum", "want one of " + list(k.Want)
	case *kind.Const:
		return "literal_error", "want " + list([]any{k.Want})
	case *kind.Minimum:
		return "greater_than_equal", "want at least " + number(k.Want)
	case *kind.Maximum:
		return "less_than_equal", "want at most " + number(k.Want)
	case *kind.ExclusiveMinimum:
		return "greater_than", "want more than " + number(k.Want)
	case *kind.ExclusiveMaximum:
		return "less_than", "want less than " + number(k.Want)
	case *kind.MultipleOf:
		return "multiple_of", "want a multiple of " + number(k.Want)
	case *kind.MinLength:
		return "string_too_short", fmt.Sprintf("want at least %d characters, got %d", k.Want, k.Got)
	case *kind.MaxLength:
		return "string_too_long", fmt.Sprintf("want at most %d characters, got %d", k.Want, k.Got)
	case *kind.Pattern:
		return "string_pattern_mismatch", "want a string that matches " + k.Want
	case *kind.Format:
		return "value_error", "want a string of format " + k.Want
	case *kind.MinItems:
		return "too_short", fmt.Sprintf("want at least %d items, got %d", k.Want, k.Got)
	case *kind.MaxItems:
		return "too_long", fmt.Sprintf("want at most %d items, got %d", k.Want, k.Got)
	case *kind.UniqueItems:
		return "unique_items", fmt.Sprintf("items %d and %d are equal", k.Duplicates[0], k.Duplicates[1])
	case *kind.MinProperties:
		return "too_short", fmt.Sprintf("want at least %d members, got %d", k.Want, k.Got)
	case *kind.MaxProperties:
		return "too_long", fmt.Sprintf("want at most %d members, got %d", k.Want, k.Got)
	}
	return "value_error", "breaks the schema's rule " + strings.Join(k.KeywordPath(), "/")
}

func list(values []any) string {
	parts := make([]string, len(values))
	for i, v := range values {
		b, err := strictjson.Marshal(v)
		if err != nil {
			b = []byte("?")
		}
		parts[i] = string(b)
	}
	return strings.Join(parts, ", ")
}

func number(r *big.Rat) string {
	if r.IsInt() {
		return r.Num().String()
	}
	f, _ := r.Float64()
	return strconv.FormatFloat(f, 'g', -1, 64)
}

// A Validator holds JSON to a schema that is not derived from a Go type. Safe for concurrent use.
type Validator struct{ v *validator }

// NewValidator compiles a JSON Schema, given as anything that marshals to one. References to other documents are errors.
func NewValidator(schema any) (*Validator, error) {
	v, err := newValidator(schema)
	if err != nil {
		return nil, err
	}
	return &Validator{v}, nil
}

// Validate holds checked JSON to the schema; no bytes at all stand for the empty object. The error is an *[InputError].
func (v *Validator) Validate(raw []byte) error {
	value, _, err := strictjson.Parse(argumentsOf(raw))
	if err != nil {
		return unreadable(err)
	}
	return v.v.validate(value)
}
