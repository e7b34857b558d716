package library

import (
	"slices"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/openenv-go/openenv-go/pkg/codemode/internal/fault"
)

func builtinSum(c *call) (starlark.Value, error) {
	var x starlark.Value
	total := starlark.Value(starlark.MakeInt(0))
	if err := c.bind("iterable", &x, "start?", &total); err != nil {
		return nil, err
	}
	if _, text := total.(starlark.String); text {
		return nil, fault.New("TypeError", "sum: text is not summed").Hinted(`join it: "".join(xs)`)
	}
	whole := 0 // as much of the sum as is a small integer
	err := c.each(x, func(v starlark.Value) error {
		if n, ok := plain(v).(starlark.Int); ok {
			if k, ok := n.Int64(); ok && -1<<40 < k && k < 1<<40 && -1<<60 < whole && whole < 1<<60 {
				if _, ints := total.(starlark.Int); ints {
					whole += int(k)
					return nil
				}
			}
		}
		var err error
		if whole != 0 {
			if total, err = c.binary(syntax.PLUS, total, starlark.MakeInt(whole)); err != nil {
				return err
			}
			whole = 0
		}
		total, err = c.add(total, v)
		return err
	})
	if err != nil || whole == 0 {
		return plain(total), err
	}
	return c.binary(syntax.PLUS, total, starlark.MakeInt(whole))
}

// add is a sum whose error names sum.
func (c *call) add(total, v starlark.Value) (starlark.Value, error) {
	switch plain(v).(type) {
	case starlark.NoneType:
		return nil, fault.New("TypeError", "sum: unsupported operands: %s + NoneType", typeName(total)).
			Hinted("an element is None: sum(x or 0 for x in xs)")
	case starlark.String:
		return nil, fault.New("TypeError", "sum: unsupported operands: %s + string", typeName(total)).
			Hinted(`to join text write "".join(xs); to sum numbers in text, sum(float(x) for x in xs)`)
	case *starlark.List, starlark.Tuple:
		if err := c.slots(starlark.Len(total) + starlark.Len(v)); err != nil {
			return nil, err
		}
	}
	return c.binary(syntax.PLUS, total, v)
}

func builtinMin(c *call) (starlark.Value, error) { return c.extreme(syntax.LT) }
func builtinMax(c *call) (starlark.Value, error) { return c.extreme(syntax.GT) }

// extreme is the first element that stands in the relation op to all others.
func (c *call) extreme(op syntax.Token) (starlark.Value, error) {
	var key, otherwise starlark.Value
	named := call{name: c.name, kwargs: c.kwargs}
	if err := named.bind("key?", &key, "default?", &otherwise); err != nil {
		return nil, err
	}
	var x starlark.Value = c.args
	if len(c.args) == 1 {
		x = c.args[0]
	} else if len(c.args) == 0 || otherwise != nil {
		return nil, fault.New("TypeError", "%s: want an iterable, or two or more values without default", c.name)
	}
	var best, bestKey starlark.Value
	err := c.each(x, func(v starlark.Value) error {
		k, err := c.keyOf(key, v)
		if err != nil {
			return err
		}
		if best != nil {
			if better, err := c.compare(op, k, bestKey); err != nil || !better {
				return err
			}
		}
		best, bestKey = v, k
		return nil
	})
	if err != nil {
		return nil, err
	}
	if best == nil && otherwise == nil {
		return nil, fault.New("ValueError", "%s of an empty %s", c.name, typeName(x)).Hinted("give a default: %s(xs, default=None)", c.name)
	}
	if best == nil {
		return otherwise, nil
	}
	return best, nil
}

func (c *call) keyOf(key, v starlark.Value) (starlark.Value, error) {
	if key == nil || key == starlark.None {
		return v, nil
	}
	return c.call(key, v)
}

func builtinSorted(c *call) (starlark.Value, error) {
	var x, key starlark.Value
	var down starlark.Value = starlark.False
	if len(c.args) > 1 {
		return nil, fault.New("TypeError", "sorted: the key is a keyword argument").Hinted("write sorted(xs, key=f)")
	}
	if err := c.bind("iterable", &x, "key?", &key, "reverse?", &down); err != nil {
		return nil, err
	}
	values, err := c.collect(x)
	if err != nil {
		return nil, err
	}
	if err := c.sort(values, key, bool(down.Truth())); err != nil {
		return nil, err
	}
	return starlark.NewList(values), nil
}

// sort sorts in place, and keeps the order of equals, in reverse too.
func (c *call) sort(values []starlark.Value, key starlark.Value, down bool) error {
	type pair struct{ k, v starlark.Value }
	pairs := make([]pair, len(values))
	for i, v := range values {
		k, err := c.keyOf(key, v)
		if err != nil {
			return err
		}
		pairs[i] = pair{k, v}
	}
	var failed error
	less := func(x, y starlark.Value) bool {
		if failed != nil {
			return false
		}
		yes, err := c.compare(syntax.LT, x, y)
		failed = err
		return yes
	}
	slices.SortStableFunc(pairs, func(x, y pair) int {
		a, b := x.k, y.k
		if down {
			a, b = b, a
		}
		switch {
		case less(a, b):
			return -1
		case less(b, a):
			return 1
		}
		return 0
	})
	for i, p := range pairs {
		values[i] = p.v
	}
	return failed
}
