package library

import (
	"math"
	"strings"

	"go.starlark.net/starlark"

	"github.com/openenv-go/openenv-go/pkg/codemode/internal/fault"
)

// A call is one call of a builtin.
type call struct {
	*library
	thread *starlark.Thread
	meter  fault.Meter
	name   string
	recv   starlark.Value // of a method
	args   starlark.Tuple
	kwargs []starlark.Tuple
	due    int // steps that have not been charged yet
}

type function func(c *call) (starlark.Value, error)

func (l *library) builtin(name string, f function) *starlark.Builtin {
	return starlark.NewBuiltin(name, func(t *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		c := &call{library: l, thread: t, meter: fault.MeterOf(t), name: name, recv: b.Receiver(), args: args, kwargs: kwargs}
		v, err := f(c)
		if err != nil {
			return nil, err
		}
		if err := c.settle(); err != nil {
			return nil, err
		}
		return v, nil
	})
}

// batch is how many steps are charged at once.
const batch = 256

// step counts n steps, and charges them in batches.
func (c *call) step(n int) error {
	c.due += n
	if c.due < batch {
		return nil
	}
	return c.settle()
}

func (c *call) settle() error {
	n := c.due
	c.due = 0
	if n == 0 {
		return nil
	}
	return c.meter.Charge(n)
}

// scan charges for work on n bytes that takes about a nanosecond each.
func (c *call) scan(n int) error { return c.step(n / 64) }

// text asks for the room that n bytes of text need, and charges for writing them.
func (c *call) text(n int) error {
	if err := c.meter.Room(n); err != nil {
		return err
	}
	return c.scan(n)
}

// wordBytes is the size of a value in a list.
const wordBytes = 16

// slots asks for the room that a list of n values needs.
func (c *call) slots(n int) error {
	if n > math.MaxInt/wordBytes {
		n = math.MaxInt / wordBytes
	}
	return c.meter.Room(n * wordBytes)
}

// bind unpacks arguments that have names, as starlark.UnpackArgs does.
func (c *call) bind(pairs ...any) error {
	return c.typeError(starlark.UnpackArgs(c.name, c.args, c.kwargs, pairs...))
}

// take unpacks arguments that have none, of which the first min must be there.
func (c *call) take(min int, vars ...any) error {
	return c.typeError(starlark.UnpackPositionalArgs(c.name, c.args, c.kwargs, min, vars...))
}

func (c *call) typeError(err error) error {
	if err == nil {
		return nil
	}
	return fault.New("TypeError", "%s", err)
}

// call calls a value from within a builtin.
func (c *call) call(f starlark.Value, args ...starlark.Value) (starlark.Value, error) {
	if err := c.step(1); err != nil {
		return nil, err
	}
	if _, ok := f.(starlark.Callable); !ok {
		return nil, fault.New("TypeError", "%s is not callable", typeName(f))
	}
	return starlark.Call(c.thread, f, args, nil)
}

// hiddenMethod is x.name that is called.
func hiddenMethod(c *call) (starlark.Value, error) {
	f, err := hiddenAttr(c)
	if err != nil {
		return nil, err
	}
	return f, c.callable(f, "."+string(c.args[1].(starlark.String)))
}

// hiddenCallee is a value that is called, whose name is the second argument.
func hiddenCallee(c *call) (starlark.Value, error) {
	name, _ := starlark.AsString(c.args[1])
	return c.args[0], c.callable(c.args[0], name)
}

// callable refuses to call what is no function.
func (c *call) callable(f starlark.Value, name string) error {
	if _, ok := f.(starlark.Callable); ok {
		return nil
	}
	what := typeName(f)
	e := fault.New("TypeError", "%s is not callable: it is no function", what)
	if name != "" {
		e.Message = name + " is of type " + what + ", which is not callable: it is no function"
	}
	switch {
	case f == starlark.None:
		return e.Hinted("a function without return gives None; leave the parentheses out where a value is meant")
	case name != "" && c.isBuiltin(name):
		return e.Hinted("the code gives %s a value of its own, which hides the function: name the variable otherwise", name)
	case strings.HasPrefix(name, "."):
		return e.Hinted("leave the parentheses out: %s is a value", name)
	}
	switch f.(type) {
	case *starlark.List, *starlark.Dict, starlark.Tuple, starlark.String:
		return e.Hinted("an element is x[…], in brackets; leave the parentheses out where the value itself is meant")
	}
	return e.Hinted("leave the parentheses out, or look where it was last assigned; a product is written with *")
}

// isBuiltin tells whether a name is that of a builtin or type.
func (c *call) isBuiltin(name string) bool {
	if builtins()[name] != nil {
		return true
	}
	for _, t := range c.types {
		if t.name == name {
			return true
		}
	}
	return false
}

// asIndex is v as an integer, cut off where no length reaches.
func asIndex(v starlark.Value) (int, bool) {
	switch v := v.(type) {
	case starlark.Bool:
		if v {
			return 1, true
		}
		return 0, true
	case starlark.Int:
		if n, ok := v.Int64(); ok {
			return int(n), true
		}
		if v.Sign() < 0 {
			return math.MinInt, true
		}
		return math.MaxInt, true
	}
	return 0, false
}

// index is the argument v as an integer.
func (c *call) index(v starlark.Value, what string) (int, error) {
	if n, ok := asIndex(v); ok {
		return n, nil
	}
	return 0, fault.New("TypeError", "%s: %s must be an integer, not %s", c.name, what, typeName(v))
}

// optional is as index; what is None or missing is otherwise.
func (c *call) optional(v starlark.Value, what string, otherwise int) (int, error) {
	if v == nil || v == starlark.None {
		return otherwise, nil
	}
	return c.index(v, what)
}

// bounds are start and end, as given to find or index, within n.
func (c *call) bounds(start, end starlark.Value, n int) (int, int, error) {
	lo, err := c.optional(start, "start", 0)
	if err != nil {
		return 0, 0, err
	}
	hi, err := c.optional(end, "end", n)
	if err != nil {
		return 0, 0, err
	}
	return clamp(lo, n), min(clamp(hi, n), n), nil
}

// clamp counts a negative i from the end, and cuts it off at 0; it may be beyond n.
func clamp(i, n int) int {
	if i < 0 {
		i = max(i+n, 0)
	}
	return i
}

func nestingLimit(depth int) error {
	return &fault.Limit{Name: "nesting", Message: "data is nested more deeply than " + itoa(depth) + " levels: make it flatter"}
}
