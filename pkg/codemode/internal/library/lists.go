package library

import (
	"go.starlark.net/starlark"

	"github.com/openenv-go/openenv-go/pkg/codemode/internal/fault"
)

func (l *library) listMethods() map[string]function {
	return map[string]function{
		"append": listAppend, "clear": listClear, "copy": listCopy, "count": listCount, "extend": listExtend, "index": listIndex,
		"insert": listInsert, "pop": listPop, "remove": listRemove, "reverse": listReverse, "sort": listSort,
	}
}

func (l *library) tupleMethods() map[string]function {
	return map[string]function{"count": listCount, "index": listIndex}
}

// splice puts values in place of the elements from lo to hi.
func (c *call) splice(x *starlark.List, lo, hi int, values []starlark.Value) error {
	n := x.Len()
	if err := c.step((n - lo + len(values)) / 16); err != nil {
		return err
	}
	tail := make([]starlark.Value, 0, n-hi)
	for i := hi; i < n; i++ {
		tail = append(tail, x.Index(i))
	}
	head := make([]starlark.Value, 0, lo)
	for i := range lo {
		head = append(head, x.Index(i))
	}
	if err := x.Clear(); err != nil {
		return inIteration("list")
	}
	for _, part := range [][]starlark.Value{head, values, tail} {
		for _, v := range part {
			if err := x.Append(v); err != nil {
				return inIteration("list")
			}
		}
	}
	return nil
}

func listAppend(c *call) (starlark.Value, error) {
	var v starlark.Value
	if err := c.take(1, &v); err != nil {
		return nil, err
	}
	x := c.recv.(*starlark.List)
	if n := x.Len(); n >= 1024 && n&(n-1) == 0 {
		if err := c.slots(2 * n); err != nil {
			return nil, err
		}
	}
	if err := x.Append(v); err != nil {
		return nil, inIteration("list")
	}
	return starlark.None, nil
}

func listClear(c *call) (starlark.Value, error) {
	if err := c.take(0); err != nil {
		return nil, err
	}
	if err := c.recv.(*starlark.List).Clear(); err != nil {
		return nil, inIteration("list")
	}
	return starlark.None, nil
}

func listCopy(c *call) (starlark.Value, error) {
	if err := c.take(0); err != nil {
		return nil, err
	}
	values, err := c.collect(c.recv)
	return starlark.NewList(values), err
}

func listCount(c *call) (starlark.Value, error) {
	var v starlark.Value
	if err := c.take(1, &v); err != nil {
		return nil, err
	}
	n := 0
	err := c.each(c.recv, func(e starlark.Value) error {
		yes, err := c.equal(e, v)
		if yes {
			n++
		}
		return err
	})
	return starlark.MakeInt(n), err
}

func listExtend(c *call) (starlark.Value, error) {
	var x starlark.Value
	if err := c.take(1, &x); err != nil {
		return nil, err
	}
	values, err := c.collect(x)
	if err != nil {
		return nil, err
	}
	list := c.recv.(*starlark.List)
	if err := c.slots(list.Len() + len(values)); err != nil {
		return nil, err
	}
	for _, v := range values {
		if err := list.Append(v); err != nil {
			return nil, inIteration("list")
		}
	}
	return starlark.None, nil
}

func listIndex(c *call) (starlark.Value, error) {
	var v, start, end starlark.Value
	if err := c.take(1, &v, &start, &end); err != nil {
		return nil, err
	}
	row := c.recv.(starlark.Indexable)
	lo, hi, err := c.bounds(start, end, row.Len())
	if err != nil {
		return nil, err
	}
	for i := lo; i < min(hi, row.Len()); i++ {
		if yes, err := c.equal(row.Index(i), v); err != nil || yes {
			return starlark.MakeInt(i), err
		}
	}
	return nil, fault.New("ValueError", "index: %s is not in the %s", Repr(v), typeName(c.recv)).Hinted("test for it first: if x in xs")
}

func listInsert(c *call) (starlark.Value, error) {
	var i, v starlark.Value
	if err := c.take(2, &i, &v); err != nil {
		return nil, err
	}
	at, err := c.index(i, "the index")
	if err != nil {
		return nil, err
	}
	x := c.recv.(*starlark.List)
	at = min(clamp(at, x.Len()), x.Len())
	return starlark.None, c.splice(x, at, at, []starlark.Value{v})
}

func listPop(c *call) (starlark.Value, error) {
	var i starlark.Value = starlark.MakeInt(-1)
	if err := c.take(0, &i); err != nil {
		return nil, err
	}
	x := c.recv.(*starlark.List)
	if x.Len() == 0 {
		return nil, fault.New("IndexError", "pop: the list is empty").Hinted("test for that first: if xs: …")
	}
	at, err := c.place(x, i, x.Len())
	if err != nil {
		return nil, err
	}
	// Starlark's own pop is quick at the end.
	pop, err := x.Attr("pop")
	if err != nil {
		return nil, err
	}
	if err := c.step((x.Len() - at) / 16); err != nil {
		return nil, err
	}
	v, err := starlark.Call(c.thread, pop, starlark.Tuple{starlark.MakeInt(at)}, nil)
	if err != nil {
		return nil, inIteration("list")
	}
	return v, nil
}

func listRemove(c *call) (starlark.Value, error) {
	var v starlark.Value
	if err := c.take(1, &v); err != nil {
		return nil, err
	}
	x := c.recv.(*starlark.List)
	for i := range x.Len() {
		if yes, err := c.equal(x.Index(i), v); err != nil {
			return nil, err
		} else if yes {
			return starlark.None, c.splice(x, i, i+1, nil)
		}
	}
	return nil, fault.New("ValueError", "remove: %s is not in the list", Repr(v))
}

func listReverse(c *call) (starlark.Value, error) {
	if err := c.take(0); err != nil {
		return nil, err
	}
	values, err := c.collect(c.recv)
	if err != nil {
		return nil, err
	}
	reverse(values)
	return starlark.None, c.replaceAll(values)
}

func listSort(c *call) (starlark.Value, error) {
	var key starlark.Value
	var down starlark.Value = starlark.False
	if len(c.args) > 0 {
		return nil, fault.New("TypeError", "sort: the key is a keyword argument").Hinted("write xs.sort(key=f)")
	}
	if err := c.bind("key?", &key, "reverse?", &down); err != nil {
		return nil, err
	}
	values, err := c.collect(c.recv)
	if err != nil {
		return nil, err
	}
	if err := c.sort(values, key, bool(down.Truth())); err != nil {
		return nil, err
	}
	return starlark.None, c.replaceAll(values)
}

// replaceAll gives the list that a method was called on other elements.
func (c *call) replaceAll(values []starlark.Value) error {
	x := c.recv.(*starlark.List)
	return c.splice(x, 0, x.Len(), values)
}
