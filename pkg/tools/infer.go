package tools

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
)

// A Schemer is a type that says its own JSON Schema: a union, or anything else that marshals itself. The method is
// called once, on the type's zero value, when the tool is made; the schema must not refer to other documents.
type Schemer interface{ JSONSchema() *jsonschema.Schema }

var (
	schemerType       = reflect.TypeFor[Schemer]()
	textMarshalerType = reflect.TypeFor[encoding.TextMarshaler]()
	marshalerType     = reflect.TypeFor[json.Marshaler]()
)

// direction tells the two sides of a schema apart: callers may leave out a pointer field of an input, while an output
// carries it, as null.
type direction int

const (
	inward direction = iota
	outward
)

// infer derives the schema of t with jsonschema-go and refines what that library leaves open: slices are never null,
// pointers are optional on the way in, bounds come from tags, and types that marshal themselves are taken for what they
// marshal to.
func infer(t reflect.Type, dir direction) (*jsonschema.Schema, error) {
	known := map[reflect.Type]*jsonschema.Schema{}
	selfDescribed(t, known, map[reflect.Type]bool{})
	s, err := jsonschema.ForType(t, &jsonschema.ForOptions{TypeSchemas: known})
	if err != nil {
		return nil, fmt.Errorf("%w (give it a schema: see tools.Schemer)", err)
	}
	r := refiner{dir: dir, known: known}
	return s, r.refine(t, s)
}

// selfDescribed finds the types below t whose JSON form does not follow from their kind.
func selfDescribed(t reflect.Type, out map[reflect.Type]*jsonschema.Schema, seen map[reflect.Type]bool) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if seen[t] {
		return
	}
	seen[t] = true
	if s := selfSchema(t); s != nil {
		out[t] = s
		return
	}
	switch t.Kind() {
	case reflect.Slice, reflect.Array, reflect.Map:
		selfDescribed(t.Elem(), out, seen)
	case reflect.Struct:
		for _, f := range reflect.VisibleFields(t) {
			selfDescribed(f.Type, out, seen)
		}
	}
}

func selfSchema(t reflect.Type) *jsonschema.Schema {
	switch t {
	case reflect.TypeFor[time.Time]():
		return &jsonschema.Schema{Type: "string", Format: "date-time"}
	case reflect.TypeFor[json.RawMessage]():
		return &jsonschema.Schema{}
	case reflect.TypeFor[json.Number]():
		return &jsonschema.Schema{Type: "number"}
	}
	p := reflect.PointerTo(t)
	switch {
	case t.Implements(schemerType):
		return reflect.Zero(t).Interface().(Schemer).JSONSchema()
	case p.Implements(schemerType):
		return reflect.New(t).Interface().(Schemer).JSONSchema()
	case t.Kind() == reflect.Interface:
		return nil
	case p.Implements(marshalerType):
		return &jsonschema.Schema{}
	case p.Implements(textMarshalerType):
		return &jsonschema.Schema{Type: "string"}
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8 && !reflect.PointerTo(t.Elem()).Implements(marshalerType):
		return &jsonschema.Schema{Type: "string", ContentEncoding: "base64"}
	}
	return nil
}

type refiner struct {
	dir   direction
	known map[reflect.Type]*jsonschema.Schema
}

// refine walks a type and its schema side by side.
func (r refiner) refine(t reflect.Type, s *jsonschema.Schema) error {
	pointer := t.Kind() == reflect.Pointer
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if _, ok := r.known[t]; ok {
		describeAny(s)
		return nil
	}
	switch t.Kind() {
	case reflect.Interface:
		describeAny(s)
	case reflect.Slice:
		if !pointer {
			s.Type, s.Types = "array", nil
		}
		return r.refine(t.Elem(), s.Items)
	case reflect.Array:
		return r.refine(t.Elem(), s.Items)
	case reflect.Map:
		return r.refine(t.Elem(), s.AdditionalProperties)
	case reflect.Struct:
		return r.refineStruct(t, s)
	}
	return nil
}

// describeAny keeps the schema of any value from being written as a bare true, which some agents refuse.
func describeAny(s *jsonschema.Schema) {
	if s.Type == "" && slices.Equal(s.Types, []string{"null"}) {
		s.Types = nil // what jsonschema-go makes of a pointer to anything
	}
	if b, err := s.MarshalJSON(); err == nil && string(b) == "true" {
		s.Description = "any JSON value"
	}
}

func (r refiner) refineStruct(t reflect.Type, s *jsonschema.Schema) error {
	for _, f := range reflect.VisibleFields(t) {
		name, opts := jsonName(f)
		if f.Anonymous {
			if name == "" || len(f.Index) > 1 {
				continue
			}
			if err := r.nest(f, name, s); err != nil {
				return err
			}
		}
		if name == "" {
			name = f.Name
		}
		p := s.Properties[name]
		if p == nil || !f.IsExported() {
			continue // omitted, or hidden by another field
		}
		if err := r.refine(f.Type, p); err != nil {
			return err
		}
		if slices.Contains(opts, "string") {
			quoteNumber(f.Type, p)
		}
		optional, err := applyTags(f, p)
		if err != nil {
			return fmt.Errorf("%s.%s: %w", t, f.Name, err)
		}
		if r.dir == inward && f.Type.Kind() == reflect.Pointer || r.dir == inward && optional || throughPointer(t, f.Index) {
			s.Required = slices.DeleteFunc(s.Required, func(n string) bool { return n == name })
		}
	}
	return nil
}

// nest undoes the inlining of an embedded struct that its json tag names: encoding/json nests it.
func (r refiner) nest(f reflect.StructField, name string, s *jsonschema.Schema) error {
	elem := f.Type
	for elem.Kind() == reflect.Pointer {
		elem = elem.Elem()
	}
	if elem.Kind() == reflect.Struct {
		for _, inner := range reflect.VisibleFields(elem) {
			n, _ := jsonName(inner)
			if n == "" {
				n = inner.Name
			}
			delete(s.Properties, n)
			s.Required = slices.DeleteFunc(s.Required, func(x string) bool { return x == n })
			s.PropertyOrder = slices.DeleteFunc(s.PropertyOrder, func(x string) bool { return x == n })
		}
	}
	sub, err := jsonschema.ForType(f.Type, &jsonschema.ForOptions{TypeSchemas: r.known})
	if err != nil {
		return err
	}
	s.Properties[name] = sub
	s.PropertyOrder = append(s.PropertyOrder, name)
	s.Required = append(s.Required, name)
	return nil
}

// jsonName is the name that a field's json tag gives ("" for none) and the tag's options.
func jsonName(f reflect.StructField) (name string, opts []string) {
	parts := strings.Split(f.Tag.Get("json"), ",")
	return parts[0], parts[1:]
}

// throughPointer: fields promoted through a nil embedded pointer are left out of the JSON.
func throughPointer(t reflect.Type, index []int) bool {
	for _, i := range index[:len(index)-1] {
		f := t.Field(i)
		t = f.Type
		if t.Kind() == reflect.Pointer {
			return true
		}
	}
	return false
}

func quoteNumber(t reflect.Type, s *jsonschema.Schema) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if k := t.Kind(); k >= reflect.Bool && k <= reflect.Float64 {
		*s = jsonschema.Schema{Type: "string", Description: s.Description}
	}
}
