package tools

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/openenv-go/openenv-go/pkg/internal/strictjson"
)

// None is the input of a tool without arguments.
type None struct{}

// A Tool is one named function of environments of type E. [Func], [Do] and [Modes] make it. A tool whose definition is
// wrong (a type without a schema, a bad tag) carries the errors until its [Set] is registered.
type Tool[E any] struct {
	spec     *mcp.Tool
	handlers map[Mode]handler[E]
	traits   Traits
	errs     []error
	replays  map[Mode]func() (*track, error) // what it replays in a mode, read once
	with     func(opts []Option) Tool[E]     // makes the tool again, with these options besides those it has
}

// A handler is a tool's function with types erased: arguments as JSON in, result or error out.
type handler[E any] func(ctx context.Context, env E, args []byte) (*mcp.CallToolResult, error)

// Traits are what a session must know of a tool in order to run it. The zero value is that of most tools.
type Traits struct {
	// Concurrent says that the tool may run beside others on one environment value: see [Concurrent].
	Concurrent bool
	Deadline   time.Duration // of a call, its wait for a turn included; 0: the server's
	ByMode     bool          // made by [Modes]: it does another thing in each mode, or is there in one only
}

// An Option changes how a tool is published or run.
type Option func(*options)

type options struct {
	title       string
	annotations *mcp.ToolAnnotations
	in, out     *jsonschema.Schema
	traits      Traits
	errs        []error
}

// With is the tool with further options: for a tool that [Modes] made.
func (t Tool[E]) With(opts ...Option) Tool[E] {
	if t.with == nil {
		return t // the zero Tool, which its Set will refuse
	}
	return t.with(opts)
}

// Concurrent marks a tool whose calls may run beside one another on one environment value, since the author has locked
// what they share. Up to 64 do. They take their turns with other calls in order of arrival: none of them runs beside a
// tool without the mark, a reset, a step of an own action or a reading of the state. After follows each such call before
// its turn ends, one After at a time, though other concurrent tools may be running. A result is written as JSON after the
// function has returned, so it must share nothing with the environment value: return copies of maps and slices.
func Concurrent() Option { return func(o *options) { o.traits.Concurrent = true } }

// Deadline sets how long a call of the tool may take, its wait for a turn included, in place of the server's limit. A
// caller's own timeout_s goes before it. d must be more than 0.
func Deadline(d time.Duration) Option {
	return func(o *options) {
		o.traits.Deadline = d
		if d <= 0 {
			o.errs = append(o.errs, fmt.Errorf("a Deadline of %v: want more than 0", d))
		}
	}
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
	return build(name, description, map[Mode]Variant[E, In, Out]{
		ModeSimulation: {fn: fn}, ModeProduction: {fn: fn},
	}, opts)
}

// Do is [Func] for a tool that returns nothing.
func Do[E, In any](name, description string, fn func(E, context.Context, In) error, opts ...Option) Tool[E] {
	if fn == nil {
		return Func[E, In, None](name, description, nil, opts...)
	}
	return Func(name, description, func(env E, ctx context.Context, in In) (None, error) {
		return None{}, fn(env, ctx, in)
	}, opts...)
}

// Modes makes a tool that does another thing in each mode: one name, one input and one output type, so that the
// compiler holds the variants to the same interface. With one variant alone the tool exists in that mode only. Options
// are added by [Tool.With].
func Modes[E, In, Out any](name, description string, first Variant[E, In, Out], rest ...Variant[E, In, Out]) Tool[E] {
	fns := map[Mode]Variant[E, In, Out]{}
	var errs []error
	for _, v := range append([]Variant[E, In, Out]{first}, rest...) {
		switch _, dup := fns[v.mode]; {
		case v.mode == "":
			errs = append(errs, errors.New("a variant without a mode: make it with Simulation or Production"))
			continue
		case dup:
			errs = append(errs, fmt.Errorf("two variants for %s", v.mode))
		}
		fns[v.mode] = v
	}
	byMode := func(o *options) { o.traits.ByMode = true }
	return withFaults(errs, build(name, description, fns, []Option{byMode}))
}

// withFaults adds errors to a tool, whatever options it is made again with.
func withFaults[E any](errs []error, t Tool[E]) Tool[E] {
	if len(errs) == 0 {
		return t
	}
	again := t.with
	t.errs = append(slices.Clone(errs), t.errs...)
	t.with = func(opts []Option) Tool[E] { return withFaults(errs, again(opts)) }
	return t
}

func build[E, In, Out any](name, description string, fns map[Mode]Variant[E, In, Out], opts []Option) Tool[E] {
	var o options
	for _, opt := range opts {
		opt(&o)
	}
	t := Tool[E]{
		spec:     &mcp.Tool{Name: name, Title: o.title, Description: description, Annotations: o.annotations},
		handlers: map[Mode]handler[E]{},
		replays:  map[Mode]func() (*track, error){},
		traits:   o.traits,
		errs:     o.errs,
		with: func(more []Option) Tool[E] {
			return build(name, description, fns, slices.Concat(opts, more))
		},
	}
	if err := t.readable(); err != nil {
		t.errs = append(t.errs, err)
	}
	in, err := NewInput[In](o.in)
	if err != nil {
		t.errs = append(t.errs, fmt.Errorf("input: %w", err))
	} else {
		t.spec.InputSchema = in.Schema
	}
	answer, err := answerOf[Out](t.spec, o.out)
	if err != nil {
		t.errs = append(t.errs, fmt.Errorf("output: %w", err))
	}
	for _, mode := range slices.Sorted(maps.Keys(fns)) {
		v := fns[mode]
		fn := v.fn
		if fn == nil {
			t.errs = append(t.errs, errors.New("the function is nil"))
			break
		}
		if v.replay {
			t.replays[mode] = sync.OnceValues(func() (*track, error) { return newTrack(v.cassette, in, t.spec, answer) })
		}
		t.handlers[mode] = func(ctx context.Context, env E, args []byte) (*mcp.CallToolResult, error) {
			v, err := in.Decode(args)
			if err != nil {
				return nil, Refuse(name, err)
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

// readable reports words for people that no list of tools could be written with.
func (t Tool[E]) readable() error {
	words := []string{t.spec.Title, t.spec.Description}
	if a := t.spec.Annotations; a != nil {
		words = append(words, a.Title)
	}
	for _, text := range words {
		if !utf8.ValidString(text) {
			return fmt.Errorf("the title or description %.100q is not valid UTF-8", text)
		}
	}
	return nil
}

// Structured is the structured content of a result: the value that a tool returned, and whether it goes out wrapped as
// {"result": value} because it is not an object.
//
// A tool's own result with one is read and checked like any other; those that this package makes are not, as long as nobody
// changes them.
type Structured struct {
	Value   strictjson.Raw
	Wrapped bool

	made strictjson.Raw // what this package has made Value; nil: it is not of this package's making
	text string         // of the content that it was made with
}

// isMade reports whether this package has made it, and nobody has put another value there.
func (s Structured) isMade() bool { return s.made != nil && bytes.Equal(s.Value, s.made) }

// madeWith reports whether all else in the result is what this package has put beside it.
func (s Structured) madeWith(res *mcp.CallToolResult) bool {
	if len(res.Content) != 1 || len(res.InputRequests) > 0 || len(res.Meta) > 0 && !IsWrapMeta(res.Meta) {
		return false
	}
	t, ok := res.Content[0].(*mcp.TextContent)
	return ok && t != nil && t.Text == s.text && len(t.Meta) == 0 && t.Annotations == nil
}

// AppendText appends a text of the result's content as a JSON string. A long one is not quoted a second time where it is the
// value.
func (s Structured) AppendText(b []byte, text string) ([]byte, error) {
	if s.made.Kind() == '"' && text == s.text {
		return append(b, s.made...), nil
	}
	return strictjson.AppendString(b, text)
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
func wrapMeta() mcp.Meta { return mcp.Meta{"fastmcp": wrapMark{true}} }

type wrapMark struct {
	WrapResult bool `json:"wrap_result"`
}

// WrapMetaJSON is what marks a wrapped result, as JSON.
const WrapMetaJSON = `{"fastmcp":{"wrap_result":true}}`

// IsWrapMeta reports whether m is WrapMetaJSON and nothing else.
func IsWrapMeta(m mcp.Meta) bool { return len(m) == 1 && m["fastmcp"] == wrapMark{true} }

// AppendJSON writes what MarshalJSON writes.
func (s Structured) AppendJSON(b []byte) ([]byte, error) {
	if !s.Wrapped {
		return append(b, s.Value...), nil
	}
	b = append(b, `{"result":`...)
	b = append(b, s.Value...)
	return append(b, '}'), nil
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
			out, err := NewOutput[any](schema)
			if err != nil {
				return nil, err
			}
			if !out.Object {
				return nil, errors.New("the schema of a *mcp.CallToolResult is that of its structured content, so it must be of type object")
			}
			spec.OutputSchema = out.Schema
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
		spec.OutputSchema = wrap(out.Schema)
	}
	return func(v Out) (*mcp.CallToolResult, error) {
		raw, err := out.Encode(v)
		if err != nil {
			return nil, err
		}
		text, ok := any(v).(string)
		if !ok {
			text = textOf(raw)
		}
		return resultOf(strictjson.Raw(raw), text, !out.Object), nil
	}, nil
}

// resultOf is a tool's result, of the value that it returned and its text.
func resultOf(value strictjson.Raw, text string, wrapped bool) *mcp.CallToolResult {
	res := &mcp.CallToolResult{
		Content:           []mcp.Content{&mcp.TextContent{Text: text}},
		StructuredContent: Structured{value, wrapped, value, text},
	}
	if wrapped {
		res.Meta = wrapMeta()
	}
	return res
}

// textOf is a result's text for readers of content: a string without its quotes, any other value as its JSON.
func textOf(raw []byte) string {
	if s, ok := strictjson.String(raw); ok {
		return s
	}
	return string(raw)
}

// modes lists where the tool exists, for messages.
func (t Tool[E]) modes() []Mode { return slices.Sorted(maps.Keys(t.handlers)) }
