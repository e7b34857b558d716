package tools

import (
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/openenv-go/openenv-go/pkg/internal/strictjson"
)

// A validator holds values to a JSON Schema (2020-12). Safe for concurrent use.
//
// Inference and publication are jsonschema-go's; validation is done by another library because jsonschema-go reports a
// fault as text only, while callers need location and kind as values.
type validator struct{ schema *jsonschema.Schema }

// localOnly refuses every reference that leaves the schema.
type localOnly struct{}

func (localOnly) Load(url string) (any, error) {
	return nil, fmt.Errorf("%s: only local references are allowed", url)
}

// newValidator compiles a schema given as any value that marshals to one.
func newValidator(schema any) (*validator, error) {
	b, err := strictjson.Marshal(schema)
	if err != nil {
		return nil, err
	}
	doc, _, err := strictjson.Parse(b)
	if err != nil {
		return nil, err
	}
	const url = "schema:///root"
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(localOnly{})
	if err := c.AddResource(url, doc); err != nil {
		return nil, err
	}
	s, err := c.Compile(url)
	if err != nil {
		return nil, err
	}
	return &validator{s}, nil
}

// validate returns nil or an *[InputError].
func (v *validator) validate(value strictjson.Value) error {
	err := v.schema.Validate(value)
	if err == nil {
		return nil
	}
	var ve *jsonschema.ValidationError
	if !errors.As(err, &ve) {
		return &InputError{Fields: []FieldError{{Type: "value_error", Msg: err.Error()}}}
	}
	var fields []FieldError
	collectFaults(ve, value, &fields)
	slices.SortStableFunc(fields, func(a, b FieldError) int { return strings.Compare(a.Path(), b.Path()) })
	return &InputError{Fields: fields}
}

// collectFaults walks the causes down to the leaves, which name the fields. The branches of an anyOf or oneOf are not
// walked: which of them the caller meant is unknown.
func collectFaults(e *jsonschema.ValidationError, root strictjson.Value, out *[]FieldError) {
	if len(*out) >= MaxFieldErrors {
		return
	}
	switch k := e.ErrorKind.(type) {
	case *kind.AnyOf, *kind.OneOf:
		add(out, e, root, "union_error", "fits none of the alternatives")
		return
	case *kind.Required:
		for _, name := range k.Missing {
			addAt(out, e, root, name, "missing", "field required", false)
		}
		return
	case *kind.AdditionalProperties:
		slices.Sort(k.Properties)
		for _, name := range k.Properties {
			addAt(out, e, root, name, "extra_forbidden", "unknown field", true)
		}
		return
	}
	if len(e.Causes) > 0 {
		for _, c := range e.Causes {
			collectFaults(c, root, out)
		}
		return
	}
	typ, msg := describe(e.ErrorKind)
	add(out, e, root, typ, msg)
}

func add(out *[]FieldError, e *jsonschema.ValidationError, root strictjson.Value, typ, msg string) {
	if len(*out) < MaxFieldErrors {
		loc, input := locate(root, e.InstanceLocation)
		*out = append(*out, FieldError{Type: typ, Loc: loc, Msg: msg, Input: shorten(input)})
	}
}

// addAt adds a fault of the member name of the object at e; own says whether the input shown is the member's value or
// the object's.
func addAt(out *[]FieldError, e *jsonschema.ValidationError, root strictjson.Value, name, typ, msg string, own bool) {
	if len(*out) >= MaxFieldErrors {
		return
	}
	loc, input := locate(root, e.InstanceLocation)
	if obj, ok := input.(map[string]any); ok && own {
		input = obj[name]
	}
	*out = append(*out, FieldError{Type: typ, Loc: append(loc, name), Msg: msg, Input: shorten(input)})
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

// maxShownInput bounds the input that an error repeats, in bytes of its JSON.
const maxShownInput = 200

func shorten(v strictjson.Value) any {
	switch c := v.(type) {
	case string:
		if len(c) > maxShownInput {
			cut := maxShownInput
			for cut > 0 && !utf8.RuneStart(c[cut]) {
				cut--
			}
			return c[:cut] + "…"
		}
	case []any, map[string]any:
		if b, err := strictjson.Marshal(v); err != nil || len(b) > maxShownInput {
			return "…"
		}
	}
	return v
}

// typeWords are Pydantic's words for "not of this type".
var typeWords = map[string]string{
	"string": "string_type", "integer": "int_type", "number": "float_type", "boolean": "bool_type",
	"array": "list_type", "object": "dict_type", "null": "none_required",
}

func describe(k jsonschema.ErrorKind) (typ, msg string) {
	switch k := k.(type) {
	case *kind.Type:
		typ = "value_error"
		for _, want := range k.Want {
			if want != "null" {
				typ = typeWords[want]
			}
		}
		return typ, fmt.Sprintf("want %s, got %s", strings.Join(k.Want, " or "), k.Got)
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
	if len(raw) == 0 {
		raw = []byte("{}")
	}
	value, _, err := strictjson.Parse(raw)
	if err != nil {
		return &InputError{Fields: []FieldError{{Type: "json_invalid", Loc: []any{}, Msg: err.Error()}}}
	}
	return v.v.validate(value)
}
