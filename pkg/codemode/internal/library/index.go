package library

import (
	"slices"
	"strings"
	"unicode/utf8"

	"go.starlark.net/starlark"

	"github.com/openenv-go/openenv-go/pkg/codemode/internal/fault"
)

// hiddenIndex is x[i].
func hiddenIndex(c *call) (starlark.Value, error) {
	x, i := c.args[0], c.args[1]
	switch x := x.(type) {
	case *starlark.Dict:
		return c.lookup(x, i)
	case starlark.String:
		return c.character(string(x), i)
	case *match:
		return x.index(i)
	case starlark.Indexable:
		at, err := c.place(x, i, x.Len())
		if err != nil {
			return nil, err
		}
		return x.Index(at), nil
	case starlark.Mapping:
		v, found, err := x.Get(i)
		if err == nil && !found {
			err = fault.New("KeyError", "%s", Repr(i))
		}
		return v, err
	}
	return nil, notSubscriptable(x, i)
}

func notSubscriptable(x, i starlark.Value) error {
	switch x := x.(type) {
	case starlark.NoneType:
		otherwise := "{}"
		if _, whole := i.(starlark.Int); whole {
			otherwise = "[]"
		}
		return fault.New("TypeError", "None has no [%s]", Repr(i)).
			Hinted("what stands before it is None: test for that, or write (… or %s)[…], or (… or {}).get(…)", otherwise)
	case *starlark.Set:
		return fault.New("TypeError", "a set has no order, and no [%s]", Repr(i)).Hinted("sort it: sorted(s)[0]")
	case *Type:
		return fault.New("TypeError", "type %s has no [%s]", x.name, Repr(i))
	case starlark.Callable:
		return fault.New("TypeError", "%s is a function: it has no [%s]", FunctionName(x), Repr(i)).Hinted("call it first: %s(…)[…]", FunctionName(x))
	}
	return fault.New("TypeError", "%s has no [%s]", typeName(x), Repr(i))
}

// place is where element i of n is.
func (c *call) place(x, i starlark.Value, n int) (int, error) {
	at, ok := asIndex(i)
	if !ok {
		e := fault.New("TypeError", "an index of a %s must be an integer, not %s", typeName(x), typeName(i))
		if s, text := i.(starlark.String); text {
			if s == "result" { // a schema has it around what a tool returns
				return 0, e.Hinted("a tool's value comes as it is: leave [\"result\"] out")
			}
			return 0, e.Hinted("take an element first: xs[0][%s], or loop over them", Repr(s))
		}
		return 0, e
	}
	orig := at
	if at < 0 {
		at += n
	}
	if at >= 0 && at < n {
		return at, nil
	}
	if n == 0 {
		return 0, fault.New("IndexError", "index %d is out of range: the %s is empty", orig, typeName(x)).
			Hinted("test for that first: if xs: …")
	}
	return 0, fault.New("IndexError", "index %d is out of range: the %s has length %d, so the last index is %d", orig, typeName(x), n, n-1)
}

// character is code point i of s.
func (c *call) character(s string, i starlark.Value) (starlark.Value, error) {
	if err := c.scan(len(s) / 8); err != nil {
		return nil, err
	}
	n := utf8.RuneCountInString(s)
	at, err := c.place(starlark.String(s), i, n)
	if err != nil {
		return nil, err
	}
	if n != len(s) {
		at = offset(s, at)
	}
	return starlark.String(s[at : at+runeLen(s[at:])]), nil
}

func (c *call) lookup(d *starlark.Dict, key starlark.Value) (starlark.Value, error) {
	if err := c.hashable(key); err != nil {
		return nil, err
	}
	v, found, err := d.Get(key)
	if err != nil {
		return nil, c.typeError(err)
	}
	if found {
		return v, nil
	}
	if k := c.kind(d); k != nil {
		return c.missing(d, k, key)
	}
	return nil, noKey(d, key)
}

// noKey says which keys there are.
func noKey(d *starlark.Dict, key starlark.Value) error {
	e := fault.New("KeyError", "%s", Repr(key))
	e.Value = key
	if d.Len() == 0 {
		return e.Hinted("the dict is empty; d.get(%s) gives None where a key is missing", Repr(key))
	}
	return e.Hinted("the dict has %s; d.get(%s) gives None where a key is missing", keysOf(d), Repr(key))
}

// keysOf lists the keys of a dict, or the first of them.
func keysOf(d *starlark.Dict) string {
	const most = 20
	var keys []string
	for k := range d.Entries() {
		if len(keys) == most {
			keys = append(keys, "… ("+itoa(d.Len())+" in all)")
			break
		}
		keys = append(keys, Repr(k))
	}
	return strings.Join(keys, ", ")
}

// hiddenSlice is x[a:b:c].
func hiddenSlice(c *call) (starlark.Value, error) {
	x := c.args[0]
	s, text := x.(starlark.String)
	seq, ok := x.(starlark.Sliceable)
	if !ok {
		if x == starlark.None {
			return nil, fault.New("TypeError", "None has no slices").Hinted("what stands before it is None: write (… or [])[…]")
		}
		return nil, fault.New("TypeError", "%s has no slices", typeName(x)).Hinted("make a list of it first: list(x)[…]")
	}
	n := seq.Len()
	ascii := true
	if text {
		if err := c.scan(len(s) / 8); err != nil {
			return nil, err
		}
		n = utf8.RuneCountInString(string(s))
		ascii = n == len(s)
	}
	lo, hi, step, err := c.span(n)
	if err != nil {
		return nil, err
	}
	if lo == hi && !text {
		return emptyLike(seq), nil
	}
	if text {
		if err := c.text(4 * count(lo, hi, step)); err != nil {
			return nil, err
		}
		if step == 1 {
			from := offsetIn(string(s), lo, ascii)
			return s[from : from+offsetIn(string(s[from:]), hi-lo, ascii)], nil
		}
		if !ascii {
			return sliceRunes([]rune(string(s)), lo, hi, step), c.text(4 * n)
		}
	} else if err := c.slots(count(lo, hi, step)); err != nil && typeName(x) != "range" {
		return nil, err
	}
	if err := c.step(count(lo, hi, step) / 8); err != nil {
		return nil, err
	}
	return seq.Slice(lo, hi, step), nil
}

func emptyLike(x starlark.Sliceable) starlark.Value {
	switch x.(type) {
	case *starlark.List:
		return starlark.NewList(nil)
	case starlark.Tuple:
		return starlark.Tuple{}
	}
	return x.Slice(0, 0, 1)
}

// offsetIn is as offset; in ASCII it need not look.
func offsetIn(s string, i int, ascii bool) int {
	if ascii {
		return i
	}
	return offset(s, i)
}

func sliceRunes(runes []rune, lo, hi, step int) starlark.String {
	var b strings.Builder
	for i := lo; step > 0 && i < hi || step < 0 && i > hi; i += step {
		b.WriteRune(runes[i])
	}
	return starlark.String(b.String())
}

// count is how many elements a span has.
func count(lo, hi, step int) int {
	if step < 0 {
		lo, hi, step = hi, lo, -step
	}
	if lo >= hi {
		return 0
	}
	return (hi-lo-1)/step + 1
}

// span is where the slice of c's arguments begins, ends and how it goes, in a row of n. An empty one begins where it ends.
func (c *call) span(n int) (lo, hi, step int, err error) {
	step, err = c.part(3, 1)
	if err != nil {
		return 0, 0, 0, err
	}
	if step == 0 {
		return 0, 0, 0, fault.New("ValueError", "the step of a slice cannot be 0")
	}
	step = max(-n-1, min(step, n+1))
	first, last := 0, n // where the bounds must be
	if step < 0 {
		first, last = -1, n-1
	}
	begin, end := first, last
	if step < 0 {
		begin, end = last, first
	}
	bound := func(k, otherwise int) (int, error) {
		if c.args[k] == starlark.None {
			return otherwise, nil
		}
		i, err := c.part(k, 0)
		if i < 0 {
			i = max(i+n, first)
		}
		return max(first, min(i, last)), err
	}
	if lo, err = bound(1, begin); err != nil {
		return 0, 0, 0, err
	}
	if hi, err = bound(2, end); err != nil {
		return 0, 0, 0, err
	}
	if step > 0 && lo >= hi || step < 0 && lo <= hi {
		lo, hi = max(lo, 0), max(lo, 0)
	}
	return lo, hi, step, nil
}

// part is the bound or step k of a slice.
func (c *call) part(k, otherwise int) (int, error) {
	if c.args[k] == starlark.None {
		return otherwise, nil
	}
	i, ok := asIndex(c.args[k])
	if !ok {
		return 0, fault.New("TypeError", "the bounds of a slice must be integers or None, not %s", typeName(c.args[k])).
			Hinted("write int(…), or // in place of /")
	}
	return i, nil
}

// hiddenSetIndex is x[i] = v; v is the first argument.
func hiddenSetIndex(c *call) (starlark.Value, error) {
	v, x, i := c.args[0], c.args[1], c.args[2]
	switch x := x.(type) {
	case *starlark.Dict:
		return starlark.None, c.setKey(x, i, v)
	case *starlark.List:
		at, err := c.place(x, i, x.Len())
		if err != nil {
			return nil, err
		}
		if err := x.SetIndex(at, v); err != nil {
			return nil, inIteration("list")
		}
		return starlark.None, nil
	case *deque:
		at, err := c.place(x, i, x.Len())
		if err != nil {
			return nil, err
		}
		if err := x.free(); err != nil {
			return nil, err
		}
		*x.at(at) = v
		return starlark.None, nil
	case starlark.String:
		return nil, fault.New("TypeError", "text cannot be changed").Hinted("make a new one: s[:i] + new + s[i+1:], or s.replace(old, new)")
	case starlark.Tuple:
		return nil, fault.New("TypeError", "a tuple cannot be changed").Hinted("make a list of it: list(t)")
	case starlark.HasSetKey:
		return starlark.None, x.SetKey(i, v)
	case starlark.NoneType:
		return nil, fault.New("TypeError", "None has no [%s] to assign to", Repr(i))
	}
	return nil, fault.New("TypeError", "%s has no [%s] to assign to", typeName(x), Repr(i))
}

func (c *call) setKey(d *starlark.Dict, k, v starlark.Value) error {
	if err := c.hashable(k); err != nil {
		return err
	}
	if n := d.Len(); n >= 1024 && n&(n-1) == 0 {
		if err := c.meter.Room(2 * n * entryBytes); err != nil {
			return err
		}
	}
	if err := d.SetKey(k, v); err != nil {
		return inIteration("dict")
	}
	return nil
}

// hiddenDel is del x[i], or of a slice, whose three parts follow x.
func hiddenDel(c *call) (starlark.Value, error) {
	if len(c.args) == 4 {
		return c.deleteSlice()
	}
	x, i := c.args[0], c.args[1]
	switch x := x.(type) {
	case *starlark.Dict:
		if err := c.hashable(i); err != nil {
			return nil, err
		}
		_, found, err := x.Delete(i)
		if err != nil {
			return nil, inIteration("dict")
		}
		if !found {
			return nil, noKey(x, i)
		}
		return starlark.None, nil
	case *starlark.List:
		at, err := c.place(x, i, x.Len())
		if err != nil {
			return nil, err
		}
		return starlark.None, c.splice(x, at, at+1, nil)
	case *deque:
		at, err := c.place(x, i, x.Len())
		if err != nil {
			return nil, err
		}
		return starlark.None, c.set(x, slices.Delete(x.slice(), at, at+1))
	}
	return nil, fault.New("TypeError", "nothing can be deleted from %s", typeName(x))
}

func (c *call) deleteSlice() (starlark.Value, error) {
	x, ok := c.args[0].(*starlark.List)
	if !ok {
		return nil, fault.New("TypeError", "no slice can be deleted from %s", typeName(c.args[0]))
	}
	lo, hi, step, err := c.span(x.Len())
	if err != nil {
		return nil, err
	}
	if step < 0 {
		k := count(lo, hi, step)
		lo, hi, step = lo+(k-1)*step, lo+1, -step
	}
	var rest []starlark.Value
	for i := range x.Len() {
		if i < lo || i >= hi || (i-lo)%step != 0 {
			rest = append(rest, x.Index(i))
		}
	}
	return starlark.None, c.splice(x, 0, x.Len(), rest)
}
