package gym

import (
	"bytes"
	"context"
	"fmt"
	"reflect"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/openenv-go/openenv-go/pkg/internal/strictjson"
	"github.com/openenv-go/openenv-go/pkg/tools"
)

// What Reset, Act and StateOf build: an author's function with its types erased but for E, and their schemas.
type (
	reset[E any] struct {
		options, observation *jsonschema.Schema
		parse                func(raw []byte) (any, error)
		run                  func(context.Context, E, ResetParams) (*Observed, error)
	}
	act[E any] struct {
		action, observation *jsonschema.Schema
		parse               func(raw []byte) (any, error)
		run                 func(context.Context, E, any) (*Observed, Score, error)
	}
	stateOf[E any] struct {
		schema *jsonschema.Schema
		run    func(E) ([]byte, error)
	}
)

// Observed is an observation's own part as the wire has it.
type Observed struct {
	Fields   any            // marshals to an object without reward and done, with metadata in it
	Metadata strictjson.Raw // the object inside Fields, for a second copy beside it; nil when empty
}

// WithMetadata is the observation with one more member in its metadata; it takes the place of one of that name. An
// observation that cannot be written is returned as it is.
func (o Observed) WithMetadata(name string, value any) Observed {
	var fields, metadata map[string]strictjson.Raw
	raw, err := strictjson.Marshal(o.Fields)
	if err != nil || strictjson.Unmarshal(raw, &fields) != nil || fields["metadata"] != nil && strictjson.Unmarshal(fields["metadata"], &metadata) != nil {
		return o
	}
	if metadata == nil {
		metadata = map[string]strictjson.Raw{}
	}
	if metadata[name], err = strictjson.Marshal(value); err != nil {
		return o
	}
	if o.Metadata, err = strictjson.Marshal(metadata); err != nil {
		return o
	}
	fields["metadata"] = o.Metadata
	o.Fields = fields
	return o
}

// observation encodes an author's observation type.
type observation[T any] struct {
	out         *tools.Output[T]
	schema      *jsonschema.Schema // with reward, done and metadata
	hasMetadata bool
}

func newObservation[T any]() (*observation[T], error) {
	out, err := tools.NewOutput[T](nil)
	if err != nil {
		return nil, err
	}
	if err := plainStruct[T]("an observation", out.Schema, "reward", "done"); err != nil {
		return nil, err
	}
	meta := out.Schema.Properties["metadata"]
	if meta != nil && meta.Type != "object" {
		return nil, fmt.Errorf("%s: the field metadata of an observation must be a struct or a map", reflect.TypeFor[T]())
	}
	return &observation[T]{out, observationSchema(out.Schema), meta != nil}, nil
}

func (o *observation[T]) encode(v T) (*Observed, error) {
	raw, err := o.out.Encode(v)
	if err != nil {
		return nil, err
	}
	if !o.hasMetadata {
		if raw, err = extend(raw, noMetadata); err != nil {
			return nil, err
		}
		return &Observed{Fields: strictjson.Raw(raw)}, nil
	}
	var m struct {
		Metadata strictjson.Raw `json:"metadata"`
	}
	if err := strictjson.Unmarshal(raw, &m); err != nil {
		return nil, err
	}
	switch {
	case m.Metadata == nil: // left out as empty
		if raw, err = extend(raw, noMetadata); err != nil {
			return nil, err
		}
	case len(m.Metadata) == len(`{}`):
		m.Metadata = nil
	}
	return &Observed{Fields: strictjson.Raw(raw), Metadata: m.Metadata}, nil
}

var noMetadata = []byte(`{"metadata":{}}`)

// extend appends the members of another encoded object, which has some. The error is that both have one of a name: a type that
// writes itself may write more than its schema shows.
func extend(object, more []byte) ([]byte, error) {
	for name := range strictjson.MembersIn(more) {
		for own := range strictjson.MembersIn(object) {
			if bytes.Equal(name, own) {
				return nil, fmt.Errorf("the value and the server both write a member %q: give it another name, or show it in the type's schema", name)
			}
		}
	}
	b := slices.Clone(object[:len(object)-1])
	if len(b) > 1 {
		b = append(b, ',')
	}
	return append(b, more[1:]...), nil
}

// newAction is an action's input side, with the metadata that any action of the wire may carry.
func newAction[T any]() (*tools.Input[T], error) {
	in, err := tools.NewInput[T](nil)
	if err != nil {
		return nil, err
	}
	if in.Schema.Properties["metadata"] != nil || reflect.TypeFor[T]().Kind() == reflect.Map {
		return in, nil
	}
	s := in.Schema.CloneSchemas()
	if s.Properties == nil {
		s.Properties = map[string]*jsonschema.Schema{}
	}
	s.Properties["metadata"] = metadataSchema("action")
	return tools.NewInput[T](s)
}

func newState[T any]() (*tools.Output[T], error) {
	out, err := tools.NewOutput[T](nil)
	if err != nil {
		return nil, err
	}
	return out, plainStruct[T]("a state", out.Schema, stateFields...)
}

// plainStruct refuses types whose members are not known from the type, and members that the wire has taken.
func plainStruct[T any](what string, s *jsonschema.Schema, taken ...string) error {
	t := reflect.TypeFor[T]()
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || s.Type != "object" {
		return fmt.Errorf("%s: %s must be a struct", t, what)
	}
	for _, name := range taken {
		if s.Properties[name] != nil {
			return fmt.Errorf("%s: %s cannot have a field named %s in JSON: the wire has its own", t, what, name)
		}
	}
	return nil
}
