package library

import (
	"strings"
	"unicode/utf8"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/openenv-go/openenv-go/pkg/codemode/internal/fault"
)

// operators are the hidden names of binary operators.
var operators = map[string]syntax.Token{
	"$add": syntax.PLUS, "$sub": syntax.MINUS, "$mul": syntax.STAR, "$div": syntax.SLASH, "$floordiv": syntax.SLASHSLASH,
	"$mod": syntax.PERCENT, "$and": syntax.AMP, "$or": syntax.PIPE, "$xor": syntax.CIRCUMFLEX, "$lshift": syntax.LTLT,
	"$rshift": syntax.GTGT, "$pow": syntax.STARSTAR,
}

// comparisons are those of comparisons.
var comparisons = map[string]syntax.Token{"$lt": syntax.LT, "$le": syntax.LE, "$gt": syntax.GT, "$ge": syntax.GE}

func (l *library) buildOperators(u starlark.StringDict) {
	for name, op := range operators {
		u[name] = l.operator(op, func(c *call) (starlark.Value, error) { return c.binary(op, c.args[0], c.args[1]) })
	}
	for name, op := range comparisons {
		u[name] = l.operator(op, func(c *call) (starlark.Value, error) {
			yes, err := c.compare(op, c.args[0], c.args[1])
			return starlark.Bool(yes), err
		})
	}
	truth := func(name string, op syntax.Token, f func(c *call) (bool, error), want bool) {
		u[name] = l.operator(op, func(c *call) (starlark.Value, error) {
			yes, err := f(c)
			return starlark.Bool(yes == want), err
		})
	}
	equal := func(c *call) (bool, error) { return c.equal(c.args[0], c.args[1]) }
	in := func(c *call) (bool, error) { return c.contains(c.args[1], c.args[0]) }
	truth("$eq", syntax.EQL, equal, true)
	truth("$ne", syntax.NEQ, equal, false)
	truth("$in", syntax.IN, in, true)
	truth("$notin", syntax.NOT_IN, in, false)
	u["$is"] = l.builtin("is", func(c *call) (starlark.Value, error) { return starlark.Bool(same(c.args[0], c.args[1])), nil })
	u["$neg"] = l.builtin("-", func(c *call) (starlark.Value, error) { return c.unary(syntax.MINUS) })
	u["$pos"] = l.builtin("+", func(c *call) (starlark.Value, error) { return c.unary(syntax.PLUS) })
	u["$invert"] = l.builtin("~", func(c *call) (starlark.Value, error) { return c.unary(syntax.TILDE) })
}

// same tells whether x is y. What has no parts is what equals it.
func same(x, y starlark.Value) bool {
	switch a := x.(type) {
	case starlark.Tuple:
		b, ok := y.(starlark.Tuple)
		return ok && len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
	case starlark.Int:
		b, ok := y.(starlark.Int)
		return ok && a.BigInt().Cmp(b.BigInt()) == 0
	case *Type:
		if s, ok := y.(starlark.String); ok {
			return a.called(string(s))
		}
	}
	if x.Type() != y.Type() {
		return false
	}
	if _, tuple := y.(starlark.Tuple); tuple {
		return false
	}
	return x == y
}

func (c *call) unary(op syntax.Token) (starlark.Value, error) {
	x := plain(c.args[0])
	switch x := x.(type) {
	case starlark.Int:
		if err := c.scan(8 * bits(x) / 64); err != nil {
			return nil, err
		}
	case starlark.Float:
		if op == syntax.TILDE {
			return nil, fault.New("TypeError", "~ float is not supported")
		}
	default:
		return nil, fault.New("TypeError", "%s %s is not supported", op, typeName(x))
	}
	v, err := starlark.Unary(op, x)
	return v, c.typeError(err)
}

func bits(i starlark.Int) int {
	if n, ok := i.Int64(); ok && n != -1<<63 {
		return 63
	}
	return i.BigInt().BitLen()
}

// binary is x op y.
func (c *call) binary(op syntax.Token, x, y starlark.Value) (starlark.Value, error) {
	switch a := x.(type) {
	case starlark.String:
		switch b := y.(type) {
		case starlark.String:
			if op == syntax.PLUS {
				return a + b, c.text(len(a) + len(b))
			}
		case starlark.Int, starlark.Bool:
			if op == syntax.STAR {
				return c.repeatText(a, y)
			}
		}
		if op == syntax.PERCENT {
			s, err := c.percent(string(a), y)
			return starlark.String(s), err
		}
	case *starlark.List, starlark.Tuple:
		if v, err := c.rows(op, x, y); v != nil || err != nil {
			return v, err
		}
	case *starlark.Dict:
		if b, ok := y.(*starlark.Dict); ok {
			if v, err := c.dicts(op, a, b); v != nil || err != nil {
				return v, err
			}
		}
	case *starlark.Set:
		switch b := y.(type) {
		case *starlark.Set:
			if v, err := c.sets(op, a, b); v != nil || err != nil {
				return v, err
			}
		case *view:
			if v, err := c.views(op, x, y); v != nil || err != nil {
				return v, err
			}
		}
	case *view:
		if v, err := c.views(op, x, y); v != nil || err != nil {
			return v, err
		}
	case *deque:
		if b, ok := y.(*deque); ok {
			return c.deques(op, a, b)
		}
	case starlark.Int, starlark.Float, starlark.Bool:
		return c.arithmetic(op, x, y)
	}
	if _, own := x.(starlark.HasBinary); own {
		v, err := starlark.Binary(op, x, y)
		return v, c.typeError(err)
	}
	return nil, unsupported(op, x, y)
}

// rows adds and repeats lists and tuples.
func (c *call) rows(op syntax.Token, x, y starlark.Value) (starlark.Value, error) {
	if x.Type() == y.Type() && op == syntax.PLUS {
		g := gatherer{call: c}
		if err := c.slots(starlark.Len(x) + starlark.Len(y)); err != nil {
			return nil, err
		}
		for _, row := range []starlark.Value{x, y} {
			if err := c.each(row, g.add); err != nil {
				return nil, err
			}
		}
		return rowLike(x, g.values), nil
	}
	if n, ok := asIndex(y); ok && op == syntax.STAR {
		return c.repeatRow(x, n)
	}
	return nil, nil
}

func rowLike(x starlark.Value, values []starlark.Value) starlark.Value {
	if _, tuple := x.(starlark.Tuple); tuple {
		return starlark.Tuple(values)
	}
	return starlark.NewList(values)
}

// times is n*k, at least 0, cut off before it overflows.
func times(n, k int) int {
	const most = 1 << 50
	if n <= 0 || k <= 0 {
		return 0
	}
	if n > most/k {
		return most
	}
	return n * k
}

func (c *call) repeatRow(x starlark.Value, k int) (starlark.Value, error) {
	row := x.(starlark.Indexable)
	n := times(row.Len(), k)
	if err := c.slots(n); err != nil {
		return nil, err
	}
	if err := c.step(n / 8); err != nil {
		return nil, err
	}
	values := make([]starlark.Value, n)
	for i := range values {
		values[i] = row.Index(i % row.Len())
	}
	return rowLike(x, values), nil
}

func (c *call) repeatText(s starlark.String, by starlark.Value) (starlark.Value, error) {
	k, _ := asIndex(by)
	n := times(len(s), k)
	if err := c.text(n); err != nil || n == 0 {
		return starlark.String(""), err
	}
	return starlark.String(strings.Repeat(string(s), k)), nil
}

// listless tells of what Python's lists were in former times.
func listless(v starlark.Value) bool {
	switch v.(type) {
	case *iterator, *view, *deque:
		return true
	}
	return false
}

func unsupported(op syntax.Token, x, y starlark.Value) error {
	e := fault.New("TypeError", "unsupported operands: %s %s %s", typeName(x), op, typeName(y))
	_, left := x.(starlark.String)
	_, right := y.(starlark.String)
	switch {
	case x == starlark.None || y == starlark.None:
		return e.Hinted("a value is None: test for it, or write (x or 0)")
	case op == syntax.PLUS && left != right:
		return e.Hinted("make text of the other first: str(x); or a number of the text: int(s), float(s)")
	case (left || right) && op != syntax.IN:
		return e.Hinted("make a number of the text first: int(s), float(s)")
	case listless(x) || listless(y):
		return e.Hinted("make a list of it first: list(xs)")
	case typeName(x) == "list" || typeName(y) == "list":
		return e.Hinted("lists are added to lists: xs + [x]; of sets there are & | - ^: set(xs)")
	}
	return e
}

// contains tells whether x is in y.
func (c *call) contains(y, x starlark.Value) (bool, error) {
	switch y := y.(type) {
	case starlark.String:
		s, ok := x.(starlark.String)
		if !ok {
			return false, fault.New("TypeError", "text has only text in it, not %s", typeName(x)).Hinted("write str(x) in s")
		}
		return strings.Contains(string(y), string(s)), c.scan(len(y))
	case *starlark.Dict:
		if err := c.hashable(x); err != nil {
			return false, err
		}
		_, found, err := y.Get(x)
		return found, c.typeError(err)
	case *starlark.Set:
		if err := c.hashable(x); err != nil {
			return false, err
		}
		found, err := y.Has(x)
		return found, c.typeError(err)
	case *starlark.List:
		return c.rowHas(y, x)
	case starlark.Tuple:
		return c.rowHas(y, x)
	case *deque:
		return c.rowHas(y, x)
	case starlark.Container:
		if y.Type() == "range" {
			if x = wholeNumber(x); x == nil {
				return false, nil
			}
		}
		found, err := y.Has(x)
		return found, c.typeError(err)
	case starlark.Iterable:
		return c.walkHas(y, x)
	}
	e := fault.New("TypeError", "nothing is in %s: it holds no values", typeName(y))
	if y == starlark.None {
		return false, e.Hinted("the value may be missing: write x in (y or [])")
	}
	return false, e
}

func (c *call) rowHas(row starlark.Indexable, x starlark.Value) (bool, error) {
	for i := range row.Len() {
		if yes, err := c.equal(row.Index(i), x); err != nil || yes {
			return yes, err
		}
	}
	return false, nil
}

func (c *call) walkHas(y starlark.Iterable, x starlark.Value) (bool, error) {
	iter := y.Iterate()
	defer iter.Done()
	for v := starlark.Value(nil); iter.Next(&v); {
		if yes, err := c.equal(v, x); err != nil || yes {
			return yes, err
		}
	}
	return false, nil
}

// wholeNumber is the integer that equals x; nil where there is none.
func wholeNumber(x starlark.Value) starlark.Value {
	switch x := plain(x).(type) {
	case starlark.Int:
		return x
	case starlark.Float:
		if i, err := truncate(float64(x)); err == nil && float64(i.(starlark.Int).Float()) == float64(x) {
			return i
		}
	}
	return nil
}

// builtinLen counts code points of text.
func builtinLen(c *call) (starlark.Value, error) {
	var x starlark.Value
	if err := c.take(1, &x); err != nil {
		return nil, err
	}
	if s, ok := x.(starlark.String); ok {
		return starlark.MakeInt(utf8.RuneCountInString(string(s))), c.scan(len(s) / 8)
	}
	n := starlark.Len(x)
	if n >= 0 {
		return starlark.MakeInt(n), nil
	}
	e := fault.New("TypeError", "%s has no len", typeName(x))
	if x == starlark.None {
		return nil, e.Hinted("the value may be missing: len(x or [])")
	}
	return nil, e
}
