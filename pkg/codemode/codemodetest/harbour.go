package codemodetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/openenv-go/openenv-go/pkg/codemode"
)

// A Call is one that reached a tool.
type Call struct {
	Tool string          `json:"tool"`
	Args json.RawMessage `json:"args"`
}

func (c Call) String() string { return c.Tool + string(c.Args) }

func (c Call) equal(d Call) bool { return c.Tool == d.Tool && Equal(c.Args, d.Args) }

// A Harbour is a host with the tools that the corpus calls. Its methods may be called concurrently.
type Harbour struct {
	// Patience is how long a fine sweep of the sonar may take, which takes a minute; zero: for ever. No other tool waits.
	Patience time.Duration

	tools   []codemode.Tool
	schemas map[string]*jsonschema.Resolved
	fresh   []byte // harbour.json

	mu    sync.Mutex
	data  data
	calls []Call
}

// NewHarbour is a harbour with fresh data, from the corpus in a directory.
func NewHarbour(dir string) (*Harbour, error) {
	h := &Harbour{schemas: map[string]*jsonschema.Resolved{}}
	var published []struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Input       json.RawMessage `json:"input_schema"`
		Output      json.RawMessage `json:"output_schema"`
	}
	if err := load(filepath.Join(dir, "tools.json"), &published); err != nil {
		return nil, err
	}
	for _, t := range published {
		h.tools = append(h.tools, codemode.Tool{Name: t.Name, Description: t.Description, Input: t.Input, Output: t.Output})
		var s jsonschema.Schema
		if err := json.Unmarshal(t.Input, &s); err != nil {
			return nil, fmt.Errorf("schema of %s: %w", t.Name, err)
		}
		resolved, err := s.Resolve(nil)
		if err != nil {
			return nil, fmt.Errorf("schema of %s: %w", t.Name, err)
		}
		h.schemas[t.Name] = resolved
	}
	var err error
	if h.fresh, err = os.ReadFile(filepath.Join(dir, "harbour.json")); err != nil {
		return nil, err
	}
	return h, json.Unmarshal(h.fresh, &h.data)
}

// Fresh is a harbour like h before any call.
func (h *Harbour) Fresh() *Harbour {
	n := &Harbour{Patience: h.Patience, tools: h.tools, schemas: h.schemas, fresh: h.fresh}
	_ = json.Unmarshal(n.fresh, &n.data) // as it could be read before
	return n
}

func load(file string, into any) error {
	b, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	return json.Unmarshal(b, into)
}

// Tools are the tools as a model sees them.
func (h *Harbour) Tools() []codemode.Tool { return h.tools }

// Calls are those that reached a tool until now.
func (h *Harbour) Calls() []Call {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]Call(nil), h.calls...)
}

// errBroken is an error that is no failure of the tool itself.
type errBroken struct{ error }

// Call is a codemode.CallFunc. Its error is the end of ctx.
func (h *Harbour) Call(ctx context.Context, tool string, args json.RawMessage) (codemode.Answer, error) {
	schema := h.schemas[tool]
	if schema == nil {
		return failure("tool_not_found", "there is no tool "+tool), nil
	}
	var instance map[string]any
	if err := json.Unmarshal(args, &instance); err != nil {
		return failure("invalid_args", err.Error()), nil
	}
	if err := schema.Validate(instance); err != nil {
		return failure("invalid_args", err.Error()), nil
	}
	h.mu.Lock()
	h.calls = append(h.calls, Call{tool, append(json.RawMessage(nil), args...)})
	h.mu.Unlock()
	value, err := h.answer(ctx, tool, args)
	switch broken := (errBroken{}); {
	case err == nil:
		return codemode.Answer{Value: value}, nil
	case ctx.Err() != nil:
		return codemode.Answer{}, context.Cause(ctx)
	case errors.Is(err, context.DeadlineExceeded):
		return failure("timeout", "the tool took longer than "+h.Patience.String()), nil
	case errors.As(err, &broken):
		return failure("execution_error", err.Error()), nil
	}
	return failure("failure", err.Error()), nil
}

func failure(typ, message string) codemode.Answer {
	return codemode.Answer{Failure: &codemode.CallError{Type: typ, Message: message}}
}
