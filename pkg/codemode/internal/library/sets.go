package library

import (
	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/openenv-go/openenv-go/pkg/codemode/internal/fault"
)

func (l *library) setMethods() map[string]function {
	return map[string]function{
		"add": setAdd, "clear": setClear, "copy": setCopy, "discard": setDiscard, "pop": setPop, "remove": setRemove,
		"union": setUnion, "update": setUpdate, "isdisjoint": setIsDisjoint, "issubset": setIsSubset, "issuperset": setIsSuperset,
		"difference": fold(syntax.MINUS), "intersection": fold(syntax.AMP), "symmetric_difference": fold(syntax.CIRCUMFLEX),
		"difference_update": foldInto(syntax.MINUS), "intersection_update": foldInto(syntax.AMP),
		"symmetric_difference_update": foldInto(syntax.CIRCUMFLEX),
	}
}

// sets is a op b; nil where sets have no such operator.
func (c *call) sets(op syntax.Token, a, b *starlark.Set) (starlark.Value, error) {
	out := new(starlark.Set)
	var from []*starlark.Set
	var keep func(k starlark.Value) (bool, error)
	switch op {
	case syntax.PIPE:
		from, keep = []*starlark.Set{a, b}, func(starlark.Value) (bool, error) { return true, nil }
	case syntax.AMP:
		from, keep = []*starlark.Set{a}, b.Has
	case syntax.MINUS:
		from, keep = []*starlark.Set{a}, func(k starlark.Value) (bool, error) {
			has, err := b.Has(k)
			return !has, err
		}
	case syntax.CIRCUMFLEX:
		from, keep = []*starlark.Set{a, b}, func(k starlark.Value) (bool, error) {
			left, err := a.Has(k)
			if err != nil {
				return false, err
			}
			right, err := b.Has(k)
			return left != right, err
		}
	default:
		return nil, nil
	}
	for _, s := range from {
		err := c.each(s, func(k starlark.Value) error {
			if yes, err := keep(k); err != nil || !yes {
				return c.typeError(err)
			}
			return c.insert(out, k)
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// asSet is x as a set.
func (c *call) asSet(x starlark.Value) (*starlark.Set, error) {
	if s, ok := x.(*starlark.Set); ok {
		return s, nil
	}
	s := new(starlark.Set)
	return s, c.insertAll(s, x)
}

// folded is the receiver with an operator applied to each argument in turn.
func (c *call) folded(op syntax.Token) (*starlark.Set, error) {
	if len(c.kwargs) > 0 {
		return nil, c.take(0)
	}
	acc := c.recv.(*starlark.Set)
	for _, x := range c.args {
		s, err := c.asSet(x)
		if err != nil {
			return nil, err
		}
		v, err := c.sets(op, acc, s)
		if err != nil {
			return nil, err
		}
		acc = v.(*starlark.Set)
	}
	return acc, nil
}

func fold(op syntax.Token) function {
	return func(c *call) (starlark.Value, error) {
		s, err := c.folded(op)
		if err != nil {
			return nil, err
		}
		if s == c.recv {
			return setCopy(&call{library: c.library, meter: c.meter, name: c.name, recv: s})
		}
		return s, nil
	}
}

func foldInto(op syntax.Token) function {
	return func(c *call) (starlark.Value, error) {
		s, err := c.folded(op)
		if err != nil {
			return nil, err
		}
		recv := c.recv.(*starlark.Set)
		if s == recv {
			return starlark.None, nil
		}
		if err := recv.Clear(); err != nil {
			return nil, inIteration("set")
		}
		return starlark.None, c.insertAll(recv, s)
	}
}

func setUnion(c *call) (starlark.Value, error) {
	if len(c.kwargs) > 0 {
		return nil, c.take(0)
	}
	out := new(starlark.Set)
	for _, x := range append(starlark.Tuple{c.recv}, c.args...) {
		if err := c.insertAll(out, x); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func setUpdate(c *call) (starlark.Value, error) {
	if len(c.kwargs) > 0 {
		return nil, c.take(0)
	}
	s := c.recv.(*starlark.Set)
	for _, x := range c.args {
		if x == c.recv {
			continue
		}
		if err := c.insertAll(s, x); err != nil {
			return nil, err
		}
	}
	return starlark.None, nil
}

func setAdd(c *call) (starlark.Value, error) {
	var v starlark.Value
	if err := c.take(1, &v); err != nil {
		return nil, err
	}
	return starlark.None, c.insert(c.recv.(*starlark.Set), v)
}

func setClear(c *call) (starlark.Value, error) {
	if err := c.take(0); err != nil {
		return nil, err
	}
	if err := c.recv.(*starlark.Set).Clear(); err != nil {
		return nil, inIteration("set")
	}
	return starlark.None, nil
}

func setCopy(c *call) (starlark.Value, error) {
	if err := c.take(0); err != nil {
		return nil, err
	}
	out := new(starlark.Set)
	return out, c.insertAll(out, c.recv)
}

// drop takes v out, and tells whether it was there.
func (c *call) drop() (starlark.Value, bool, error) {
	var v starlark.Value
	if err := c.take(1, &v); err != nil {
		return nil, false, err
	}
	if err := c.hashable(v); err != nil {
		return nil, false, err
	}
	found, err := c.recv.(*starlark.Set).Delete(v)
	if err != nil {
		return nil, false, inIteration("set")
	}
	return v, found, nil
}

func setDiscard(c *call) (starlark.Value, error) {
	_, _, err := c.drop()
	return starlark.None, err
}

func setRemove(c *call) (starlark.Value, error) {
	v, found, err := c.drop()
	if err == nil && !found {
		err = fault.New("KeyError", "%s", Repr(v)).Hinted("it is not in the set; discard does not mind")
	}
	return starlark.None, err
}

func setPop(c *call) (starlark.Value, error) {
	if err := c.take(0); err != nil {
		return nil, err
	}
	s := c.recv.(*starlark.Set)
	iter := s.Iterate()
	var k starlark.Value
	some := iter.Next(&k)
	iter.Done() // a set that is walked cannot be changed
	if !some {
		return nil, fault.New("KeyError", "pop: the set is empty")
	}
	if _, err := s.Delete(k); err != nil {
		return nil, inIteration("set")
	}
	return k, nil
}

// relate tells of the receiver and the only argument, as a set.
func (c *call) relate(f func(s, other *starlark.Set) (bool, error)) (starlark.Value, error) {
	var x starlark.Value
	if err := c.take(1, &x); err != nil {
		return nil, err
	}
	other, err := c.asSet(x)
	if err != nil {
		return nil, err
	}
	yes, err := f(c.recv.(*starlark.Set), other)
	return starlark.Bool(yes), err
}

func setIsSubset(c *call) (starlark.Value, error) {
	return c.relate(func(s, other *starlark.Set) (bool, error) { return c.subset(s, other, true) })
}

func setIsSuperset(c *call) (starlark.Value, error) {
	return c.relate(func(s, other *starlark.Set) (bool, error) { return c.subset(other, s, true) })
}

func setIsDisjoint(c *call) (starlark.Value, error) {
	return c.relate(func(s, other *starlark.Set) (bool, error) {
		common, err := c.sets(syntax.AMP, s, other)
		if err != nil {
			return false, err
		}
		return common.(*starlark.Set).Len() == 0, nil
	})
}
