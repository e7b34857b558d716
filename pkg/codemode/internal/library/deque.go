package library

import (
	"slices"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/openenv-go/openenv-go/pkg/codemode/internal/fault"
)

// A deque is that of collections: a row that grows and shrinks at both ends. Its elements are in a ring.
type deque struct {
	ring  []starlark.Value // its length is a power of two, or 0
	head  int              // where the first element is
	n     int
	max   int // the most elements; -1: any number
	walks int // iterations under way, during which it cannot be changed
}

func (d *deque) String() string        { return "deque of " + itoa(d.n) }
func (d *deque) Type() string          { return "deque" }
func (d *deque) Freeze()               {}
func (d *deque) Truth() starlark.Bool  { return d.n > 0 }
func (d *deque) Hash() (uint32, error) { return 0, fault.New("TypeError", "unhashable type: deque") }
func (d *deque) Len() int              { return d.n }

func (d *deque) at(i int) *starlark.Value   { return &d.ring[(d.head+i)&(len(d.ring)-1)] }
func (d *deque) Index(i int) starlark.Value { return *d.at(i) }
func (d *deque) AttrNames() []string        { return []string{"maxlen"} }
func (d *deque) Iterate() starlark.Iterator { d.walks++; return &dequeIterator{d: d} }
func (d *deque) slice() (all []starlark.Value) {
	for i := range d.n {
		all = append(all, d.Index(i))
	}
	return all
}

// Attr gives what a deque has beside its methods.
func (d *deque) Attr(name string) (starlark.Value, error) {
	switch {
	case name != "maxlen":
		return nil, nil
	case d.max < 0:
		return starlark.None, nil
	}
	return starlark.MakeInt(d.max), nil
}

type dequeIterator struct {
	d *deque
	i int
}

func (it *dequeIterator) Next(p *starlark.Value) bool {
	if it.i >= it.d.n {
		return false
	}
	*p = it.d.Index(it.i)
	it.i++
	return true
}

func (it *dequeIterator) Done() { it.d.walks-- }

// push puts v at an end; where there is no room for more, the other end gives way.
func (c *call) push(d *deque, v starlark.Value, left bool) error {
	if err := d.free(); err != nil {
		return err
	}
	if d.max == 0 {
		return nil
	}
	if d.n == d.max {
		d.take(!left)
	}
	if d.n == len(d.ring) {
		size := max(8, 2*d.n)
		if err := c.slots(size); err != nil {
			return err
		}
		ring := make([]starlark.Value, size)
		copy(ring, d.slice())
		d.ring, d.head = ring, 0
	}
	if d.n++; left {
		d.head = (d.head - 1) & (len(d.ring) - 1)
		*d.at(0) = v
		return nil
	}
	*d.at(d.n - 1) = v
	return nil
}

// free refuses a change while the deque is walked.
func (d *deque) free() error {
	if d.walks > 0 {
		return inIteration("deque")
	}
	return nil
}

// take removes an element at an end.
func (d *deque) take(left bool) starlark.Value {
	i := d.n - 1
	if left {
		i = 0
	}
	v := *d.at(i)
	*d.at(i) = nil
	if d.n--; left {
		d.head = (d.head + 1) & (len(d.ring) - 1)
	}
	return v
}

// set gives a deque other elements, which are no more than it may have.
func (c *call) set(d *deque, values []starlark.Value) error {
	if err := d.free(); err != nil {
		return err
	}
	if err := c.step(len(values) / 16); err != nil {
		return err
	}
	d.ring, d.head, d.n = nil, 0, 0
	for _, v := range values {
		if err := c.push(d, v, false); err != nil {
			return err
		}
	}
	return nil
}

func builtinDeque(c *call) (starlark.Value, error) {
	var x, most starlark.Value
	if err := c.bind("iterable?", &x, "maxlen?", &most); err != nil {
		return nil, err
	}
	n, err := c.optional(most, "maxlen", -1)
	if err != nil {
		return nil, err
	}
	if n < 0 && most != nil && most != starlark.None {
		return nil, fault.New("ValueError", "deque: maxlen must not be negative")
	}
	d := &deque{max: n}
	if x == nil {
		return d, nil
	}
	return d, c.each(x, func(v starlark.Value) error { return c.push(d, v, false) })
}

func (l *library) dequeMethods() map[string]function {
	return map[string]function{
		"append": dequePush(false), "appendleft": dequePush(true), "pop": dequeTake(false), "popleft": dequeTake(true),
		"extend": dequeExtend(false), "extendleft": dequeExtend(true), "rotate": dequeRotate, "clear": dequeClear, "copy": dequeCopy,
		"count": listCount, "index": listIndex, "insert": dequeInsert, "remove": dequeRemove, "reverse": dequeReverse,
	}
}

func dequePush(left bool) function {
	return func(c *call) (starlark.Value, error) {
		var v starlark.Value
		if err := c.take(1, &v); err != nil {
			return nil, err
		}
		return starlark.None, c.push(c.recv.(*deque), v, left)
	}
}

func dequeTake(left bool) function {
	return func(c *call) (starlark.Value, error) {
		d := c.recv.(*deque)
		switch err := d.free(); {
		case len(c.args) > 0:
			return nil, fault.New("TypeError", "%s: a deque gives up its ends only", c.name).Hinted("write q.popleft() or q.pop(); del q[i] takes another out")
		case c.take(0) != nil:
			return nil, c.take(0)
		case err != nil:
			return nil, err
		case d.n == 0:
			return nil, fault.New("IndexError", "%s: the deque is empty", c.name).Hinted("test for that first: while q: …")
		}
		return d.take(left), nil
	}
}

func dequeExtend(left bool) function {
	return func(c *call) (starlark.Value, error) {
		var x starlark.Value
		if err := c.take(1, &x); err != nil {
			return nil, err
		}
		values, err := c.collect(x) // which may be the deque itself
		if err != nil {
			return nil, err
		}
		for _, v := range values {
			if err := c.push(c.recv.(*deque), v, left); err != nil {
				return nil, err
			}
		}
		return starlark.None, nil
	}
}

func dequeRotate(c *call) (starlark.Value, error) {
	var by starlark.Value = starlark.MakeInt(1)
	if err := c.take(0, &by); err != nil {
		return nil, err
	}
	k, ok := by.(starlark.Int)
	if _, flag := by.(starlark.Bool); flag {
		k, ok = plain(by).(starlark.Int)
	}
	if !ok {
		return nil, fault.New("TypeError", "rotate: want an integer, not %s", typeName(by))
	}
	d := c.recv.(*deque)
	if err := d.free(); err != nil || d.n == 0 {
		return starlark.None, err
	}
	n, _ := asIndex(k.Mod(starlark.MakeInt(d.n)))
	all := d.slice()
	return starlark.None, c.set(d, append(all[d.n-n:len(all):len(all)], all[:d.n-n]...))
}

func dequeClear(c *call) (starlark.Value, error) {
	if err := c.take(0); err != nil {
		return nil, err
	}
	return starlark.None, c.set(c.recv.(*deque), nil)
}

func dequeCopy(c *call) (starlark.Value, error) {
	if err := c.take(0); err != nil {
		return nil, err
	}
	d := c.recv.(*deque)
	twin := &deque{max: d.max}
	return twin, c.set(twin, d.slice())
}

func dequeReverse(c *call) (starlark.Value, error) {
	if err := c.take(0); err != nil {
		return nil, err
	}
	all := c.recv.(*deque).slice()
	reverse(all)
	return starlark.None, c.set(c.recv.(*deque), all)
}

func dequeInsert(c *call) (starlark.Value, error) {
	var i, v starlark.Value
	if err := c.take(2, &i, &v); err != nil {
		return nil, err
	}
	at, err := c.index(i, "the index")
	if err != nil {
		return nil, err
	}
	d := c.recv.(*deque)
	if d.n == d.max {
		return nil, fault.New("IndexError", "insert: the deque has its maxlen of elements").Hinted("take one out first: q.popleft()")
	}
	return starlark.None, c.set(d, slices.Insert(d.slice(), min(clamp(at, d.n), d.n), v))
}

func dequeRemove(c *call) (starlark.Value, error) {
	var v starlark.Value
	if err := c.take(1, &v); err != nil {
		return nil, err
	}
	d := c.recv.(*deque)
	for i := range d.n {
		if yes, err := c.equal(d.Index(i), v); err != nil {
			return nil, err
		} else if yes {
			return starlark.None, c.set(d, slices.Delete(d.slice(), i, i+1))
		}
	}
	return nil, fault.New("ValueError", "remove: %s is not in the deque", Repr(v))
}

// deques is a op b: there is no operator but +.
func (c *call) deques(op syntax.Token, a, b *deque) (starlark.Value, error) {
	if op != syntax.PLUS {
		return nil, unsupported(op, a, b)
	}
	sum := &deque{max: a.max}
	for _, d := range []*deque{a, b} {
		if err := c.each(d, func(v starlark.Value) error { return c.push(sum, v, false) }); err != nil {
			return nil, err
		}
	}
	return sum, nil
}
