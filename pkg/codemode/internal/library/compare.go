package library

import (
	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/openenv-go/openenv-go/pkg/codemode/internal/fault"
)

// plain is v with a boolean as the integer that it is to Python.
func plain(v starlark.Value) starlark.Value {
	if b, ok := v.(starlark.Bool); ok {
		if b {
			return starlark.MakeInt(1)
		}
		return starlark.MakeInt(0)
	}
	return v
}

func (c *call) equal(x, y starlark.Value) (bool, error) { return c.equalAt(x, y, c.meter.Depth()) }

func (c *call) equalAt(x, y starlark.Value, depth int) (bool, error) {
	if err := c.step(1); err != nil {
		return false, err
	}
	if depth < 0 {
		return false, nestingLimit(c.meter.Depth())
	}
	x, y = plain(x), plain(y)
	switch x := x.(type) {
	case starlark.String:
		if t, ok := y.(*Type); ok {
			return t.called(string(x)), nil
		}
		return x == y, nil
	case *Type:
		if s, ok := y.(starlark.String); ok {
			return x.called(string(s)), nil
		}
		return x == y, nil
	case *starlark.List:
		if y, ok := y.(*starlark.List); ok && x != y {
			return c.rowsEqual(x, y, depth)
		} else if ok {
			return true, nil
		}
	case starlark.Tuple:
		if y, ok := y.(starlark.Tuple); ok {
			return c.rowsEqual(x, y, depth)
		}
	case *starlark.Dict:
		if y, ok := y.(*starlark.Dict); ok {
			return c.dictsEqual(x, y, depth)
		}
	case *deque:
		if y, ok := y.(*deque); ok {
			return c.rowsEqual(x, y, depth)
		}
	case *view:
		return c.viewsEqual(x, y, depth)
	case *starlark.Set:
		switch y := y.(type) {
		case *starlark.Set:
			return c.subset(x, y, x.Len() == y.Len())
		case *view:
			return c.viewsEqual(y, x, depth)
		}
	case starlark.Float:
		// To Starlark, not a number equals itself.
		if y, ok := y.(starlark.Float); ok {
			return float64(x) == float64(y), nil
		}
	}
	return c.native(syntax.EQL, x, y)
}

// native compares what is no collection.
func (c *call) native(op syntax.Token, x, y starlark.Value) (bool, error) {
	same, err := starlark.Compare(op, x, y)
	return same, c.typeError(err)
}

func (c *call) rowsEqual(x, y starlark.Indexable, depth int) (bool, error) {
	if x.Len() != y.Len() {
		return false, nil
	}
	for i := 0; i < x.Len() && i < y.Len(); i++ {
		if same, err := c.equalAt(x.Index(i), y.Index(i), depth-1); err != nil || !same {
			return false, err
		}
	}
	return true, nil
}

func (c *call) dictsEqual(x, y *starlark.Dict, depth int) (bool, error) {
	if x.Len() != y.Len() {
		return false, nil
	}
	if x == y {
		return true, nil
	}
	for k, v := range x.Entries() {
		w, found, err := y.Get(k)
		if err != nil {
			return false, c.typeError(err)
		}
		if !found {
			return false, nil
		}
		if same, err := c.equalAt(v, w, depth-1); err != nil || !same {
			return false, err
		}
	}
	return true, nil
}

// subset tells whether y has all of x, if that may be.
func (c *call) subset(x, y *starlark.Set, may bool) (bool, error) {
	if !may {
		return false, nil
	}
	for k := range x.Elements() {
		if err := c.step(1); err != nil {
			return false, err
		}
		if found, err := y.Has(k); err != nil || !found {
			return false, c.typeError(err)
		}
	}
	return true, nil
}

// compare orders x and y: op is one of < <= > >=.
func (c *call) compare(op syntax.Token, x, y starlark.Value) (bool, error) {
	return c.compareAt(op, x, y, c.meter.Depth())
}

func (c *call) compareAt(op syntax.Token, x, y starlark.Value, depth int) (bool, error) {
	if err := c.step(1); err != nil {
		return false, err
	}
	if depth < 0 {
		return false, nestingLimit(c.meter.Depth())
	}
	x, y = plain(x), plain(y)
	switch a := x.(type) {
	case starlark.Int:
		switch y.(type) {
		case starlark.Int, starlark.Float:
			return c.numbersOrdered(op, x, y)
		}
	case starlark.Float:
		switch y.(type) {
		case starlark.Int, starlark.Float:
			return c.numbersOrdered(op, x, y)
		}
	case starlark.String:
		if _, ok := y.(starlark.String); ok {
			return c.native(op, x, y)
		}
	case *starlark.List:
		if b, ok := y.(*starlark.List); ok {
			return c.rowsOrdered(op, a, b, depth)
		}
	case starlark.Tuple:
		if b, ok := y.(starlark.Tuple); ok {
			return c.rowsOrdered(op, a, b, depth)
		}
	case *deque:
		if b, ok := y.(*deque); ok {
			return c.rowsOrdered(op, a, b, depth)
		}
	case *starlark.Set, *view:
		left, err := c.asView(a)
		if err != nil {
			return false, err
		}
		if right, err := c.asView(y); err != nil {
			return false, err
		} else if right != nil {
			return c.setsOrdered(op, left, right)
		}
	}
	return false, unordered(op, x, y)
}

func unordered(op syntax.Token, x, y starlark.Value) error {
	e := fault.New("TypeError", "%s %s %s is not supported", typeName(x), op, typeName(y))
	if x == starlark.None || y == starlark.None {
		return e.Hinted("a value is None: leave such out, or write x or 0")
	}
	return e
}

func (c *call) numbersOrdered(op syntax.Token, x, y starlark.Value) (bool, error) {
	if isNaN(x) || isNaN(y) {
		return false, nil
	}
	return c.native(op, x, y)
}

func isNaN(v starlark.Value) bool {
	f, ok := v.(starlark.Float)
	return ok && f != f
}

func (c *call) rowsOrdered(op syntax.Token, x, y starlark.Indexable, depth int) (bool, error) {
	n := min(x.Len(), y.Len())
	for i := range n {
		a, b := x.Index(i), y.Index(i)
		same, err := c.equalAt(a, b, depth-1)
		if err != nil {
			return false, err
		}
		if !same {
			return c.compareAt(op, a, b, depth-1)
		}
	}
	return c.native(op, starlark.MakeInt(x.Len()), starlark.MakeInt(y.Len()))
}

func (c *call) setsOrdered(op syntax.Token, x, y *starlark.Set) (bool, error) {
	switch op {
	case syntax.LT:
		return c.subset(x, y, x.Len() < y.Len())
	case syntax.LE:
		return c.subset(x, y, x.Len() <= y.Len())
	case syntax.GT:
		return c.subset(y, x, y.Len() < x.Len())
	default:
		return c.subset(y, x, y.Len() <= x.Len())
	}
}

// hashable refuses what cannot be a key, and charges for the walk that hashing it is.
func (c *call) hashable(v starlark.Value) error { return c.hashableAt(v, c.meter.Depth()) }

func (c *call) hashableAt(v starlark.Value, depth int) error {
	switch v := v.(type) {
	case starlark.String, starlark.Int, starlark.Bool, starlark.NoneType:
		return nil
	case starlark.Tuple:
		if depth < 0 {
			return nestingLimit(c.meter.Depth())
		}
		for _, e := range v {
			if err := c.step(1); err != nil {
				return err
			}
			if err := c.hashableAt(e, depth-1); err != nil {
				return err
			}
		}
		return nil
	case *starlark.List:
		return fault.New("TypeError", "unhashable type: list").Hinted("a key must not change: use a tuple")
	case *starlark.Dict, *starlark.Set:
		return fault.New("TypeError", "unhashable type: %s", typeName(v)).Hinted("a key must not change: use text, a number or a tuple")
	}
	_, err := v.Hash()
	return c.typeError(err)
}
