package gym

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/openenv-go/openenv-go/pkg/codemode"
	"github.com/openenv-go/openenv-go/pkg/codemode/sandbox"
	"github.com/openenv-go/openenv-go/pkg/internal/strictjson"
	"github.com/openenv-go/openenv-go/pkg/tools"
)

// CodeTool is the name of the tool that runs code, in environments with a CodeMode.
const CodeTool = "execute_code"

// CodeOptions are what an operator may set of code mode.
type CodeOptions struct {
	Limits    codemode.Limits // go before the environment's own, save where they are zero
	Processes int             // how many pieces of code run at once; 0: the sandbox's default
}

type codeOptionsKey struct{}

// WithCodeOptions returns the context to compile an environment with, so that an operator's options hold for its code mode.
func WithCodeOptions(ctx context.Context, o CodeOptions) context.Context {
	return context.WithValue(ctx, codeOptionsKey{}, o)
}

// A coder runs code for the instances of a class.
type coder struct {
	limits codemode.Limits
	pool   *sandbox.Pool
	cannot error           // why no code can be run here at all; nil: it can
	known  []codemode.Tool // what code may call; nil where each value has a server of its own
}

func newCoder(ctx context.Context, own codemode.Limits) (*coder, error) {
	o, _ := ctx.Value(codeOptionsKey{}).(CodeOptions)
	c := &coder{limits: o.Limits.Or(own).Or(codemode.Defaults())}
	err := c.limits.Check()
	if err == nil {
		c.pool, err = sandbox.New(sandbox.Options{Processes: o.Processes, Memory: c.limits.Memory, Log: logOf(ctx)})
	}
	if _, unsupported := errors.AsType[*sandbox.UnsupportedError](err); unsupported {
		c.cannot = err // the other tools are there all the same, for who writes an environment on another system
		return c, nil
	}
	if err != nil {
		return nil, fmt.Errorf("CodeMode: %w", err)
	}
	return c, nil
}

// try runs a piece of code, so that an operator hears at start-up of a machine that cannot.
func (c *coder) try(ctx context.Context, log *slog.Logger) error {
	if c.cannot != nil {
		log.Warn("code cannot be run", "event", "code_unsupported", "error", c.cannot)
		return nil
	}
	if err := c.pool.Warm(ctx); err != nil {
		return fmt.Errorf("CodeMode: code cannot be run here: %w", err)
	}
	return nil
}

func (c *coder) close() {
	if c != nil && c.pool != nil {
		c.pool.Close()
	}
}

// traits give the code its time, and as much again for the wait for a process that is free.
func (c *coder) traits() tools.Traits { return tools.Traits{Deadline: 2 * c.limits.Time} }

type codeInput struct {
	Code     string   `json:"code" jsonschema:"the code, in Python"`
	TimeoutS *float64 `json:"timeout_s" exclusiveMinimum:"0" jsonschema:"seconds that it may take, calls included; the server's own limit holds all the same"`
}

// time is what the code may take.
func (in codeInput) time(limit time.Duration) time.Duration {
	if in.TimeoutS == nil || *in.TimeoutS >= limit.Seconds() {
		return limit
	}
	return max(time.Duration(*in.TimeoutS*float64(time.Second)), time.Millisecond)
}

// A codeOutcome is the structured content of execute_code's results.
type codeOutcome struct {
	Result    json.RawMessage `json:"result"`
	Stdout    string          `json:"stdout"`
	ToolCalls int             `json:"tool_calls"`
	Error     *codemode.Error `json:"error"`
}

func codeOutcomeSchema() *jsonschema.Schema {
	return object("", "What the code came to.", []string{"result", "stdout", "tool_calls", "error"}, map[string]*jsonschema.Schema{
		"result":     {Description: "the value of the variable result, or else of the last expression"},
		"stdout":     {Type: "string", Description: "what it printed"},
		"tool_calls": {Type: "integer", Description: "how many tools it called"},
		"error": {
			Types: []string{"object", "null"}, Description: "why it did not come to its end",
			Properties: map[string]*jsonschema.Schema{
				"kind":    {Type: "string", Enum: []any{"syntax", "runtime", "tool", "result", "limit"}},
				"message": {Type: "string"},
			},
			Required: []string{"kind", "message"},
		},
	})
}

const codeDescription = `Runs Python code that calls the other tools, and returns its outcome: the variable result, or else the value of the last expression; what it prints is returned beside it. However many tools it calls, it is one step. Variables do not last until the next run; what tools did does.
Each tool is a function of the same name, and takes its parameters by name or by position: page = list_items(cursor=None). It returns the value itself: text, a number, a list, or a dict (page["items"], not page.items), without the {"result": …} that its schema may have around it. Characters that no name may have are _, and names that Python has taken end in it: get-page is get_page, from is from_. list_tools() lists the functions, help(f) returns what one takes, call_tool("a-name", {…}) calls a tool by its own name.
A call that fails raises ToolError: use try and except, or r = try_call(f, …), which has r.ok, r.value and r.error (r.error.message, r.error.kind).
json, math, re and collections are there. There are no other imports, no class, with, yield, async or decorators, no files, network, clock or randomness.
It may take %v, and call %d tools.`

// tool is the tool itself, for any environment.
func (c *coder) tool() *tools.Set[any] {
	return tools.New(tools.Func(CodeTool, fmt.Sprintf(codeDescription, c.limits.Time, c.limits.Calls),
		func(_ any, ctx context.Context, in codeInput) (*mcp.CallToolResult, error) {
			run, _ := ctx.Value(codeRunKey{}).(*codeRun)
			if run == nil {
				return nil, errors.New("code was run outside of a session")
			}
			return run.do(ctx, in)
		}, tools.OutputSchema(codeOutcomeSchema())))
}

// join adds the tool to those that a class whose values have servers of their own has listed.
func (c *coder) join(ctx context.Context, class *Class) error {
	known := map[string]tools.Traits{}
	for _, t := range class.Tools {
		known[t.Name] = tools.Traits{}
	}
	server := mcp.NewServer(&mcp.Implementation{Name: class.Metadata.Name, Version: class.Metadata.Version}, nil)
	if err := c.register(server, class.Mode, known); err != nil {
		return err
	}
	h, err := newHost(ctx, server, nil)
	if err != nil {
		return err
	}
	defer h.close()
	list, err := h.list(ctx)
	class.Tools = append(class.Tools, list...)
	slices.SortFunc(class.Tools, func(a, b *mcp.Tool) int { return strings.Compare(a.Name, b.Name) })
	return err
}

// register puts the tool on a server. known are the tools that it has, and gets this one too.
func (c *coder) register(server *mcp.Server, mode tools.Mode, known map[string]tools.Traits) error {
	if _, taken := known[CodeTool]; taken {
		return fmt.Errorf("tool %q: the name is that of CodeMode's tool; give yours another, or leave CodeMode out", CodeTool)
	}
	known[CodeTool] = tools.Traits{}
	return c.tool().Register(server, mode)
}

// is reports whether a tool is the one that runs code.
func (c *coder) is(tool string) bool { return c != nil && tool == CodeTool }

// A codeRun is one piece of code that runs, in the turn that the call of execute_code has.
type codeRun struct {
	i     *Instance
	calls []ToolCall // of tools, for After
}

type codeRunKey struct{}

// withCodeRun returns a context in which execute_code finds where to run.
func (i *Instance) withCodeRun(ctx context.Context) (context.Context, *codeRun) {
	run := &codeRun{i: i}
	return context.WithValue(ctx, codeRunKey{}, run), run
}

func (r *codeRun) do(ctx context.Context, in codeInput) (*mcp.CallToolResult, error) {
	i, c := r.i, r.i.class.coder
	if c.cannot != nil {
		return nil, c.cannot
	}
	known := c.known
	if i.ownHost {
		list, err := i.host.list(ctx)
		if err != nil {
			return nil, fmt.Errorf("listing the tools for the code: %w", err)
		}
		if known, err = codeTools(list); err != nil {
			return nil, err
		}
	}
	job := codemode.Job{Code: in.Code, Tools: known, Limits: c.limits}
	job.Limits.Time = in.time(c.limits.Time)
	o, err := c.pool.Run(ctx, job, r.call)
	if busy, ok := errors.AsType[*sandbox.BusyError](err); ok {
		i.session.log.Warn("code found no process", "event", "code_busy", "waited", busy.Waited, "processes", busy.Processes)
	}
	if err != nil {
		return nil, err
	}
	if o.Error != nil && o.Error.Limit != "" {
		i.session.log.Info("code reached a limit", "event", "code_limit", "limit", o.Error.Limit, "line", o.Error.Line, "tool_calls", o.Calls)
	}
	return codeResult(o)
}

// codeResult spells an outcome. Its text is for models: that of an error is to be read, any other is the outcome as JSON.
func codeResult(o codemode.Outcome) (*mcp.CallToolResult, error) {
	raw, err := strictjson.Marshal(codeOutcome{o.Result, o.Stdout, o.Calls, o.Error})
	if err != nil {
		return nil, err
	}
	res := &mcp.CallToolResult{StructuredContent: tools.Structured{Value: raw}, IsError: o.Error != nil}
	text := string(raw)
	if o.Error != nil {
		text = o.Error.Text() + done(o)
		if o.Stdout != "" {
			text += "\n\nPrinted before that:\n" + lastOf(o.Stdout)
		}
	}
	res.Content = []mcp.Content{&mcp.TextContent{Text: text}}
	return res, nil
}

// maxShown is how many bytes of what code printed stand beside its error. All of it is in the structured content.
const maxShown = 8 << 10

// lastOf is the end of a text.
func lastOf(text string) string {
	if len(text) <= maxShown {
		return text
	}
	return "…" + strings.ToValidUTF8(text[len(text)-maxShown:], "")
}

// done says that tools were called before an error, since what they did is not undone, and the code may be run again.
func done(o codemode.Outcome) string {
	n := o.Calls
	if o.Error.Kind == codemode.ToolErr {
		n-- // the one that failed
	}
	switch {
	case n < 1:
		return ""
	case n == 1:
		return "\n\n1 tool call was made before that, and stands."
	}
	return fmt.Sprintf("\n\n%d tool calls were made before that, and stand.", n)
}

// call is a tool call that the code makes: by the handler that serves any call, with a deadline of its own, and recorded. It
// is no step. A tool that does not heed the end of its context keeps the session's turn, as in any call.
func (r *codeRun) call(ctx context.Context, tool string, args json.RawMessage) (codemode.Answer, error) {
	i := r.i
	limit := cmp.Or(i.Traits(tool).Deadline, i.toolTimeout, i.class.coder.limits.Time)
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	req := &mcp.CallToolRequest{Params: &mcp.CallToolParamsRaw{Name: tool, Arguments: args}, Extra: &mcp.RequestExtra{}}
	if outer := tools.Request(ctx); outer != nil { // whom the tool may tell and ask
		req.Session, req.Extra = outer.Session, outer.Extra
	}
	a := i.runTool(limited, req)
	over := context.Cause(ctx)
	switch {
	case over != nil && ctx.Err() != context.DeadlineExceeded: // nobody waits for it
		return codemode.Answer{}, over
	case over != nil: // it has run all the same, and so counts as one that was too slow
		a.Result, a.Err = nil, &tools.Error{Type: tools.Timeout, Tool: tool, Message: fmt.Sprintf("tool %q did not finish within the time of the code", tool)}
	case limited.Err() != nil:
		a.Result, a.Err = nil, &tools.Error{Type: tools.Timeout, Tool: tool, Message: fmt.Sprintf("tool %.200q did not finish within %v", tool, limit)}
	}
	i.Record(tool, args, a)
	r.calls = append(r.calls, ToolCall{Name: tool, Arguments: args, Result: a.Result, Err: a.Err})
	if over != nil {
		return codemode.Answer{}, over
	}
	return codeAnswer(a)
}

// codeAnswer is a tool's answer as code gets it.
func codeAnswer(a ToolAnswer) (codemode.Answer, error) {
	switch {
	case a.Err != nil:
		return codemode.Answer{Failure: &codemode.CallError{Type: string(a.Err.Type), Message: a.Err.Message}}, nil
	case a.Result.IsError:
		return codemode.Answer{Failure: &codemode.CallError{Type: codemode.Failure, Message: failureWords(a)}}, nil
	case a.Result.StructuredContent == nil && len(a.Result.Content) > 1:
		raw, err := strictjson.Marshal(a.Result.Content)
		return codemode.Answer{Value: raw}, err
	}
	return codemode.Answer{Value: a.Data}, nil
}

// failureWords are what a tool reports of its failure.
func failureWords(a ToolAnswer) string {
	if text, ok := tools.FailureText(a.Result); ok {
		return text
	}
	return string(a.Data)
}

// codeTools are the tools that code may call: all but the one that runs it.
func codeTools(list []*mcp.Tool) ([]codemode.Tool, error) {
	known := []codemode.Tool{}
	for _, t := range list {
		if t.Name == CodeTool {
			continue
		}
		schema, err := json.Marshal(t.InputSchema)
		if err != nil {
			return nil, fmt.Errorf("tool %q: %w", t.Name, err)
		}
		output, err := json.Marshal(tools.ValueSchema(t))
		if err != nil {
			return nil, fmt.Errorf("tool %q: %w", t.Name, err)
		}
		_, unordered := t.InputSchema.(map[string]any) // as a server elsewhere has sent it
		known = append(known, codemode.Tool{Name: t.Name, Description: t.Description, Input: schema, Output: output, Unordered: unordered})
	}
	return known, nil
}
