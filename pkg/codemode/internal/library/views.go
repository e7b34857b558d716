package library

import (
	"errors"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/openenv-go/openenv-go/pkg/codemode/internal/fault"
)

// A view is what keys and items of a dict give: a row as the dict was then, that is a set to operators.
type view struct {
	row  starlark.Tuple
	name string
}

const (
	keysView  = "dict_keys"
	itemsView = "dict_items"
)

func (v *view) String() string       { return v.name }
func (v *view) Type() string         { return v.name }
func (v *view) Freeze()              {}
func (v *view) Truth() starlark.Bool { return len(v.row) > 0 }
func (v *view) Hash() (uint32, error) {
	return 0, fault.New("TypeError", "unhashable type: %s", v.name)
}
func (v *view) Len() int                   { return len(v.row) }
func (v *view) Index(i int) starlark.Value { return v.row[i] }
func (v *view) Iterate() starlark.Iterator { return v.row.Iterate() }

// Slice gives a list.
func (v *view) Slice(start, end, step int) starlark.Value {
	return starlark.NewList(v.row.Slice(start, end, step).(starlark.Tuple))
}

// asView is x as a set, where it is a set or view.
func (c *call) asView(x starlark.Value) (*starlark.Set, error) {
	switch x.(type) {
	case *starlark.Set, *view:
		return c.asSet(x)
	}
	return nil, nil
}

// views is x op y where one of them is a view; nil where there is no such operator.
func (c *call) views(op syntax.Token, x, y starlark.Value) (starlark.Value, error) {
	if _, ok := y.(starlark.Iterable); !ok {
		return nil, nil
	}
	switch op {
	case syntax.AMP, syntax.PIPE, syntax.MINUS, syntax.CIRCUMFLEX:
	default:
		return nil, nil
	}
	a, err := c.asSet(x)
	if err != nil {
		return nil, err
	}
	b, err := c.asSet(y)
	if err != nil {
		return nil, err
	}
	return c.sets(op, a, b)
}

// viewsEqual compares a view with anything.
func (c *call) viewsEqual(x *view, y starlark.Value, depth int) (bool, error) {
	other, ok := y.(*view)
	if ok && x.name == itemsView && other.name == itemsView {
		var pair [2]*starlark.Dict
		for i, v := range []*view{x, other} {
			pair[i] = new(starlark.Dict)
			if err := c.merge(pair[i], v); err != nil {
				return false, err
			}
		}
		return c.dictsEqual(pair[0], pair[1], depth)
	}
	if n := starlark.Len(y); n != x.Len() {
		return false, nil
	}
	var sets [2]*starlark.Set
	for i, v := range []starlark.Value{x, y} {
		s, err := c.asView(v)
		if refused := (*fault.Exception)(nil); errors.As(err, &refused) { // of what no set can hold
			return false, nil
		}
		if s == nil || err != nil {
			return false, err
		}
		sets[i] = s
	}
	return c.subset(sets[0], sets[1], sets[0].Len() == sets[1].Len())
}

func viewIsDisjoint(c *call) (starlark.Value, error) {
	s, err := c.asSet(c.recv)
	if err != nil {
		return nil, err
	}
	c.recv = s
	return setIsDisjoint(c)
}
