package library

import (
	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/openenv-go/openenv-go/pkg/codemode/internal/fault"
)

func (l *library) dictMethods() map[string]function {
	return map[string]function{
		"clear": dictClear, "copy": dictCopy, "fromkeys": dictFromKeys, "move_to_end": dictMoveToEnd, "get": dictGet, "items": dictItems, "keys": dictKeys,
		"pop": dictPop, "popitem": dictPopItem, "setdefault": dictSetDefault, "update": dictUpdate, "values": dictValues,
	}
}

func builtinDict(c *call) (starlark.Value, error) {
	d := new(starlark.Dict)
	if len(c.args) > 1 {
		return nil, fault.New("TypeError", "dict: want one argument at most, not %d", len(c.args))
	}
	return d, c.update(d)
}

// update puts what the arguments of dict and update hold into d.
func (c *call) update(d *starlark.Dict) error {
	for _, x := range c.args {
		if err := c.merge(d, x); err != nil {
			return err
		}
	}
	for _, kw := range c.kwargs {
		if err := c.setKey(d, kw[0], kw[1]); err != nil {
			return err
		}
	}
	return nil
}

func (c *call) merge(d *starlark.Dict, x starlark.Value) error {
	if from, ok := x.(*starlark.Dict); ok {
		if from == d {
			return nil
		}
		return c.entries(from, func(k, v starlark.Value) error { return c.setKey(d, k, v) })
	}
	if n := starlark.Len(x); n > 1024 {
		if err := c.meter.Room(min(n, 1<<40) * wordBytes); err != nil {
			return err
		}
	}
	at := 0
	return c.each(x, func(pair starlark.Value) error {
		it, err := iterable(pair)
		if err != nil {
			return fault.New("TypeError", "%s: want pairs of key and value; element %d is %s", c.name, at, Repr(pair))
		}
		at++
		iter := it.Iterate()
		defer iter.Done()
		var k, v, more starlark.Value
		if !iter.Next(&k) || !iter.Next(&v) || iter.Next(&more) {
			return fault.New("ValueError", "%s: want pairs of key and value; element %d is %s", c.name, at-1, Repr(pair))
		}
		return c.setKey(d, k, v)
	})
}

// entries visits what a dict holds, and charges for it.
func (c *call) entries(d *starlark.Dict, visit func(k, v starlark.Value) error) error {
	for k, v := range d.Entries() {
		if err := c.step(1); err != nil {
			return err
		}
		if err := visit(k, v); err != nil {
			return err
		}
	}
	return nil
}

// hiddenDict is a display with stars: the union of its arguments.
func hiddenDict(c *call) (starlark.Value, error) {
	d := new(starlark.Dict)
	for _, x := range c.args {
		from, ok := x.(*starlark.Dict)
		if !ok {
			e := fault.New("TypeError", "** wants a dict, not %s", typeName(x))
			if x == starlark.None {
				return nil, e.Hinted("the value may be missing: {**(x or {})}")
			}
			return nil, e
		}
		if err := c.merge(d, from); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// hiddenKeywords is what goes into a call by two stars.
func hiddenKeywords(c *call) (starlark.Value, error) {
	v, err := hiddenDict(c)
	if err != nil {
		return nil, err
	}
	for k := range v.(*starlark.Dict).Entries() {
		if _, ok := k.(starlark.String); !ok {
			return nil, fault.New("TypeError", "an argument is named by text, not by %s", Repr(k))
		}
	}
	return v, nil
}

// dicts merges dicts, and reckons with Counters.
func (c *call) dicts(op syntax.Token, a, b *starlark.Dict) (starlark.Value, error) {
	if k := c.kind(a); k != nil && k.counter && op != syntax.SLASH {
		return c.counters(op, a, b)
	}
	if op != syntax.PIPE {
		return nil, nil
	}
	d := new(starlark.Dict)
	if err := c.merge(d, a); err != nil {
		return nil, err
	}
	if k := c.kind(a); k != nil {
		c.setKind(d, k)
	}
	return d, c.merge(d, b)
}

func dictClear(c *call) (starlark.Value, error) {
	if err := c.take(0); err != nil {
		return nil, err
	}
	if err := c.recv.(*starlark.Dict).Clear(); err != nil {
		return nil, inIteration("dict")
	}
	return starlark.None, nil
}

func dictCopy(c *call) (starlark.Value, error) {
	if err := c.take(0); err != nil {
		return nil, err
	}
	d := c.recv.(*starlark.Dict)
	twin := new(starlark.Dict)
	if k := c.kind(d); k != nil {
		c.setKind(twin, k)
	}
	return twin, c.merge(twin, d)
}

func dictFromKeys(c *call) (starlark.Value, error) {
	var x starlark.Value
	v := starlark.Value(starlark.None)
	if err := c.take(1, &x, &v); err != nil {
		return nil, err
	}
	d := new(starlark.Dict)
	return d, c.each(x, func(k starlark.Value) error { return c.setKey(d, k, v) })
}

func dictGet(c *call) (starlark.Value, error) {
	var k starlark.Value
	otherwise := starlark.Value(starlark.None)
	if err := c.take(1, &k, &otherwise); err != nil {
		return nil, err
	}
	if err := c.hashable(k); err != nil {
		return nil, err
	}
	v, found, err := c.recv.(*starlark.Dict).Get(k)
	if err != nil {
		return nil, c.typeError(err)
	}
	if !found {
		return otherwise, nil
	}
	return v, nil
}

func (c *call) rowOf(words int, each func(k, v starlark.Value) starlark.Value) ([]starlark.Value, error) {
	if err := c.take(0); err != nil {
		return nil, err
	}
	d := c.recv.(*starlark.Dict)
	if err := c.slots(words * d.Len()); err != nil {
		return nil, err
	}
	values := make([]starlark.Value, 0, d.Len())
	err := c.entries(d, func(k, v starlark.Value) error {
		values = append(values, each(k, v))
		return nil
	})
	return values, err
}

func dictItems(c *call) (starlark.Value, error) {
	row, err := c.rowOf(4, func(k, v starlark.Value) starlark.Value { return starlark.Tuple{k, v} })
	return &view{row, itemsView}, err
}

func dictKeys(c *call) (starlark.Value, error) {
	row, err := c.rowOf(1, func(k, _ starlark.Value) starlark.Value { return k })
	return &view{row, keysView}, err
}

func dictValues(c *call) (starlark.Value, error) {
	row, err := c.rowOf(1, func(_, v starlark.Value) starlark.Value { return v })
	return starlark.NewList(row), err
}

func dictPop(c *call) (starlark.Value, error) {
	var k, otherwise starlark.Value
	if err := c.take(1, &k, &otherwise); err != nil {
		return nil, err
	}
	if err := c.hashable(k); err != nil {
		return nil, err
	}
	d := c.recv.(*starlark.Dict)
	v, found, err := d.Delete(k)
	switch {
	case err != nil:
		return nil, inIteration("dict")
	case found:
		return v, nil
	case otherwise == nil:
		return nil, noKey(d, k)
	}
	return otherwise, nil
}

// dictPopItem takes the last entry, as in Python. (Starlark's takes the first.)
func dictPopItem(c *call) (starlark.Value, error) {
	last := starlark.Value(starlark.True)
	if err := c.bind("last?", &last); err != nil {
		return nil, err
	}
	d := c.recv.(*starlark.Dict)
	if d.Len() == 0 {
		return nil, fault.New("KeyError", "popitem: the dict is empty")
	}
	if last.Truth() {
		if err := c.step(d.Len() / 4); err != nil {
			return nil, err
		}
	}
	var k starlark.Value
	for key := range d.Entries() {
		k = key
		if !last.Truth() {
			break
		}
	}
	v, _, err := d.Delete(k)
	if err != nil {
		return nil, inIteration("dict")
	}
	return starlark.Tuple{k, v}, nil
}

// dictMoveToEnd is that of an OrderedDict.
func dictMoveToEnd(c *call) (starlark.Value, error) {
	var k starlark.Value
	last := starlark.Value(starlark.True)
	if err := c.bind("key", &k, "last?", &last); err != nil {
		return nil, err
	}
	if err := c.hashable(k); err != nil {
		return nil, err
	}
	d := c.recv.(*starlark.Dict)
	v, found, err := d.Get(k)
	if err != nil {
		return nil, c.typeError(err)
	}
	if !found {
		return nil, noKey(d, k)
	}
	rest := new(starlark.Dict)
	if !last.Truth() {
		if err := c.merge(rest, d); err != nil {
			return nil, err
		}
		if err := d.Clear(); err != nil {
			return nil, inIteration("dict")
		}
	}
	if _, _, err := d.Delete(k); err != nil {
		return nil, inIteration("dict")
	}
	if err := c.setKey(d, k, v); err != nil {
		return nil, err
	}
	return starlark.None, c.entries(rest, func(k, v starlark.Value) error {
		if _, there, _ := d.Get(k); there {
			return nil
		}
		return c.setKey(d, k, v)
	})
}

func dictSetDefault(c *call) (starlark.Value, error) {
	var k starlark.Value
	v := starlark.Value(starlark.None)
	if err := c.take(1, &k, &v); err != nil {
		return nil, err
	}
	if err := c.hashable(k); err != nil {
		return nil, err
	}
	d := c.recv.(*starlark.Dict)
	if old, found, err := d.Get(k); err != nil || found {
		return old, c.typeError(err)
	}
	return v, c.setKey(d, k, v)
}

func dictUpdate(c *call) (starlark.Value, error) {
	d := c.recv.(*starlark.Dict)
	if len(c.args) > 1 {
		return nil, fault.New("TypeError", "update: want one argument at most, not %d", len(c.args))
	}
	if k := c.kind(d); k != nil && k.counter {
		return starlark.None, c.tally(d, 1)
	}
	return starlark.None, c.update(d)
}
