package tools

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	jsonexp "github.com/go-json-experiment/json"
	"github.com/google/jsonschema-go/jsonschema"

	"github.com/openenv-go/openenv-go/pkg/internal/strictjson"
)

// An Input is the JSON side of a Go type that callers send: its schema and the decoder that holds input to it. Tools
// use it for their arguments, environments for actions and the options of a reset. Safe for concurrent use.
type Input[T any] struct {
	Schema   *jsonschema.Schema // of type object
	check    *validator
	defaults []byte // an object, or nil when no field has a default
}

// NewInput derives the input side of T, which must be a struct or a map, or takes schema in its place when not nil.
func NewInput[T any](schema *jsonschema.Schema) (*Input[T], error) {
	return newInput[T](schema, false)
}

// NewOpenInput is [NewInput] for inputs that may carry members which T does not know; they are ignored.
func NewOpenInput[T any](schema *jsonschema.Schema) (*Input[T], error) {
	return newInput[T](schema, true)
}

func newInput[T any](schema *jsonschema.Schema, open bool) (*Input[T], error) {
	t := reflect.TypeFor[T]()
	if schema == nil {
		var err error
		if schema, err = infer(t, inward); err != nil {
			return nil, err
		}
	} else {
		schema = schema.CloneSchemas()
	}
	if typeOf(schema) != "object" {
		return nil, fmt.Errorf("%s: an input must be a JSON object, so its type must be a struct or a map", t)
	}
	schema.Type, schema.Types = "object", nil // a pointer to a struct: no null
	if open && t.Kind() != reflect.Map {
		schema.AdditionalProperties = nil
	}
	check, err := newValidator(schema)
	if err != nil {
		return nil, fmt.Errorf("schema of %s: %w", t, err)
	}
	in := &Input[T]{Schema: schema, check: check}
	if d := defaultsOf(schema); d != nil {
		if in.defaults, err = strictjson.Marshal(d); err != nil {
			return nil, err
		}
		var v T
		if err := strictjson.Unmarshal(in.defaults, &v); err != nil {
			return nil, fmt.Errorf("defaults of %s: %w", t, err)
		}
	}
	return in, nil
}

// defaultsOf gathers the defaults of an object's members, and of the objects among them.
func defaultsOf(s *jsonschema.Schema) map[string]any {
	var out map[string]any
	for name, p := range s.Properties {
		var v any
		if p.Default != nil {
			v = p.Default
		} else if sub := defaultsOf(p); sub != nil && p.Type == "object" {
			v = sub
		}
		if v != nil {
			if out == nil {
				out = map[string]any{}
			}
			out[name] = v
		}
	}
	return out
}

// Decode reads checked JSON; no bytes at all stand for the empty object. The error is an *[InputError].
func (in *Input[T]) Decode(raw []byte) (v T, err error) {
	if len(raw) == 0 {
		raw = []byte("{}")
	}
	value, plain, err := strictjson.Parse(raw)
	if err != nil {
		return v, &InputError{Fields: []FieldError{{Type: "json_invalid", Loc: []any{}, Msg: err.Error()}}}
	}
	if err := in.check.validate(value); err != nil {
		return v, err
	}
	if in.defaults != nil {
		if err := strictjson.Unmarshal(in.defaults, &v); err != nil {
			return v, decodeError(err, value)
		}
	}
	if plain {
		err = strictjson.UnmarshalPlain(raw, &v)
	} else {
		err = strictjson.UnmarshalIntegers(raw, &v)
	}
	if err != nil {
		return v, decodeError(err, value)
	}
	return v, nil
}

// decodeError names the field that the schema let pass and the Go type could not take: an integer out of range, or
// whatever an author's own UnmarshalJSON refuses.
func decodeError(err error, root strictjson.Value) error {
	fe := FieldError{Type: "value_error", Loc: []any{}, Msg: err.Error()}
	var se *jsonexp.SemanticError
	if errors.As(err, &se) {
		var path []string
		for tok := range se.JSONPointer.Tokens() {
			path = append(path, tok)
		}
		var input strictjson.Value
		fe.Loc, input = locate(root, path)
		fe.Input = shorten(input)
		switch {
		case se.Err != nil && se.JSONKind == '0':
			fe.Msg = fmt.Sprintf("%v: %s", input, strings.TrimPrefix(se.Err.Error(), "strconv.ParseInt: "))
		case se.Err != nil:
			fe.Msg = se.Err.Error()
		case se.GoType != nil:
			fe.Msg = "does not fit " + se.GoType.String()
		}
	}
	return &InputError{Fields: []FieldError{fe}}
}

// An Output is the JSON side of a Go type that the server sends. Safe for concurrent use.
type Output[T any] struct {
	Schema *jsonschema.Schema // of the value itself, before any wrapping
	Object bool               // the value is always an object
}

// NewOutput derives the output side of T, or takes schema in its place when not nil.
func NewOutput[T any](schema *jsonschema.Schema) (*Output[T], error) {
	if schema == nil {
		var err error
		if schema, err = infer(reflect.TypeFor[T](), outward); err != nil {
			return nil, err
		}
	} else {
		schema = schema.CloneSchemas()
	}
	if _, err := newValidator(schema); err != nil {
		return nil, fmt.Errorf("schema of %s: %w", reflect.TypeFor[T](), err)
	}
	out := &Output[T]{Schema: schema, Object: typeOf(schema) == "object"}
	if out.Object {
		schema.Type, schema.Types = "object", nil
	}
	return out, nil
}

// Encode writes v. NaN, infinities and a nil pointer where an object is due are errors.
func (out *Output[T]) Encode(v T) (json.RawMessage, error) {
	b, err := strictjson.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("the value returned cannot be written as JSON: %w", err)
	}
	if out.Object && (len(b) == 0 || b[0] != '{') {
		return nil, fmt.Errorf("the value returned is %.40s where an object is due", b)
	}
	return b, nil
}
