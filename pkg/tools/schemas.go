package tools

import (
	"fmt"
	"reflect"
	"regexp"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// ownSchema asks a type for its schema. It may well panic: most authors do not think of the zero value.
func ownSchema(t reflect.Type, schemer Schemer) (s *jsonschema.Schema, err error) {
	defer func() {
		if r := recover(); r != nil {
			s, err = nil, fmt.Errorf("the JSONSchema method of %s panicked on the zero value: %v", t, r)
		}
	}()
	if s = schemer.JSONSchema(); s == nil {
		return nil, fmt.Errorf("the JSONSchema method of %s returned nil", t)
	}
	return publishable(s), nil
}

// publishable is a copy of an author's schema in which no part is a bare true.
func publishable(s *jsonschema.Schema) *jsonschema.Schema {
	s = s.CloneSchemas()
	eachSchema(s, func(sub *jsonschema.Schema) {
		if reflect.ValueOf(sub).Elem().IsZero() {
			*sub = *anything()
		}
	})
	return s
}

var (
	schemaType = reflect.TypeFor[*jsonschema.Schema]()
	listType   = reflect.TypeFor[[]*jsonschema.Schema]()
	mapType    = reflect.TypeFor[map[string]*jsonschema.Schema]()
)

// eachSchema visits a schema and those in it, save the inside of {"not": {}}, which is written as false.
func eachSchema(s *jsonschema.Schema, visit func(*jsonschema.Schema)) {
	if s == nil {
		return
	}
	visit(s)
	if b, err := s.MarshalJSON(); err == nil && string(b) == "false" {
		return
	}
	v := reflect.ValueOf(s).Elem()
	for i := range v.NumField() {
		switch f := v.Field(i); f.Type() {
		case schemaType:
			eachSchema(f.Interface().(*jsonschema.Schema), visit)
		case listType:
			for _, sub := range f.Interface().([]*jsonschema.Schema) {
				eachSchema(sub, visit)
			}
		case mapType:
			for _, sub := range f.Interface().(map[string]*jsonschema.Schema) {
				eachSchema(sub, visit)
			}
		}
	}
}

// isOwnRef reports whether a reference is a path from the root of the schema that it stands in.
func isOwnRef(ref string) bool { return ref == "#" || strings.HasPrefix(ref, "#/") }

// refersToItself reports whether a schema has references that break when it is put into another.
func refersToItself(s *jsonschema.Schema) bool { return anyRef(s, isOwnRef) }

func anyRef(s *jsonschema.Schema, is func(string) bool) bool {
	found := false
	eachSchema(s, func(sub *jsonschema.Schema) { found = found || is(sub.Ref) })
	return found
}

// moveRefs has a schema's references to its own root lead to another place.
func moveRefs(s *jsonschema.Schema, root string) {
	eachSchema(s, func(sub *jsonschema.Schema) {
		if isOwnRef(sub.Ref) {
			sub.Ref = root + strings.TrimPrefix(sub.Ref, "#")
		}
	})
}

var notInName = regexp.MustCompile(`[^A-Za-z0-9_.-]+`)

// define puts the schema of t, which refers to itself, among the definitions of the whole, and returns a reference to
// it.
func (in *inference) define(t reflect.Type, s *jsonschema.Schema) *jsonschema.Schema {
	base := notInName.ReplaceAllString(t.Name(), "_")
	for n := 1; ; n++ {
		name := base
		if n > 1 || name == "" {
			name = fmt.Sprint(base, n)
		}
		ref := "#/$defs/" + name
		moved := s.CloneSchemas()
		moveRefs(moved, ref)
		if in.defs == nil {
			in.defs = map[string]*jsonschema.Schema{}
		}
		if there := in.defs[name]; there == nil || reflect.DeepEqual(there, moved) {
			in.defs[name] = moved
			return &jsonschema.Schema{Ref: ref}
		}
	}
}

// ValueSchema is the schema of the value that a tool returns, without what it may be wrapped in as structured content; nil:
// it is not published.
func ValueSchema(t *mcp.Tool) any {
	if s, ok := t.OutputSchema.(*jsonschema.Schema); ok && s != nil && s.Extra[wrapKeyword] == true {
		inner := s.Properties["result"].CloneSchemas()
		inner.Defs = s.Defs
		return inner
	}
	return t.OutputSchema
}

// wrapKeyword marks a wrapped schema, as FastMCP does.
const wrapKeyword = "x-fastmcp-wrap-result"

// wrap is the schema of {"result": X} for the schema of X.
func wrap(s *jsonschema.Schema) *jsonschema.Schema {
	inner := s.CloneSchemas()
	var defs map[string]*jsonschema.Schema
	if anyRef(s, func(ref string) bool { return isOwnRef(ref) && !strings.HasPrefix(ref, "#/$defs/") }) {
		moveRefs(inner, "#/properties/result")
	} else {
		defs, inner.Defs = inner.Defs, nil
	}
	return &jsonschema.Schema{
		Type:       "object",
		Properties: map[string]*jsonschema.Schema{"result": inner},
		Required:   []string{"result"},
		Defs:       defs,
		Extra:      map[string]any{wrapKeyword: true},
	}
}
