package library

import (
	"go.starlark.net/starlark"

	"github.com/openenv-go/openenv-go/pkg/codemode/internal/fault"
)

// iterable is what a loop over v goes through: characters of text, else v itself.
func iterable(v starlark.Value) (starlark.Iterable, error) {
	switch v := v.(type) {
	case starlark.String:
		return characters(v), nil
	case starlark.Iterable:
		return v, nil
	case starlark.NoneType:
		return nil, fault.New("TypeError", "None is not iterable").Hinted("the value may be missing: loop over (x or [])")
	case starlark.Int:
		return nil, fault.New("TypeError", "int is not iterable").Hinted("to count, loop over range(n)")
	default:
		return nil, fault.New("TypeError", "%s is not iterable", typeName(v))
	}
}

func hiddenIter(c *call) (starlark.Value, error) { return iterable(c.args[0]) }

// each visits the elements of x, and charges for them.
func (c *call) each(x starlark.Value, visit func(starlark.Value) error) error {
	it, err := iterable(x)
	if err != nil {
		return err
	}
	iter := it.Iterate()
	defer iter.Done()
	for v := starlark.Value(nil); iter.Next(&v); {
		if err := c.step(1); err != nil {
			return err
		}
		if err := visit(v); err != nil {
			return err
		}
	}
	return nil
}

// A gatherer is a list that grows within bounds.
type gatherer struct {
	*call
	values []starlark.Value
}

func (g *gatherer) add(v starlark.Value) error {
	if len(g.values) == cap(g.values) && len(g.values) >= 1024 {
		if err := g.slots(2 * len(g.values)); err != nil {
			return err
		}
	}
	g.values = append(g.values, v)
	return nil
}

// collect is the elements of x, in a slice of its own.
func (c *call) collect(x starlark.Value) ([]starlark.Value, error) {
	g := gatherer{call: c}
	if _, text := x.(starlark.String); !text {
		if n := starlark.Len(x); n > 0 {
			if err := c.slots(n); err != nil {
				return nil, err
			}
			g.values = make([]starlark.Value, 0, n)
		}
	}
	if err := c.each(x, g.add); err != nil {
		return nil, err
	}
	return g.values, nil
}

// characters are the code points of a text, as texts.
type characters starlark.String

func (s characters) String() string             { return starlark.String(s).String() }
func (s characters) Type() string               { return "characters" }
func (s characters) Freeze()                    {}
func (s characters) Truth() starlark.Bool       { return len(s) > 0 }
func (s characters) Hash() (uint32, error)      { return starlark.String(s).Hash() }
func (s characters) Iterate() starlark.Iterator { return &characterIterator{string(s)} }

type characterIterator struct{ rest string }

func (it *characterIterator) Next(p *starlark.Value) bool {
	if it.rest == "" {
		return false
	}
	n := runeLen(it.rest)
	*p = starlark.String(it.rest[:n])
	it.rest = it.rest[n:]
	return true
}

func (*characterIterator) Done() {}

// An iterator is what iter gives, a generator expression, map and their like: next takes from it, and so does a loop. All of it
// is made at once, so that it knows how many are left, and by index what they are.
type iterator struct {
	values []starlark.Value
}

func (i *iterator) String() string       { return "<iterator>" }
func (i *iterator) Type() string         { return "iterator" }
func (i *iterator) Freeze()              {}
func (i *iterator) Truth() starlark.Bool { return true }
func (i *iterator) Hash() (uint32, error) {
	return 0, fault.New("TypeError", "unhashable type: iterator")
}
func (i *iterator) Iterate() starlark.Iterator { return i }
func (i *iterator) Done()                      {}
func (i *iterator) Len() int                   { return len(i.values) }
func (i *iterator) Index(k int) starlark.Value { return i.values[k] }

// Slice gives a list.
func (i *iterator) Slice(start, end, step int) starlark.Value {
	return starlark.NewList(starlark.Tuple(i.values).Slice(start, end, step).(starlark.Tuple))
}

// hiddenGenerator makes an iterator of the list that a generator expression was lowered to.
func hiddenGenerator(c *call) (starlark.Value, error) {
	list := c.args[0].(*starlark.List)
	values := make([]starlark.Value, list.Len())
	for i := range values {
		values[i] = list.Index(i)
	}
	return &iterator{values}, c.step(list.Len() / 16)
}

func (i *iterator) Next(p *starlark.Value) bool {
	if len(i.values) == 0 {
		return false
	}
	*p = i.values[0]
	i.values[0] = nil
	i.values = i.values[1:]
	return true
}

func builtinIter(c *call) (starlark.Value, error) {
	var x starlark.Value
	if err := c.take(1, &x); err != nil {
		return nil, err
	}
	if it, ok := x.(*iterator); ok {
		return it, nil
	}
	values, err := c.collect(x)
	if err != nil {
		return nil, err
	}
	return &iterator{values}, nil
}

// builtinNext takes the next of an iterator.
func builtinNext(c *call) (starlark.Value, error) {
	var x, otherwise starlark.Value
	if err := c.take(1, &x, &otherwise); err != nil {
		return nil, err
	}
	it, ok := x.(*iterator)
	if !ok {
		_, err := iterable(x)
		if err != nil {
			return nil, err
		}
		return nil, fault.New("TypeError", "next: a %s is no iterator", typeName(x)).Hinted("make one of it: next(iter(xs)); the first element is xs[0]")
	}
	var v starlark.Value
	if it.Next(&v) {
		return v, nil
	}
	if otherwise == nil {
		return nil, fault.New("StopIteration", "next: there is nothing left").Hinted("give a default: next(xs, None)")
	}
	return otherwise, nil
}

func builtinEnumerate(c *call) (starlark.Value, error) {
	var x starlark.Value
	start := starlark.Value(starlark.MakeInt(0))
	if err := c.bind("iterable", &x, "start?", &start); err != nil {
		return nil, err
	}
	i, ok := start.(starlark.Int)
	if !ok {
		return nil, fault.New("TypeError", "enumerate: start must be an integer, not %s", typeName(start))
	}
	g, err := c.gather(x, 4)
	if err != nil {
		return nil, err
	}
	one := starlark.MakeInt(1)
	err = c.each(x, func(v starlark.Value) error {
		pair := starlark.Tuple{i, v}
		i = i.Add(one)
		return g.add(pair)
	})
	return &iterator{g.values}, err
}

// gather is an empty list for what is made of the elements of x, each of which needs so many words.
func (c *call) gather(x starlark.Value, words int) (*gatherer, error) {
	if n := starlark.Len(x); n > 0 && n < 1<<40 {
		if err := c.slots(n * words); err != nil {
			return nil, err
		}
	} else if n > 0 {
		if err := c.slots(n); err != nil {
			return nil, err
		}
	}
	return &gatherer{call: c}, nil
}

func builtinZip(c *call) (starlark.Value, error) {
	var strict starlark.Value = starlark.False
	for _, kw := range c.kwargs {
		if kw[0] != starlark.String("strict") {
			return nil, fault.New("TypeError", "zip: unexpected keyword argument %s", kw[0])
		}
		strict = kw[1]
	}
	iters := make([]starlark.Iterator, len(c.args))
	defer func() {
		for _, it := range iters {
			if it != nil {
				it.Done()
			}
		}
	}()
	for i, x := range c.args {
		it, err := iterable(x)
		if err != nil {
			return nil, err
		}
		iters[i] = it.Iterate()
	}
	g := gatherer{call: c}
	for len(iters) > 0 {
		if err := c.step(1 + len(iters)); err != nil {
			return nil, err
		}
		row := make(starlark.Tuple, len(iters))
		for i, it := range iters {
			if it.Next(&row[i]) {
				continue
			}
			if bool(strict.Truth()) && uneven(iters, i) {
				return nil, fault.New("ValueError", "zip: the arguments have different lengths")
			}
			return &iterator{g.values}, nil
		}
		if err := g.add(row); err != nil {
			return nil, err
		}
	}
	return &iterator{g.values}, nil
}

// uneven tells whether iterators that are as far as iters[i], which has ended, have more.
func uneven(iters []starlark.Iterator, i int) bool {
	var v starlark.Value
	for _, it := range iters[i+1:] {
		if it.Next(&v) {
			return true
		}
	}
	return i > 0
}

func builtinMap(c *call) (starlark.Value, error) {
	if len(c.args) < 2 || len(c.kwargs) > 0 {
		return nil, fault.New("TypeError", "map: want a function and one or more iterables")
	}
	f := c.args[0]
	if len(c.args) == 2 {
		g := gatherer{call: c}
		err := c.each(c.args[1], func(v starlark.Value) error {
			y, err := c.call(f, v)
			if err != nil {
				return err
			}
			return g.add(y)
		})
		return &iterator{g.values}, err
	}
	zip := *c
	zip.args = c.args[1:]
	rows, err := builtinZip(&zip)
	if err != nil {
		return nil, err
	}
	values := rows.(*iterator).values
	for i, row := range values {
		if values[i], err = c.call(f, row.(starlark.Tuple)...); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

func builtinFilter(c *call) (starlark.Value, error) {
	var f, x starlark.Value
	if err := c.take(2, &f, &x); err != nil {
		return nil, err
	}
	g := gatherer{call: c}
	err := c.each(x, func(v starlark.Value) error {
		keep := v
		if f != starlark.None {
			var err error
			if keep, err = c.call(f, v); err != nil {
				return err
			}
		}
		if !keep.Truth() {
			return nil
		}
		return g.add(v)
	})
	return &iterator{g.values}, err
}

func builtinReversed(c *call) (starlark.Value, error) {
	var x starlark.Value
	if err := c.take(1, &x); err != nil {
		return nil, err
	}
	if _, set := x.(*starlark.Set); set {
		return nil, fault.New("TypeError", "a set has no order to reverse").Hinted("sort it: sorted(s, reverse=True)")
	}
	values, err := c.collect(x)
	if err != nil {
		return nil, err
	}
	reverse(values)
	return &iterator{values}, nil
}

func reverse(values []starlark.Value) {
	for i, j := 0, len(values)-1; i < j; i, j = i+1, j-1 {
		values[i], values[j] = values[j], values[i]
	}
}

func builtinAll(c *call) (starlark.Value, error) { return c.found(false) }
func builtinAny(c *call) (starlark.Value, error) { return c.found(true) }

// found tells whether there is an element whose truth is want; of all, the reverse.
func (c *call) found(want starlark.Bool) (starlark.Value, error) {
	var x starlark.Value
	if err := c.take(1, &x); err != nil {
		return nil, err
	}
	it, err := iterable(x)
	if err != nil {
		return nil, err
	}
	iter := it.Iterate()
	defer iter.Done()
	for v := starlark.Value(nil); iter.Next(&v); {
		if err := c.step(1); err != nil {
			return nil, err
		}
		if v.Truth() == want {
			return want, nil
		}
	}
	return !want, nil
}

// hiddenUnpack is the values of a target with a star: before and after are how many names there are on either side of it.
func hiddenUnpack(c *call) (starlark.Value, error) {
	values, err := c.collect(c.args[0])
	if err != nil {
		return nil, err
	}
	before, _ := asIndex(c.args[1])
	after, _ := asIndex(c.args[2])
	if len(values) < before+after {
		return nil, fault.New("ValueError", "not enough values to unpack: %d, want at least %d", len(values), before+after)
	}
	row := append(starlark.Tuple{}, values[:before]...)
	star := append([]starlark.Value{}, values[before:len(values)-after]...)
	row = append(row, starlark.NewList(star))
	return append(row, values[len(values)-after:]...), nil
}

// hiddenConcat is the list of all elements of all arguments: a display with stars.
func hiddenConcat(c *call) (starlark.Value, error) {
	g := gatherer{call: c}
	for _, x := range c.args {
		if err := c.each(x, g.add); err != nil {
			return nil, err
		}
	}
	return starlark.NewList(g.values), nil
}
