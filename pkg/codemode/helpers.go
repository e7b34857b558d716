package codemode

import (
	"fmt"
	"maps"
	"strings"

	"go.starlark.net/starlark"

	"github.com/openenv-go/openenv-go/pkg/codemode/internal/fault"
	"github.com/openenv-go/openenv-go/pkg/codemode/internal/library"
)

const tryCallName = "try_call"

// builtins are the functions that belong to a run.
func (r *run) builtins() map[string]builtin {
	all := map[string]builtin{
		"print":      r.print,
		"fail":       r.fail,
		tryCallName:  r.tryCall,
		"call_tool":  r.callTool,
		"list_tools": r.listTools,
		"help":       r.help,
	}
	maps.Copy(all, r.hidden())
	return all
}

// output is what print wrote.
type output struct{ strings.Builder }

func (r *run) print(_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	sep, end := " ", "\n"
	for _, kv := range kwargs {
		name, _ := starlark.AsString(kv[0])
		into := map[string]*string{"sep": &sep, "end": &end}[name]
		if into == nil && name != "flush" {
			return nil, fault.New("TypeError", "print has no keyword argument %s", name).Hinted("it has sep and end")
		}
		if s, ok := starlark.AsString(kv[1]); ok && into != nil {
			*into = s
		} else if into != nil && kv[1] != starlark.None {
			return nil, fault.New("TypeError", "print's %s is text, not %s", name, kv[1].Type())
		}
	}
	for i, v := range args {
		if i > 0 {
			if err := r.write(sep); err != nil {
				return nil, err
			}
		}
		if err := r.writeText(v); err != nil {
			return nil, err
		}
	}
	return starlark.None, r.write(end)
}

func (r *run) writeText(v starlark.Value) error {
	s, err := library.Str(r.thread, v)
	if err != nil {
		return err
	}
	return r.write(s)
}

// write prints s, of which as much is kept as fits.
func (r *run) write(s string) error {
	if err := r.Charge(8 + len(s)/64); err != nil {
		return err
	}
	if room := r.limits.Output - r.out.Len(); len(s) > room {
		r.out.WriteString(strings.ToValidUTF8(s[:room], ""))
		return r.stop(r.exceeded("output", "more than %s were printed: print less, and pass the rest on as result", size(r.limits.Output)))
	}
	r.out.WriteString(strings.ToValidUTF8(s, "\uFFFD"))
	return nil
}

func (r *run) fail(_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	sep := " "
	if err := starlark.UnpackArgs("fail", nil, kwargs, "sep?", &sep); err != nil {
		return nil, err
	}
	words := make([]string, len(args))
	for i, v := range args {
		s, err := library.Str(r.thread, v)
		if err != nil {
			return nil, err
		}
		words[i] = clip(s, maxMessage)
	}
	return nil, &fault.Exception{Class: classException, Message: strings.Join(words, sep)}
}

// tryCall calls a function and gives what came of it as a value.
func (r *run) tryCall(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	if len(args) == 0 {
		return nil, fault.New("TypeError", "try_call needs a function").Hinted("r = try_call(f, x, name=y); r.ok, r.value, r.error")
	}
	if _, ok := args[0].(starlark.Callable); !ok {
		return nil, fault.New("TypeError", "try_call takes a function and its arguments, not %s", args[0].Type()).
			Hinted("name the function without calling it: try_call(f, x), or try_call(lambda: f(x))")
	}
	if err := r.enter(); err != nil {
		return nil, err
	}
	v, err := r.guarded(args[0], args[1:], kwargs)
	if r.ended() != nil {
		return nil, err
	}
	if err != nil {
		return &attempt{run: r, value: starlark.None, err: caught(err, classOf(classException))}, nil
	}
	return &attempt{run: r, value: v}, nil
}

// An attempt is what try_call gives: an object, and a pair.
type attempt struct {
	run   *run
	value starlark.Value
	err   *exception // nil: it succeeded
}

// maxQuoted is how deep attempts within attempts are written out.
const maxQuoted = 10

func (a *attempt) failure() starlark.Value {
	if a.err == nil {
		return starlark.None
	}
	return a.err
}

func (a *attempt) String() string {
	if a.run.quoting >= maxQuoted {
		return "try_call(" + cut + ")"
	}
	a.run.quoting++
	defer func() { a.run.quoting-- }()
	value, err := literalOf(a.run.thread, a.value)
	if err != nil {
		value = cut // the run is over
	}
	return fmt.Sprintf("try_call(ok=%s, value=%s, error=%s)", starlark.Bool(a.err == nil), value, a.failure())
}
func (a *attempt) Type() string         { return tryCallName }
func (a *attempt) Freeze()              { a.value.Freeze() }
func (a *attempt) Truth() starlark.Bool { return true }
func (a *attempt) Hash() (uint32, error) {
	return 0, fault.New("TypeError", "the value of try_call has no hash")
}
func (a *attempt) AttrNames() []string { return []string{"error", "ok", "value"} }
func (a *attempt) Len() int            { return 2 }

func (a *attempt) Iterate() starlark.Iterator { return starlark.Tuple{a.value, a.failure()}.Iterate() }

func (a *attempt) Index(i int) starlark.Value { return starlark.Tuple{a.value, a.failure()}[i] }

func (a *attempt) Attr(name string) (starlark.Value, error) {
	switch name {
	case "ok":
		return starlark.Bool(a.err == nil), nil
	case "value":
		return a.value, nil
	case "error":
		return a.failure(), nil
	}
	return nil, nil
}

// dict is the attempt as data.
func (a *attempt) dict() starlark.Value {
	d := starlark.NewDict(3)
	set := func(d *starlark.Dict, k string, v starlark.Value) { _ = d.SetKey(starlark.String(k), v) } // new, and so not frozen
	set(d, "ok", starlark.Bool(a.err == nil))
	set(d, "value", a.value)
	set(d, "error", starlark.None)
	if a.err != nil {
		e := starlark.NewDict(3)
		for _, name := range []string{"message", "kind", "tool"} {
			v, _ := a.err.Attr(name)
			set(e, name, v)
		}
		set(d, "error", e)
	}
	return d
}
