package tools

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/openenv-go/openenv-go/pkg/internal/strictjson"
)

// None is the input of a tool without arguments.
type None struct{}

// A Tool is one named function of environments of type E. [Func], [Do] and [Modes] make it. A tool whose definition is
// wrong (a type without a schema, a bad tag) carries the error until its [Set] is registered.
type Tool[E any] struct {
	spec     *mcp.Tool
	handlers map[Mode]handler[E]
	err      error
}

// A handler is a tool's function with types erased: arguments as JSON in, result or error out.
type handler[E any] func(ctx context.Context, env E, args []byte) (*mcp.CallToolResult, error)

// An Option changes how a tool is published.
type Option func(*options)

type options struct {
	title       string
	annotations *mcp.ToolAnnotations
	in, out     *jsonschema.Schema
}

// Title sets the name that people see.
func Title(title string) Option { return func(o *options) { o.title = title } }

// Annotations sets the hints of MCP's tool annotations (read-only, destructive, …).
func Annotations(a mcp.ToolAnnotations) Option { return func(o *options) { o.annotations = &a } }

// InputSchema replaces the schema derived from the input type. It must be of type object; arguments are held to it.
func InputSchema(s *jsonschema.Schema) Option { return func(o *options) { o.in = s } }

// OutputSchema replaces the schema derived from the output type. A schema whose type is not object describes the value
// before it is wrapped.
func OutputSchema(s *jsonschema.Schema) Option { return func(o *options) { o.out = s } }

// Func makes a tool of fn, in both modes. In must be a struct or a map. An Out of *mcp.CallToolResult goes to the caller
// as it is, for tools that answer with images or other content.
func Func[E, In, Out any](name, description string, fn func(E, context.Context, In) (Out, error), opts ...Option) Tool[E] {
	return build(name, description, map[Mode]func(E, context.Context, In) (Out, error){
		ModeSimulation: fn, ModeProduction: fn,
	}, opts)
}

// Do is [Func] for a tool that returns nothing.
func Do[E, In any](name, description string, fn func(E, context.Context, In) error, opts ...Option) Tool[E] {
	return Func(name, description, func(env E, ctx context.Context, in In) (None, error) {
		return None{}, fn(env, ctx, in)
	}, opts...)
}

// Modes makes a tool that does another thing in each mode: one name, one input and one output type, so that the
// compiler holds the variants to the same interface. With one variant alone the tool exists in that mode only.
func Modes[E, In, Out any](name, description string, first Variant[E, In, Out], rest ...Variant[E, In, Out]) Tool[E] {
	fns := map[Mode]func(E, context.Context, In) (Out, error){}
	for _, v := range append([]Variant[E, In, Out]{first}, rest...) {
		if _, dup := fns[v.mode]; dup {
			return Tool[E]{spec: &mcp.Tool{Name: name}, err: fmt.Errorf("two variants for %s", v.mode)}
		}
		fns[v.mode] = v.fn
	}
	return build(name, description, fns, nil)
}

func build[E, In, Out any](name, description string, fns map[Mode]func(E, context.Context, In) (Out, error), opts []Option) Tool[E] {
	var o options
	for _, opt := range opts {
		opt(&o)
	}
	t := Tool[E]{
		spec:     &mcp.Tool{Name: name, Title: o.title, Description: description, Annotations: o.annotations},
		handlers: map[Mode]handler[E]{},
	}
	in, err := NewInput[In](o.in)
	if err != nil {
		t.err = fmt.Errorf("input: %w", err)
		return t
	}
	t.spec.InputSchema = in.Schema
	answer, err := answerOf[Out](t.spec, o.out)
	if err != nil {
		t.err = fmt.Errorf("output: %w", err)
		return t
	}
	for mode, fn := range fns {
		if fn == nil {
			t.err = errors.New("the function is nil")
			return t
		}
		t.handlers[mode] = func(ctx context.Context, env E, args []byte) (*mcp.CallToolResult, error) {
			v, err := in.Decode(args)
			if err != nil {
				return nil, err
			}
			out, err := fn(env, ctx, v)
			if err != nil {
				return nil, err
			}
			return answer(out)
		}
	}
	return t
}

// Structured is the structured content of a result: the value that a tool returned, and whether it goes out wrapped as
// {"result": value} because it is not an object.
type Structured struct {
	Value   strictjson.Raw
	Wrapped bool
}

// MarshalJSON writes the value as MCP's structuredContent.
func (s Structured) MarshalJSON() ([]byte, error) {
	if !s.Wrapped {
		return s.Value, nil
	}
	b := make([]byte, 0, len(s.Value)+len(`{"result":}`))
	b = append(b, `{"result":`...)
	b = append(b, s.Value...)
	return append(b, '}'), nil
}

// wrapMeta marks a wrapped result as FastMCP marks it; without it its client's .data is not the bare value.
func wrapMeta() mcp.Meta {
	return mcp.Meta{"fastmcp": map[string]any{"wrap_result": true}}
}

// answerOf publishes the output schema of Out on spec and returns what makes a result of a value.
func answerOf[Out any](spec *mcp.Tool, schema *jsonschema.Schema) (func(Out) (*mcp.CallToolResult, error), error) {
	switch reflect.TypeFor[Out]() {
	case reflect.TypeFor[None]():
		return func(Out) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{}}, nil
		}, nil
	case reflect.TypeFor[*mcp.CallToolResult]():
		if schema != nil {
			spec.OutputSchema = schema
		}
		return func(out Out) (*mcp.CallToolResult, error) {
			if res := any(out).(*mcp.CallToolResult); res != nil {
				return res, nil
			}
			return nil, errors.New("the tool returned neither a result nor an error")
		}, nil
	}
	out, err := NewOutput[Out](schema)
	if err != nil {
		return nil, err
	}
	spec.OutputSchema = out.Schema
	if !out.Object {
		spec.OutputSchema = &jsonschema.Schema{
			Type:       "object",
			Properties: map[string]*jsonschema.Schema{"result": out.Schema},
			Required:   []string{"result"},
			Extra:      map[string]any{"x-fastmcp-wrap-result": true},
		}
	}
	return func(v Out) (*mcp.CallToolResult, error) {
		raw, err := out.Encode(v)
		if err != nil {
			return nil, err
		}
		res := &mcp.CallToolResult{
			Content:           []mcp.Content{&mcp.TextContent{Text: text(raw)}},
			StructuredContent: Structured{strictjson.Raw(raw), !out.Object},
		}
		if !out.Object {
			res.Meta = wrapMeta()
		}
		return res, nil
	}, nil
}

// text is a result's text for readers of content: a string without its quotes, any other value as its JSON.
func text(raw []byte) string {
	if s, ok := strictjson.String(raw); ok {
		return s
	}
	return string(raw)
}

// modes lists where the tool exists, for messages.
func (t Tool[E]) modes() []Mode {
	var out []Mode
	for m := range maps.Keys(t.handlers) {
		out = append(out, m)
	}
	return out
}
