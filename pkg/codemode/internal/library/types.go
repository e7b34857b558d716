package library

import (
	"strings"

	"go.starlark.net/starlark"

	"github.com/openenv-go/openenv-go/pkg/codemode/internal/fault"
)

// A Type is what type gives: a value's type, which converts to it when it is called. It equals its own name, as code that knows
// Starlark has it.
type Type struct {
	name   string // Python's: str, dict, …
	native string // what Type() of its values is
	make   *starlark.Builtin
	has    func(starlark.Value) bool
}

var _ starlark.Callable = (*Type)(nil)

func (t *Type) Name() string          { return t.name }
func (t *Type) String() string        { return "<class '" + t.name + "'>" }
func (t *Type) Type() string          { return "type" }
func (t *Type) Freeze()               {}
func (t *Type) Truth() starlark.Bool  { return true }
func (t *Type) Hash() (uint32, error) { return starlark.String(t.name).Hash() }

// Instance tells whether v is of the type.
func (t *Type) Instance(v starlark.Value) bool { return t.has(v) }

// CallInternal converts to the type.
func (t *Type) CallInternal(thread *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	if t.make == nil {
		return nil, fault.New("TypeError", "cannot create %s values", t.name)
	}
	return t.make.CallInternal(thread, args, kwargs)
}

func (t *Type) called(name string) bool { return name == t.name || name == t.native }

// A Class is a type that another package has: isinstance and type know its values.
type Class interface {
	starlark.Value
	// Instance tells whether v is of the class.
	Instance(v starlark.Value) bool
}

// An Object is a value that has a class.
type Object interface {
	starlark.Value
	// Class is what type gives of it.
	Class() starlark.Value
}

// typeName is what messages call the type of a value.
func typeName(v starlark.Value) string { return v.Type() }

func (l *library) buildTypes() {
	l.types = map[string]*Type{}
	add := func(name, native string, f function) {
		t := &Type{name: name, native: native, has: func(v starlark.Value) bool { return v.Type() == native }}
		if f != nil {
			t.make = l.builtin(name, f)
		}
		l.types[native] = t
	}
	add("str", "string", builtinStr)
	add("int", "int", builtinInt)
	add("float", "float", builtinFloat)
	add("bool", "bool", builtinBool)
	add("list", "list", builtinList)
	add("tuple", "tuple", builtinTuple)
	add("dict", "dict", builtinDict)
	add("set", "set", builtinSet)
	add("deque", "deque", builtinDeque)
	add("range", "range", builtinRange)
	add("NoneType", "NoneType", nil)
	add("function", "function", nil)
	add("type", "type", builtinType)
	l.types["int"].has = func(v starlark.Value) bool { return v.Type() == "int" || v.Type() == "bool" }
	l.types["type"].has = func(v starlark.Value) bool { _, is := v.(Class); return is }
}

func builtinType(c *call) (starlark.Value, error) {
	var x starlark.Value
	if err := c.take(1, &x); err != nil {
		return nil, err
	}
	if o, ok := x.(Object); ok {
		return o.Class(), nil
	}
	if t := c.types[x.Type()]; t != nil {
		return t, nil
	}
	name := x.Type()
	return &Type{name: name, native: name, has: func(v starlark.Value) bool { return v.Type() == name }}, nil
}

func builtinIsinstance(c *call) (starlark.Value, error) {
	var x, class starlark.Value
	if err := c.take(2, &x, &class); err != nil {
		return nil, err
	}
	is, err := c.instance(x, class, c.meter.Depth())
	return starlark.Bool(is), err
}

func (c *call) instance(x, class starlark.Value, depth int) (bool, error) {
	if depth < 0 {
		return false, nestingLimit(c.meter.Depth())
	}
	switch class := class.(type) {
	case Class:
		return class.Instance(x), nil
	case starlark.Tuple:
		for _, k := range class {
			if err := c.step(1); err != nil {
				return false, err
			}
			if is, err := c.instance(x, k, depth-1); err != nil || is {
				return is, err
			}
		}
		return false, nil
	case starlark.NoneType:
		return x == starlark.None, nil
	case starlark.String:
		return false, fault.New("TypeError", "isinstance: %s is text, not a type", class).Hinted("write the type: isinstance(x, dict)")
	}
	return false, fault.New("TypeError", "isinstance: want a type or a tuple of types, not %s", typeName(class))
}

func builtinBool(c *call) (starlark.Value, error) {
	x := starlark.Value(starlark.False)
	if err := c.take(0, &x); err != nil {
		return nil, err
	}
	return x.Truth(), nil
}

func builtinList(c *call) (starlark.Value, error) {
	values, err := c.from()
	return starlark.NewList(values), err
}

func builtinTuple(c *call) (starlark.Value, error) {
	values, err := c.from()
	return starlark.Tuple(values), err
}

// from is the elements of the only argument, if there is one.
func (c *call) from() ([]starlark.Value, error) {
	var x starlark.Value
	if err := c.take(0, &x); err != nil || x == nil {
		return nil, err
	}
	return c.collect(x)
}

func builtinSet(c *call) (starlark.Value, error) {
	set := new(starlark.Set)
	var x starlark.Value
	if err := c.take(0, &x); err != nil || x == nil {
		return set, err
	}
	return set, c.insertAll(set, x)
}

func hiddenSet(c *call) (starlark.Value, error) {
	set := new(starlark.Set)
	return set, c.insertAll(set, c.args[0])
}

// entryBytes is the size of an entry of a set or dict.
const entryBytes = 100

func (c *call) insertAll(set *starlark.Set, x starlark.Value) error {
	if n := starlark.Len(x); n > 1024 {
		if err := c.meter.Room(min(n, 1<<40) * wordBytes); err != nil {
			return err
		}
	}
	return c.each(x, func(v starlark.Value) error { return c.insert(set, v) })
}

func (c *call) insert(set *starlark.Set, v starlark.Value) error {
	if err := c.hashable(v); err != nil {
		return err
	}
	if n := set.Len(); n >= 1024 && n&(n-1) == 0 {
		if err := c.meter.Room(2 * n * entryBytes); err != nil {
			return err
		}
	}
	if err := set.Insert(v); err != nil {
		return inIteration("set")
	}
	return nil
}

// inIteration is what is wrong when a value with a good key refuses to be changed.
func inIteration(what string) error {
	return fault.New("RuntimeError", "a %s cannot be changed during iteration over it", what).
		Hinted("loop over a copy: for x in list(xs)")
}

func builtinRange(c *call) (starlark.Value, error) {
	for i, v := range c.args {
		if f, ok := v.(starlark.Float); ok {
			return nil, fault.New("TypeError", "range: float is no integer").Hinted("write int(…) or // in place of %s", Repr(f))
		}
		if b, ok := v.(starlark.Bool); ok {
			c.args[i] = plain(b)
		}
		if n, ok := v.(starlark.Int); ok {
			if _, fits := n.Int64(); !fits {
				return nil, fault.New("OverflowError", "range: an argument is too large")
			}
		}
	}
	r, err := starlark.Call(c.thread, starlark.Universe["range"], c.args, c.kwargs)
	return r, c.libraryError("ValueError", err)
}

// libraryError is the error of a function of Starlark's own, as code is to see it.
func (c *call) libraryError(class string, err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	if !strings.HasPrefix(text, c.name) {
		text = c.name + ": " + text
	}
	return fault.New(class, "%s", text)
}
