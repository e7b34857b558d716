package tools

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/openenv-go/openenv-go/pkg/internal/strictjson"
)

// An Input is the JSON side of a Go type that callers send: its schema and the decoder that holds input to it. Tools
// use it for their arguments, environments for actions and the options of a reset. Safe for concurrent use.
type Input[T any] struct {
	Schema   *jsonschema.Schema // of type object
	check    *validator
	defaults *defaults
	shallow  shallow // nil: T is read from the text alone
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
	derived := schema == nil
	if derived {
		var err error
		if schema, _, err = infer(t, inward); err != nil {
			return nil, err
		}
	} else {
		schema = publishable(schema)
	}
	if typeOf(schema) != "object" {
		return nil, fmt.Errorf("%s: an input must be a JSON object, so its type must be a struct or a map", t)
	}
	schema.Type, schema.Types = "object", nil // nullable by the author's schema: an input is never null
	if elem, _ := pointee(t); open && elem.Kind() != reflect.Map {
		schema.AdditionalProperties = nil
	}
	check, err := newValidator(schema)
	if err != nil {
		return nil, fmt.Errorf("schema of %s: %w", t, err)
	}
	in := &Input[T]{Schema: schema, check: check, shallow: shallowOf(t)}
	if in.defaults, err = newDefaults(schema, derived); err != nil {
		return nil, fmt.Errorf("defaults of %s: %w", t, err)
	}
	if err := in.tryDefaults(); err != nil {
		return nil, fmt.Errorf("defaults of %s: %w", t, err)
	}
	return in, nil
}

// tryDefaults decodes the input {}, as far as the defaults complete it.
func (in *Input[T]) tryDefaults() error {
	plain := false
	raw, err := in.defaults.apply([]byte("{}"), map[string]any{}, &plain)
	if err != nil || len(raw) == len("{}") {
		return err
	}
	return strictjson.UnmarshalIntegers(raw, new(T))
}

// argumentsOf are a call's arguments: no bytes at all stand for the empty object.
func argumentsOf(raw []byte) []byte {
	if len(raw) == 0 {
		return []byte("{}")
	}
	return raw
}

// Decode reads JSON that a door has checked; no bytes at all stand for the empty object. The error is an *[InputError].
func (in *Input[T]) Decode(raw []byte) (v T, err error) {
	raw = argumentsOf(raw)
	value, plain, err := strictjson.Parse(raw)
	if err != nil {
		return v, unreadable(err)
	}
	if err := in.check.validate(value); err != nil {
		return v, err
	}
	if raw, err = in.defaults.apply(raw, value, &plain); err != nil {
		return v, decodeError(err, value)
	}
	if plain && in.shallow.fill(reflect.ValueOf(&v).Elem(), value) {
		return v, nil
	}
	v = *new(T) // some of it may be filled
	if plain {
		err = strictjson.UnmarshalPlain(raw, &v)
	} else {
		err = strictjson.UnmarshalIntegers(raw, &v)
	}
	if err != nil {
		return *new(T), decodeError(err, value)
	}
	return v, nil
}

// decodeError names the field that the schema let pass and the Go type could not take: an integer out of range, or
// whatever an author's own UnmarshalJSON refuses.
func decodeError(err error, root strictjson.Value) error {
	fe := FieldError{Type: "value_error", Msg: err.Error()}
	var at *strictjson.ValueError
	if errors.As(err, &at) {
		fe.Loc, fe.Input = locate(root, at.Path)
		fe.Msg = at.Err.Error()
	}
	return &InputError{Fields: []FieldError{shortened(fe)}}
}

// An Output is the JSON side of a Go type that the server sends. Safe for concurrent use.
type Output[T any] struct {
	Schema *jsonschema.Schema // of the value itself, before any wrapping
	Object bool               // the value is always an object
	check  *validator         // nil where the Go type alone guarantees the schema
}

// NewOutput derives the output side of T, or takes schema in its place when not nil.
func NewOutput[T any](schema *jsonschema.Schema) (*Output[T], error) {
	narrowed := true
	if schema == nil {
		var err error
		if schema, narrowed, err = infer(reflect.TypeFor[T](), outward); err != nil {
			return nil, err
		}
	} else {
		schema = publishable(schema)
	}
	out := &Output[T]{Schema: schema, Object: typeOf(schema) == "object"}
	if out.Object {
		schema.Type, schema.Types = "object", nil
	}
	check, err := newValidator(schema)
	if err != nil {
		return nil, fmt.Errorf("schema of %s: %w", reflect.TypeFor[T](), err)
	}
	if narrowed {
		out.check = check
	}
	return out, nil
}

// Encode writes v. NaN, infinities, a nil pointer where an object is due and a value that breaks the schema, which is
// published, are errors.
func (out *Output[T]) Encode(v T) (json.RawMessage, error) {
	b, err := strictjson.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("the value returned cannot be written as JSON: %w", err)
	}
	if out.Object && (len(b) == 0 || b[0] != '{') {
		return nil, fmt.Errorf("the value returned is %.40s where an object is due", b)
	}
	if out.check != nil {
		value, _, err := strictjson.Parse(b)
		if err == nil {
			err = out.check.validate(value)
		}
		if err != nil {
			// Not wrapped: an InputError would blame the caller.
			return nil, fmt.Errorf("the value returned does not fit its schema: %v", err)
		}
	}
	return b, nil
}
