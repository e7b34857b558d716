package tools

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"reflect"
	"regexp"
	"slices"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/openenv-go/openenv-go/pkg/internal/strictjson"
)

// A Schemer is a type that says its own JSON Schema: a union, or anything else that marshals itself. The method is
// called on the type's zero value when the tool is made; the schema must not refer to other documents.
type Schemer interface{ JSONSchema() *jsonschema.Schema }

// direction tells the two sides of a schema apart: callers may leave out a pointer field of an input, while an output
// carries it, as null; and a type may have a method for one side only.
type direction int

const (
	inward direction = iota
	outward
)

// inference derives the schema of a Go type from what [strictjson] does with its values.
type inference struct {
	dir  direction
	open map[reflect.Type]bool // the types around the one at hand

	// narrowed is set when a schema says more than the types guarantee: by a tag, or in a Schemer's own words.
	narrowed bool

	defs map[string]*jsonschema.Schema // of the whole: schemas with references to their own parts
}

// infer derives the schema of t. A pointer to what is an object is taken for the object itself, never null.
func infer(t reflect.Type, dir direction) (s *jsonschema.Schema, narrowed bool, err error) {
	in := &inference{dir: dir, open: map[reflect.Type]bool{}}
	elem, pointer := pointee(t)
	s, err = in.bare(elem)
	if err != nil {
		return nil, false, err
	}
	if pointer && s.Type != "object" {
		if refersToItself(s) {
			s = in.define(elem, s)
		}
		s = orNull(s)
	}
	if in.defs != nil {
		s.Defs = in.defs
	}
	return s, in.narrowed, nil
}

func pointee(t reflect.Type) (elem reflect.Type, pointer bool) {
	for t.Kind() == reflect.Pointer {
		t, pointer = t.Elem(), true
	}
	return t, pointer
}

// schema derives the schema of a type within another.
func (in *inference) schema(t reflect.Type) (*jsonschema.Schema, error) {
	elem, pointer := pointee(t)
	s, err := in.bare(elem)
	if err == nil && pointer {
		s = orNull(s)
	}
	return s, err
}

// bare derives the schema of a type that is no pointer.
func (in *inference) bare(t reflect.Type) (*jsonschema.Schema, error) {
	if in.open[t] {
		return nil, fmt.Errorf("the type %s contains itself; give it a schema (see tools.Schemer)", t)
	}
	if s, err := in.selfDescribed(t); s != nil || err != nil {
		return s, err
	}
	switch k := t.Kind(); k {
	case reflect.Bool:
		return &jsonschema.Schema{Type: "boolean"}, nil
	case reflect.String:
		return &jsonschema.Schema{Type: "string"}, nil
	case reflect.Float32, reflect.Float64:
		return &jsonschema.Schema{Type: "number"}, nil
	case reflect.Slice, reflect.Array, reflect.Map, reflect.Struct:
		in.open[t] = true
		defer delete(in.open, t)
		switch k {
		case reflect.Struct:
			return in.object(t)
		case reflect.Map:
			return in.mapping(t)
		}
		return in.list(t)
	}
	if s := integerSchema(t.Kind()); s != nil {
		return s, nil
	}
	return nil, fmt.Errorf("the type %s has no JSON form", t)
}

// integerSchema bounds an integer type where floats can say the bounds exactly; the decoder holds the others.
func integerSchema(k reflect.Kind) *jsonschema.Schema {
	s := &jsonschema.Schema{Type: "integer"}
	signed := func(lo, hi float64) { s.Minimum, s.Maximum = &lo, &hi }
	switch k {
	case reflect.Int, reflect.Int64:
	case reflect.Uint, reflect.Uint64, reflect.Uintptr:
		s.Minimum = new(float64)
	case reflect.Int8:
		signed(math.MinInt8, math.MaxInt8)
	case reflect.Int16:
		signed(math.MinInt16, math.MaxInt16)
	case reflect.Int32:
		signed(math.MinInt32, math.MaxInt32)
	case reflect.Uint8:
		signed(0, math.MaxUint8)
	case reflect.Uint16:
		signed(0, math.MaxUint16)
	case reflect.Uint32:
		signed(0, math.MaxUint32)
	default:
		return nil
	}
	return s
}

func (in *inference) list(t reflect.Type) (*jsonschema.Schema, error) {
	items, err := in.schema(t.Elem())
	if err != nil {
		return nil, err
	}
	s := &jsonschema.Schema{Type: "array", Items: items}
	if t.Kind() == reflect.Array {
		s.MinItems, s.MaxItems = jsonschema.Ptr(t.Len()), jsonschema.Ptr(t.Len())
	}
	return s, nil
}

func (in *inference) mapping(t reflect.Type) (*jsonschema.Schema, error) {
	s := &jsonschema.Schema{Type: "object"}
	switch key := t.Key(); {
	case key.Kind() == reflect.String, in.asText(key):
	case integerSchema(key.Kind()) != nil && key.Kind() >= reflect.Uint:
		s.PropertyNames = &jsonschema.Schema{Pattern: `^(0|[1-9][0-9]*)$`}
	case integerSchema(key.Kind()) != nil:
		s.PropertyNames = &jsonschema.Schema{Pattern: `^(0|-?[1-9][0-9]*)$`}
	default:
		return nil, fmt.Errorf("the type %s has no JSON form: keys must be strings, integers or marshal to text", t)
	}
	var err error
	s.AdditionalProperties, err = in.schema(t.Elem())
	return s, err
}

func (in *inference) object(t reflect.Type) (*jsonschema.Schema, error) {
	fields, err := jsonFields(t, in.dir)
	if err != nil {
		return nil, err
	}
	s := &jsonschema.Schema{Type: "object", AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}}}
	if len(fields) > 0 {
		s.Properties = map[string]*jsonschema.Schema{}
	}
	for _, f := range fields {
		p, optional, err := in.member(f)
		if err != nil {
			return nil, fmt.Errorf("%s.%s: %w", t, f.Name, err)
		}
		s.Properties[f.name] = p
		s.PropertyOrder = append(s.PropertyOrder, f.name)
		if !optional {
			s.Required = append(s.Required, f.name)
		}
	}
	return s, nil
}

// notDescription is how other libraries begin their tags of options: jsonschema:"required,minimum=1".
var notDescription = regexp.MustCompile(`^[^ \t\n]*=`)

func (in *inference) member(f field) (s *jsonschema.Schema, optional bool, err error) {
	elem, pointer := pointee(f.Type)
	if s, err = in.bare(elem); err != nil {
		return nil, false, err
	}
	if f.quoted {
		if s, err = quoted(elem, s); err != nil {
			return nil, false, err
		}
	}
	tagged, err := applyTags(f.Tag, s)
	if err != nil {
		return nil, false, err
	}
	in.narrowed = in.narrowed || tagged
	inner := s
	if pointer {
		s = orNull(s)
	}
	if text, ok := f.Tag.Lookup("jsonschema"); ok {
		if text == "" || notDescription.MatchString(text) {
			return nil, false, fmt.Errorf("tag jsonschema:%q: want a description; bounds have tags of their own", text)
		}
		s.Description = text
	}
	if f.secret {
		markSecret(s, in.dir)
	}
	defaulted, err := applyDefault(f.Tag, inner, s)
	optional = f.omit || f.viaPointer || in.dir == inward && (pointer || defaulted)
	return s, optional, err
}

// quoted is the schema of a value whose tag has the option string. Like encoding/json it quotes scalars only.
func quoted(t reflect.Type, s *jsonschema.Schema) (*jsonschema.Schema, error) {
	const digits = `(0|[1-9][0-9]*)`
	pattern := ""
	switch k := t.Kind(); {
	case marshalsItself(t) && t != numberType:
		return s, nil
	case k == reflect.Bool:
		pattern = `^(true|false)$`
	case k >= reflect.Int && k <= reflect.Int64:
		pattern = `^-?` + digits + `$`
	case k >= reflect.Uint && k <= reflect.Uintptr:
		pattern = `^` + digits + `$`
	case k == reflect.Float32, k == reflect.Float64, t == numberType:
		pattern = `^-?` + digits + `(\.[0-9]+)?([eE][-+]?[0-9]+)?$`
	case k == reflect.String:
		pattern = `^"([^"\\\x00-\x1f]|\\(["\\/bfnrt]|u[0-9a-fA-F]{4}))*"$`
	default:
		return nil, errors.New("the json option string is for numbers, booleans and strings")
	}
	return &jsonschema.Schema{Type: "string", Pattern: pattern, Description: s.Description}, nil
}

// orNull widens a schema by null.
func orNull(s *jsonschema.Schema) *jsonschema.Schema {
	switch {
	case acceptsAnything(s):
		return s
	case s.Type == "" || s.Const != nil || s.Not != nil || s.If != nil || s.Ref != "" || s.AllOf != nil || s.AnyOf != nil || s.OneOf != nil:
		return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{s, {Type: "null"}}}
	}
	s.Type, s.Types = "", []string{"null", s.Type}
	if s.Enum != nil {
		s.Enum = append(slices.Clone(s.Enum), nil)
	}
	return s
}

var (
	marshalerType       = reflect.TypeFor[json.Marshaler]()
	unmarshalerType     = reflect.TypeFor[json.Unmarshaler]()
	textMarshalerType   = reflect.TypeFor[encoding.TextMarshaler]()
	textUnmarshalerType = reflect.TypeFor[encoding.TextUnmarshaler]()
	numberType          = reflect.TypeFor[json.Number]()
)

// known are types of the standard library whose methods do not say what they marshal to.
var known = map[reflect.Type]*jsonschema.Schema{
	numberType:                         {Type: "number"},
	reflect.TypeFor[time.Time]():       {Type: "string", Format: "date-time"},
	reflect.TypeFor[time.Duration]():   {Type: "integer", Description: "a duration in nanoseconds"},
	reflect.TypeFor[big.Int]():         {Type: "integer"},
	reflect.TypeFor[json.RawMessage](): anything(),
	reflect.TypeFor[strictjson.Raw]():  anything(),
}

// anything is the schema of any value. An empty one would be published as a bare true, which some agents refuse.
func anything() *jsonschema.Schema { return &jsonschema.Schema{Description: "any JSON value"} }

// acceptsAnything reports whether a schema is [anything] with whatever description.
func acceptsAnything(s *jsonschema.Schema) bool {
	bare := *s
	bare.Description = ""
	return reflect.ValueOf(bare).IsZero()
}

// selfDescribed gives the schemas of types whose JSON form does not follow from their kind, and nil for others.
func (in *inference) selfDescribed(t reflect.Type) (*jsonschema.Schema, error) {
	if s := known[t]; s != nil {
		return s.CloneSchemas(), nil
	}
	if t.Kind() == reflect.Interface {
		if in.dir == inward && t.NumMethod() > 0 {
			return nil, fmt.Errorf("nothing can be decoded into the interface %s; use a concrete type that implements tools.Schemer, or any", t)
		}
		return anything(), nil
	}
	if schemer, ok := reflect.New(t).Interface().(Schemer); ok {
		in.narrowed = true
		s, err := ownSchema(t, schemer)
		if err == nil && len(in.open) > 0 && refersToItself(s) { // it stands within another
			s = in.define(t, s)
		}
		return s, err
	}
	switch {
	case in.dir == inward && reflect.PointerTo(t).Implements(unmarshalerType),
		in.dir == outward && reflect.PointerTo(t).Implements(marshalerType):
		return anything(), nil
	case in.asText(t):
		return &jsonschema.Schema{Type: "string"}, nil
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8 && !marshalsItself(t.Elem()):
		return &jsonschema.Schema{Type: "string", ContentEncoding: "base64"}, nil
	}
	return nil, nil
}

func (in *inference) asText(t reflect.Type) bool {
	want := textMarshalerType
	if in.dir == inward {
		want = textUnmarshalerType
	}
	return reflect.PointerTo(t).Implements(want)
}

// marshalsItself reports whether a type has methods that make or read its JSON.
func marshalsItself(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	for _, m := range []reflect.Type{marshalerType, unmarshalerType, textMarshalerType, textUnmarshalerType} {
		if p.Implements(m) {
			return true
		}
	}
	return false
}
