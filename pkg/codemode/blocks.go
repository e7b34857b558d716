package codemode

import (
	"errors"

	"go.starlark.net/starlark"

	"github.com/openenv-go/openenv-go/pkg/codemode/internal/fault"
)

// A signal is how the block of a try statement ends where it does not just end: by return, break or continue.
type signal struct {
	name  string
	value starlark.Value // what is returned
}

var (
	signalBreak    = &signal{name: "break"}
	signalContinue = &signal{name: "continue"}
)

const returned = "return"

func (s *signal) String() string        { return s.name }
func (s *signal) Type() string          { return "signal" }
func (s *signal) Freeze()               {}
func (s *signal) Truth() starlark.Bool  { return true }
func (s *signal) Hash() (uint32, error) { return 0, fault.New("TypeError", "a signal has no hash") }

// A cell is a variable that functions share.
type cell struct {
	name  string
	value starlark.Value // nil: not assigned yet
}

func (c *cell) String() string        { return c.name }
func (c *cell) Type() string          { return "variable" }
func (c *cell) Freeze()               {}
func (c *cell) Truth() starlark.Bool  { return true }
func (c *cell) Hash() (uint32, error) { return 0, fault.New("TypeError", "a variable has no hash") }

// SetKey implements starlark.HasSetKey: an assignment to c[0] sets the variable.
func (c *cell) SetKey(_, v starlark.Value) error {
	c.value = v
	return nil
}

// Get implements starlark.Mapping.
func (c *cell) Get(starlark.Value) (starlark.Value, bool, error) {
	if c.value == nil {
		return nil, false, fault.New("UnboundLocalError", "%s is used before it has a value", c.name)
	}
	return c.value, true, nil
}

type builtin = func(*starlark.Thread, *starlark.Builtin, starlark.Tuple, []starlark.Tuple) (starlark.Value, error)

// hidden are the functions that the parser's rewrites call. They trust it for the number and the types of their arguments.
func (r *run) hidden() map[string]builtin {
	return map[string]builtin{
		"$enter": func(*starlark.Thread, *starlark.Builtin, starlark.Tuple, []starlark.Tuple) (starlark.Value, error) {
			return starlark.True, r.enter()
		},
		"$cell": func(_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
			name, _ := starlark.AsString(args[0])
			return &cell{name: name}, nil
		},
		"$get": func(_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
			v, _, err := args[0].(*cell).Get(nil)
			return v, err
		},
		"$returned": func(_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
			return &signal{returned, args[0]}, nil
		},
		"$isreturn": func(_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
			s, ok := args[0].(*signal)
			return starlark.Bool(ok && s.name == returned), nil
		},
		"$value": func(_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
			return args[0].(*signal).value, nil
		},
		"$iadd": inPlace("$add", map[string]string{"list": "extend", "deque": "extend"}),
		"$ior":  inPlace("$or", map[string]string{"dict": "update", "set": "update"}),
		"$store": func(_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
			args[0].(*cell).value = args[1]
			return args[1], nil
		},
		"$unset": func(_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
			args[0].(*cell).value = nil
			return starlark.None, nil
		},
		"$stop": func(_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
			return nil, r.stop(&early{args[0]})
		},
		"$try":   r.try,
		"$raise": r.raise,
	}
}

// inPlace is an augmented assignment: for the types that are changed by it the method that does so, else the operator.
func inPlace(operator string, methods map[string]string) builtin {
	return func(t *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
		method, ok := methods[args[0].Type()]
		if !ok {
			return starlark.Call(t, universe()[operator], args, nil)
		}
		f, err := starlark.Call(t, universe()["$attr"], starlark.Tuple{args[0], starlark.String(method)}, nil)
		if err == nil {
			_, err = starlark.Call(t, f, args[1:], nil)
		}
		return args[0], err
	}
}

// early is the end of a run by a return at top level: no fault, but nothing runs after it either.
type early struct{ value starlark.Value }

func (*early) Error() string { return "the code has returned" }

// try runs a try statement: $try(body, ((classes or None, except), …), else or None, finally or None). Its value is how the
// block that ran last ended: None or a signal.
func (r *run) try(_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
	v, err := r.block(args[0])
	if err != nil {
		v, err = r.except(args[1].(starlark.Tuple), err)
	} else if v == starlark.None && args[2] != starlark.None {
		v, err = r.block(args[2])
	}
	if args[3] == starlark.None {
		return v, err
	}
	if w, failed := r.block(args[3]); failed != nil || w != starlark.None {
		return w, failed
	}
	return v, err
}

// block runs a block, unless the run is over.
func (r *run) block(f starlark.Value, args ...starlark.Value) (starlark.Value, error) {
	if err := r.ended(); err != nil {
		return nil, err
	}
	return r.guarded(f, args, nil)
}

// guarded calls a function for code that may catch its error: a limit ends the run before it does.
func (r *run) guarded(f starlark.Value, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	v, err := starlark.Call(r.thread, f, args, kwargs)
	if limit := (*fault.Limit)(nil); errors.As(err, &limit) {
		r.stop(limit)
	}
	if err == nil {
		err = r.ended()
	}
	return v, err
}

// except runs the first clause that catches err, or returns err.
func (r *run) except(clauses starlark.Tuple, err error) (starlark.Value, error) {
	if r.ended() != nil {
		return nil, err
	}
	for _, c := range clauses {
		clause := c.(starlark.Tuple)
		by, wrong := r.matching(clause[0], err, r.Depth())
		if wrong != nil {
			return nil, wrong
		}
		if by == nil {
			continue
		}
		r.handled = append(r.handled, err)
		v, err := r.block(clause[1], caught(err, by))
		r.handled = r.handled[:len(r.handled)-1]
		return v, err
	}
	return nil, err
}

// matching is the class of a clause that catches an error: classes is None, one or a tuple of them, with as many levels.
func (r *run) matching(classes starlark.Value, err error, levels int) (*class, error) {
	switch c := classes.(type) {
	case starlark.NoneType:
		return classOf(classException), nil
	case *class:
		if c.catches(err) || classOf("UnboundLocalError").within(c) && r.unset(err) {
			return c, nil
		}
		return nil, nil
	case starlark.Tuple:
		if levels == 0 {
			return nil, r.tooDeep()
		}
		for _, one := range c {
			if wrong := r.Charge(1); wrong != nil {
				return nil, wrong
			}
			if by, wrong := r.matching(one, err, levels-1); by != nil || wrong != nil {
				return by, wrong
			}
		}
		return nil, nil
	}
	return nil, fault.New("TypeError", "except takes a class of errors, not %s", classes.Type()).Hinted("except Exception as e: catches all")
}

// raise is the raise statement; without an argument it raises what the except clause around it has caught.
func (r *run) raise(_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
	if len(args) == 0 {
		if n := len(r.handled); n > 0 {
			return nil, r.handled[n-1]
		}
		return nil, fault.New("RuntimeError", "there is no error to raise again").Hinted("raise alone belongs into an except block")
	}
	switch x := args[0].(type) {
	case *exception:
		return nil, x.raise()
	case *class:
		return nil, (&exception{class: x}).raise()
	}
	return nil, fault.New("TypeError", "a %s cannot be raised", args[0].Type()).Hinted("raise Exception(\"…\")")
}
