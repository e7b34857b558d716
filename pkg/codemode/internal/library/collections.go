package library

import (
	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"
	"go.starlark.net/syntax"

	"github.com/openenv-go/openenv-go/pkg/codemode/internal/fault"
)

// A kind is what makes a dict a defaultdict or a Counter. It is kept beside the dict, so that it is a dict to all else.
type kind struct {
	counter bool
	factory starlark.Value // of a defaultdict
}

// A state is what the library remembers of a run.
type state struct {
	kinds    map[*starlark.Dict]*kind
	patterns map[string]*pattern
}

const stateKey = "library"

// state is that of the call's run. A run is one thread.
func (c *call) state() *state {
	s, ok := c.thread.Local(stateKey).(*state)
	if !ok {
		s = &state{kinds: map[*starlark.Dict]*kind{}, patterns: map[string]*pattern{}}
		c.thread.SetLocal(stateKey, s)
	}
	return s
}

// kind is that of d; nil for a plain dict.
func (c *call) kind(d *starlark.Dict) *kind {
	s, ok := c.thread.Local(stateKey).(*state)
	if !ok {
		return nil
	}
	return s.kinds[d]
}

func (c *call) setKind(d *starlark.Dict, k *kind) { c.state().kinds[d] = k }

// missing is what a dict that is not plain has for a key that is not there.
func (c *call) missing(d *starlark.Dict, k *kind, key starlark.Value) (starlark.Value, error) {
	if k.counter {
		return starlark.MakeInt(0), nil
	}
	if k.factory == starlark.None {
		return nil, noKey(d, key)
	}
	v, err := c.call(k.factory)
	if err != nil {
		return nil, err
	}
	return v, c.setKey(d, key, v)
}

func (l *library) collections() *starlarkstruct.Module {
	return &starlarkstruct.Module{Name: "collections", Members: starlark.StringDict{
		"Counter":     l.builtin("Counter", counter),
		"defaultdict": l.builtin("defaultdict", defaultDict),
		"OrderedDict": l.builtin("OrderedDict", builtinDict),
		"deque":       l.types["deque"],
	}}
}

func defaultDict(c *call) (starlark.Value, error) {
	k := &kind{factory: starlark.None}
	if len(c.args) > 0 {
		k.factory = c.args[0]
		c.args = c.args[1:]
	}
	if _, ok := k.factory.(starlark.Callable); !ok && k.factory != starlark.None {
		return nil, fault.New("TypeError", "defaultdict: the first argument must be a function, not %s", typeName(k.factory)).
			Hinted("write defaultdict(list), defaultdict(int) or defaultdict(lambda: %s)", Repr(k.factory))
	}
	if len(c.args) > 1 {
		return nil, fault.New("TypeError", "defaultdict: want two arguments at most")
	}
	d := new(starlark.Dict)
	c.setKind(d, k)
	return d, c.update(d)
}

func counter(c *call) (starlark.Value, error) {
	if len(c.args) > 1 {
		return nil, fault.New("TypeError", "Counter: want one argument at most")
	}
	d := new(starlark.Dict)
	c.setKind(d, &kind{counter: true})
	return d, c.tally(d, 1)
}

// tally adds what the arguments count to d, sign times.
func (c *call) tally(d *starlark.Dict, sign int) error {
	one := starlark.MakeInt(1)
	for _, x := range c.args {
		if from, ok := x.(*starlark.Dict); ok {
			if from == d {
				copied := new(starlark.Dict)
				if err := c.merge(copied, d); err != nil {
					return err
				}
				from = copied
			}
			if err := c.entries(from, func(k, n starlark.Value) error { return c.addTo(d, k, n, sign) }); err != nil {
				return err
			}
			continue
		}
		if x == starlark.None {
			continue
		}
		if err := c.each(x, func(k starlark.Value) error { return c.addTo(d, k, one, sign) }); err != nil {
			return err
		}
	}
	for _, kw := range c.kwargs {
		if err := c.addTo(d, kw[0], kw[1], sign); err != nil {
			return err
		}
	}
	return nil
}

func (c *call) addTo(d *starlark.Dict, k, n starlark.Value, sign int) error {
	if err := c.hashable(k); err != nil {
		return err
	}
	old, found, err := d.Get(k)
	if err != nil {
		return c.typeError(err)
	}
	if !found {
		old = starlark.MakeInt(0)
		if sign > 0 {
			return c.setKey(d, k, n)
		}
	}
	op := syntax.PLUS
	if sign < 0 {
		op = syntax.MINUS
	}
	sum, err := c.binary(op, old, n)
	if err != nil {
		return err
	}
	return c.setKey(d, k, sum)
}

// counters is a op b. Only what is counted more than 0 times is in it.
func (c *call) counters(op syntax.Token, a, b *starlark.Dict) (starlark.Value, error) {
	out := new(starlark.Dict)
	c.setKind(out, &kind{counter: true})
	of := func(d *starlark.Dict, k starlark.Value) starlark.Value {
		if n, found, err := d.Get(k); err == nil && found {
			return n
		}
		return starlark.MakeInt(0)
	}
	visit := func(k, _ starlark.Value) error {
		n, m := of(a, k), of(b, k)
		var sum starlark.Value
		var err error
		switch op {
		case syntax.PLUS, syntax.MINUS:
			sum, err = c.binary(op, n, m)
		case syntax.PIPE, syntax.AMP:
			var less bool
			less, err = c.compare(syntax.LT, n, m)
			sum = n
			if less == (op == syntax.PIPE) {
				sum = m
			}
		default:
			return unsupported(op, a, b)
		}
		if err != nil {
			return err
		}
		if positive, err := c.compare(syntax.GT, sum, starlark.MakeInt(0)); err != nil || !positive {
			return err
		}
		return c.setKey(out, k, sum)
	}
	if err := c.entries(a, visit); err != nil {
		return nil, err
	}
	return out, c.entries(b, visit)
}

func (l *library) counterMethods() map[string]function {
	return map[string]function{
		"most_common": counterMostCommon, "elements": counterElements, "subtract": counterSubtract, "total": counterTotal,
	}
}

func counterMostCommon(c *call) (starlark.Value, error) {
	n := starlark.Value(starlark.None)
	if err := c.bind("n?", &n); err != nil {
		return nil, err
	}
	var pairs []starlark.Value
	err := c.entries(c.recv.(*starlark.Dict), func(k, v starlark.Value) error {
		pairs = append(pairs, starlark.Tuple{k, v})
		return nil
	})
	if err != nil {
		return nil, err
	}
	most, err := c.optional(n, "n", len(pairs))
	if err != nil {
		return nil, err
	}
	count := c.builtin("count", func(c *call) (starlark.Value, error) { return c.args[0].(starlark.Tuple)[1], nil })
	if err := c.sort(pairs, count, true); err != nil {
		return nil, err
	}
	return starlark.NewList(pairs[:max(0, min(most, len(pairs)))]), nil
}

func counterElements(c *call) (starlark.Value, error) {
	g := gatherer{call: c}
	err := c.entries(c.recv.(*starlark.Dict), func(k, v starlark.Value) error {
		n, err := c.index(v, "a count")
		if err != nil {
			return err
		}
		if err := c.slots(max(n, 0)); err != nil {
			return err
		}
		for range n {
			if err := c.step(1); err != nil {
				return err
			}
			if err := g.add(k); err != nil {
				return err
			}
		}
		return nil
	})
	return &iterator{g.values}, err
}

func counterSubtract(c *call) (starlark.Value, error) {
	if len(c.args) > 1 {
		return nil, fault.New("TypeError", "subtract: want one argument at most")
	}
	return starlark.None, c.tally(c.recv.(*starlark.Dict), -1)
}

func counterTotal(c *call) (starlark.Value, error) {
	if err := c.take(0); err != nil {
		return nil, err
	}
	total := starlark.Value(starlark.MakeInt(0))
	err := c.entries(c.recv.(*starlark.Dict), func(_, v starlark.Value) (err error) {
		total, err = c.add(total, v)
		return err
	})
	return total, err
}
