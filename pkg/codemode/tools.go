package codemode

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"go.starlark.net/starlark"

	"github.com/openenv-go/openenv-go/pkg/codemode/internal/fault"
	"github.com/openenv-go/openenv-go/pkg/internal/strictjson"
)

// A toolbox is a job's tools, in their order.
type toolbox struct {
	all    []*tool
	byName map[string]*tool
}

func newToolbox(tools []Tool) *toolbox {
	b := &toolbox{byName: map[string]*tool{}}
	for i, function := range FunctionNames(tools) {
		t := &tool{Tool: tools[i], function: function}
		b.all = append(b.all, t)
		b.byName[t.Name] = t
	}
	return b
}

func (b *toolbox) names() []string {
	names := make([]string, len(b.all))
	for i, t := range b.all {
		names[i] = t.Name
	}
	return names
}

// functions are the names by which code calls the tools, by their own.
func (b *toolbox) functions() map[string]string {
	names := map[string]string{}
	for _, t := range b.all {
		if t.function != "" {
			names[t.Name] = t.function
		}
	}
	return names
}

// A tool is one that code may call.
type tool struct {
	Tool
	function string // by which code calls it; "" where only call_tool does
	read     bool   // whether params and open are set
	params   []param
	open     bool // to arguments that its schema does not name
}

// A param is one that the schema names.
type param struct {
	name     string // as published
	written  string // as code writes it
	required bool
	schema   strictjson.Raw
}

// parameters reads the schema when it is asked for the first time. What is not understood has no parameters, and is open.
func (t *tool) parameters() []param {
	if t.read {
		return t.params
	}
	t.read, t.open = true, true
	if !json.Valid(t.Input) {
		return nil
	}
	var required []string
	schema, _ := strictjson.MembersOf(t.Input)
	for {
		name, value, ok := schema.Next()
		if !ok {
			break
		}
		switch string(name) {
		case "properties":
			t.readProperties(value)
		case "required":
			_ = json.Unmarshal(value, &required) // of another type: the schema says nothing then
		case "additionalProperties":
			t.open = string(value) != "false"
		}
	}
	for i, p := range t.params {
		t.params[i].required = slices.Contains(required, p.name)
	}
	return t.params
}

func (t *tool) readProperties(b []byte) {
	properties, _ := strictjson.MembersOf(b)
	count := map[string]int{}
	for {
		name, value, ok := properties.Next()
		if !ok {
			break
		}
		p := param{name: string(name), written: identifier(string(name)), schema: value}
		count[p.written]++
		t.params = append(t.params, p)
	}
	for i, p := range t.params {
		if count[p.written] > 1 && p.written != p.name {
			t.params[i].written = ""
		}
	}
}

// parameter finds one by its published name, or else by what code writes.
func (t *tool) parameter(name string) *param {
	params := t.parameters()
	for i := range params {
		if params[i].name == name {
			return &params[i]
		}
	}
	for i := range params {
		if params[i].written == name {
			return &params[i]
		}
	}
	return nil
}

func (t *tool) written() []string {
	var names []string
	for _, p := range t.parameters() {
		if p.written != "" {
			names = append(names, p.written)
		}
	}
	return names
}

// failed is the failure of a call, as the code catches it.
func failed(name, typ, message string) *fault.Exception {
	x := said(classOf(classTool), message)
	x.tool, x.call = name, &CallError{Type: typ, Message: message}
	return &fault.Exception{Class: classTool, Message: message, Value: x}
}

// Types of failures that arise here. A host's own are passed on.
const (
	invalidArgs    = "invalid_args"
	toolNotFound   = "tool_not_found"
	executionError = "execution_error"
)

// function is a tool as a function of the code.
func (r *run) function(t *tool) builtin {
	return func(_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		if err := r.count(); err != nil {
			return nil, err
		}
		a := arguments{tool: t}
		if err := a.positions(args); err != nil {
			return nil, err
		}
		return r.invoke(&a, kwargs)
	}
}

// callTool is call_tool(name, {…}) and call_tool(name, a=…).
func (r *run) callTool(_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	if err := r.count(); err != nil {
		return nil, err
	}
	const usage = `call_tool("name", {"parameter": value})`
	if len(args) == 0 || len(args) > 2 {
		return nil, fault.New("TypeError", "call_tool takes a tool's name and a dict of arguments, not %d values", len(args)).Hinted(usage)
	}
	name, ok := starlark.AsString(args[0])
	if !ok {
		return nil, fault.New("TypeError", "call_tool takes the name of a tool as text, not %s", args[0].Type()).Hinted(usage)
	}
	t := r.tools.byName[name]
	if t == nil {
		return nil, failed(clip(name, maxName), toolNotFound, fmt.Sprintf("there is no tool %q%s: list_tools() lists them", clip(name, maxName), meant(name, r.tools.names())))
	}
	a := arguments{tool: t}
	if len(args) == 2 && args[1] != starlark.None {
		dict, ok := args[1].(starlark.IterableMapping)
		if !ok {
			return nil, fault.New("TypeError", "the arguments of %s are a dict, not %s", name, args[1].Type()).Hinted(usage)
		}
		kwargs = append(dict.Items(), kwargs...)
	}
	return r.invoke(&a, kwargs)
}

// count counts a call, which may be one too many.
func (r *run) count() error {
	if r.calls >= r.limits.Calls {
		return r.stop(r.exceeded("calls", "more than %s of tools: ask for more at a time, or split the work", counted(r.limits.Calls, "call")))
	}
	r.calls++
	return r.ended()
}

// invoke calls a tool once its named arguments are in their places.
func (r *run) invoke(a *arguments, kwargs []starlark.Tuple) (starlark.Value, error) {
	if err := a.keywords(kwargs); err != nil {
		return nil, err
	}
	args, err := r.encode(a)
	if err != nil {
		return nil, err
	}
	answer, err := r.call(r.ctx, a.tool.Name, args)
	if r.ctx.Err() != nil { // of which a goroutine is told that may not have come to it
		err = context.Cause(r.ctx)
	}
	if err != nil {
		return nil, r.stop(err)
	}
	if f := answer.Failure; f != nil {
		return nil, failed(a.tool.Name, f.Type, f.Message)
	}
	v, err := r.fromJSON(answer.Value)
	if err != nil && r.ended() == nil {
		err = failed(a.tool.Name, executionError, fmt.Sprintf("the answer of %s cannot be read: %v", a.tool.Name, err))
	}
	return v, err
}

// encode writes the arguments as a JSON object.
func (r *run) encode(a *arguments) (json.RawMessage, error) {
	b := []byte{'{'}
	fits := func() error {
		if len(b) < r.limits.Output { // with the brace at its end
			return nil
		}
		return r.stop(r.exceeded("output", "the arguments of %s take more than %s as JSON: pass on less", a.tool.Name, size(r.limits.Output)))
	}
	for i, g := range a.given {
		if i > 0 {
			b = append(b, ',')
		}
		name, err := r.toJSON(starlark.String(g.name), a.tool.Name+": a parameter's name")
		if err != nil {
			return nil, err
		}
		value, err := r.toJSON(g.value, a.tool.Name+": "+clip(g.name, maxName))
		if err != nil {
			return nil, err
		}
		b = append(append(append(b, name...), ':'), value...)
		if err := fits(); err != nil {
			return nil, err
		}
	}
	if err := fits(); err != nil {
		return nil, err
	}
	return append(b, '}'), nil
}

// arguments are those of one call, by their published names.
type arguments struct {
	tool  *tool
	given []argument
}

type argument struct {
	name  string
	value starlark.Value
}

// positions takes arguments in the order of the schema's properties.
func (a *arguments) positions(args starlark.Tuple) error {
	params := a.tool.parameters()
	if len(args) > len(params) {
		takes := "no arguments"
		if len(params) > 0 {
			takes = fmt.Sprintf("%d by position (%s)", len(params), strings.Join(a.tool.written(), ", "))
		}
		return fault.New("TypeError", "%s takes %s, not %d", a.tool.function, takes, len(args)).Hinted("help(%s) says more", a.tool.function)
	}
	if a.tool.Unordered && len(args) > 0 {
		only := a.tool.only()
		if only == nil || len(args) > 1 {
			return fault.New("TypeError", "the parameters of %s have no order", a.tool.function).Hinted("give them by name: %s", a.tool.signature())
		}
		a.given = append(a.given, argument{only.name, args[0]})
		return nil
	}
	for i, v := range args {
		a.given = append(a.given, argument{params[i].name, v})
	}
	return nil
}

// only is the parameter that an argument without a name can only be for: it is alone, or alone required. nil: there is none.
func (t *tool) only() *param {
	params := t.parameters()
	if len(params) == 1 {
		return &params[0]
	}
	var found *param
	for i := range params {
		if params[i].required {
			if found != nil {
				return nil
			}
			found = &params[i]
		}
	}
	return found
}

func (a *arguments) keywords(kwargs []starlark.Tuple) error {
	for _, kv := range kwargs {
		name, ok := starlark.AsString(kv[0])
		if !ok {
			return fault.New("TypeError", "a parameter of %s is named by text, not %s", a.tool.Name, kv[0].Type())
		}
		p := a.tool.parameter(name)
		switch {
		case p != nil:
			name = p.name
		case !a.tool.open:
			return failed(a.tool.Name, invalidArgs, a.unknown(name))
		}
		if slices.ContainsFunc(a.given, func(g argument) bool { return g.name == name }) {
			return fault.New("TypeError", "%s is given twice to %s", name, a.tool.Name)
		}
		a.given = append(a.given, argument{name, kv[1]})
	}
	return nil
}

func (a *arguments) unknown(name string) string {
	has := "it has none"
	if names := a.tool.written(); len(names) > 0 {
		has = "it has " + strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s has no parameter %s%s: %s", a.tool.Name, clip(name, maxName), meant(name, a.tool.written()), has)
}
