package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// ReservedNames are names that no tool may have: they belong to the trainer's side of the wire, and a tool of that name
// would look like a way across.
var ReservedNames = []string{"reset", "step", "state", "close"}

// validName is what MCP allows as a tool's name (2025-11-25, server/tools: 1 to 128 of these characters).
var validName = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,128}$`)

// A Set is the tools of environments of type E.
type Set[E any] struct{ tools []Tool[E] }

// New gathers tools. Faults in them are reported by [Set.Register].
func New[E any](tools ...Tool[E]) *Set[E] { return &Set[E]{slices.Clone(tools)} }

// Register puts the tools that exist in mode on srv. Their handlers find the environment value in the context of the
// call: see [WithEnvironment]. It returns every fault in the set at once; nothing is registered then.
func (s *Set[E]) Register(srv *mcp.Server, mode Mode) error {
	if s == nil {
		return nil
	}
	var errs []error
	seen := map[string]bool{}
	for i, t := range s.tools {
		if t.spec == nil {
			errs = append(errs, fmt.Errorf("tool %d of the set is the zero Tool: make it with Func, Do or Modes", i))
			continue
		}
		name := t.spec.Name
		faults := slices.Clip(t.errs)
		switch {
		case CheckName(name) != nil:
			faults = append(faults, CheckName(name))
		case seen[name]:
			faults = append(faults, errors.New("the name is taken by another tool of the set"))
		}
		seen[name] = true
		if replay := t.replays[mode]; replay != nil && len(faults) == 0 {
			if _, err := replay(); err != nil {
				faults = append(faults, fmt.Errorf("the replay in %s: %w", mode, err))
			}
		}
		for _, err := range faults {
			errs = append(errs, fmt.Errorf("tool %q: %w", name, err))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for _, t := range s.tools {
		if h := t.handlers[mode]; h != nil {
			srv.AddTool(t.spec, serve(t.spec.Name, h))
		}
	}
	return nil
}

// ElsewhereOnly reports the mode in which a tool of that name exists, if it does not exist in mode. Callers are told
// that the tool is unknown; operators are told why.
func (s *Set[E]) ElsewhereOnly(name string, mode Mode) (Mode, bool) {
	if s == nil {
		return "", false
	}
	for _, t := range s.tools {
		if t.spec != nil && t.spec.Name == name && t.handlers[mode] == nil {
			for _, m := range t.modes() {
				return m, true
			}
		}
	}
	return "", false
}

// Traits are those of the tools that exist in mode, by name.
func (s *Set[E]) Traits(mode Mode) map[string]Traits {
	traits := map[string]Traits{}
	if s != nil {
		for _, t := range s.tools {
			if t.spec != nil && t.handlers[mode] != nil {
				traits[t.spec.Name] = t.traits
			}
		}
	}
	return traits
}

// Replays are those of the tools that exist in mode. Faults in them are left to [Set.Register].
func (s *Set[E]) Replays(mode Mode) *Replays {
	if s == nil {
		return nil
	}
	var tracks []*track
	for _, t := range s.tools {
		if replay := t.replays[mode]; replay != nil {
			if track, err := replay(); err == nil {
				tracks = append(tracks, track)
			}
		}
	}
	return newReplays(tracks)
}

type environmentKey struct{}

// WithEnvironment returns a context in which registered tools find the environment value they are called on.
func WithEnvironment(ctx context.Context, env any) context.Context {
	return context.WithValue(ctx, environmentKey{}, env)
}

// serve adapts a handler to the SDK. What it returns as an error is an [*Error].
func serve[E any](name string, h handler[E]) mcp.ToolHandler {
	return func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		env, ok := ctx.Value(environmentKey{}).(E)
		if !ok {
			return nil, &Error{Type: ExecutionError, Tool: name, Message: "the tool was called outside of a session"}
		}
		res, err := h(withRequest(ctx, req), env, req.Params.Arguments)
		if err == nil {
			return res, nil
		}
		var failure *Failure
		if errors.As(err, &failure) {
			return FailureResult(failure.Message), nil
		}
		return nil, AsError(name, err)
	}
}

// FailureResult is the result by which a tool reports its own failure.
func FailureResult(message string) *mcp.CallToolResult {
	return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: message}}}
}

// FailureText is the message of a result by which a tool reports its own failure; false where it is none, or has no words.
func FailureText(res *mcp.CallToolResult) (string, bool) {
	if !res.IsError || len(res.Content) == 0 {
		return "", false
	}
	t, ok := res.Content[0].(*mcp.TextContent)
	if !ok {
		return "", false
	}
	return t.Text, true
}

// Data is what a result amounts to as one JSON value, which OpenEnv's clients hand to their callers: the structured
// content, unwrapped where it was wrapped; else the text, if that is all there is; else null.
func Data(res *mcp.CallToolResult) (json.RawMessage, error) {
	switch s := res.StructuredContent.(type) {
	case nil:
	case Structured:
		return json.RawMessage(s.Value), nil
	default:
		return unwrapped(res)
	}
	if len(res.Content) == 1 {
		if t, ok := res.Content[0].(*mcp.TextContent); ok {
			return json.Marshal(t.Text)
		}
	}
	return json.RawMessage("null"), nil
}

// unwrapped is the data of a result that another library structured.
func unwrapped(res *mcp.CallToolResult) (json.RawMessage, error) {
	raw, err := json.Marshal(res.StructuredContent)
	if err != nil {
		return nil, err
	}
	if wrappedBy(res.Meta) {
		var w struct {
			Result json.RawMessage `json:"result"`
		}
		if err := json.Unmarshal(raw, &w); err != nil {
			return nil, err
		}
		if w.Result == nil {
			return json.RawMessage("null"), nil
		}
		return w.Result, nil
	}
	return raw, nil
}

// CheckName reports a name that no tool of an environment may have.
func CheckName(name string) error {
	switch {
	case !validName.MatchString(name):
		return errors.New("a name is 1 to 128 of the characters A-Z a-z 0-9 _ - and the dot")
	case slices.Contains(ReservedNames, name):
		return fmt.Errorf("the names %v are reserved", ReservedNames)
	}
	return nil
}

// CheckNames reports tools whose names are reserved, for servers that a Set did not fill.
func CheckNames(list []*mcp.Tool) error {
	for _, t := range list {
		if slices.Contains(ReservedNames, t.Name) {
			return fmt.Errorf("tool %q: the names %v are reserved", t.Name, ReservedNames)
		}
	}
	return nil
}
