package library

import (
	"slices"
	"strings"

	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"

	"github.com/openenv-go/openenv-go/pkg/codemode/internal/fault"
)

// hiddenAttr is x.name.
func hiddenAttr(c *call) (starlark.Value, error) {
	name, ok := c.args[1].(starlark.String)
	if !ok {
		return nil, fault.New("TypeError", "the name of an attribute is text, not %s", typeName(c.args[1]))
	}
	return c.attr(c.args[0], string(name))
}

func (c *call) attr(x starlark.Value, name string) (starlark.Value, error) {
	if m := c.methods[typeName(x)][name]; m != nil {
		return m.BindReceiver(x), nil
	}
	switch x := x.(type) {
	case *starlark.Dict:
		if k := c.kind(x); k != nil && k.counter {
			if m := c.methods["Counter"][name]; m != nil {
				return m.BindReceiver(x), nil
			}
		}
	case *Type:
		if v := c.typeAttr(x, name); v != nil {
			return v, nil
		}
	case starlark.Int, starlark.Bool:
		if name == "real" || name == "numerator" {
			return plain(x), nil
		}
	case starlark.Callable:
		if name == "__name__" {
			return starlark.String(FunctionName(x)), nil
		}
	}
	if h := attributed(x); h != nil && !strings.HasPrefix(name, "__") {
		if v, err := h.Attr(name); err != nil || v != nil {
			return v, err
		}
	}
	return nil, c.noAttr(x, name)
}

// attributed is x where its own attributes are to be had. Those of Starlark's types are not: they count bytes, and charge nothing.
func attributed(x starlark.Value) starlark.HasAttrs {
	switch x.(type) {
	case starlark.String, starlark.Bytes, *starlark.List, *starlark.Dict, *starlark.Set:
		return nil
	}
	h, _ := x.(starlark.HasAttrs)
	return h
}

// typeAttr is what a type has: its name, and the methods of its values, which take the value first.
func (c *call) typeAttr(t *Type, name string) starlark.Value {
	if name == "__name__" || name == "__qualname__" {
		return starlark.String(t.name)
	}
	method := c.methods[t.native][name]
	if method == nil {
		return nil
	}
	if t.name == "dict" && name == "fromkeys" || t.name == "str" && name == "maketrans" {
		return method.BindReceiver(starlark.None)
	}
	return c.builtin(t.name+"."+name, func(c *call) (starlark.Value, error) {
		if len(c.args) == 0 || !t.has(c.args[0]) {
			return nil, fault.New("TypeError", "%s: the first argument must be a %s", c.name, t.native)
		}
		return method.BindReceiver(c.args[0]).CallInternal(c.thread, c.args[1:], c.kwargs)
	})
}

// attrNames are the names that attr knows of x.
func (c *call) attrNames(x starlark.Value) []string {
	var names []string
	for name := range c.methods[typeName(x)] {
		names = append(names, name)
	}
	if d, dict := x.(*starlark.Dict); dict {
		if k := c.kind(d); k != nil && k.counter {
			for name := range c.methods["Counter"] {
				names = append(names, name)
			}
		}
	}
	if h := attributed(x); h != nil {
		names = append(names, h.AttrNames()...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func builtinDir(c *call) (starlark.Value, error) {
	var x starlark.Value
	if err := c.take(1, &x); err != nil {
		return nil, err
	}
	var names []starlark.Value
	for _, name := range c.attrNames(x) {
		names = append(names, starlark.String(name))
	}
	return starlark.NewList(names), nil
}

// instead are hints for attributes that models expect, by type and name.
var instead = map[string]map[string]string{
	"string": {
		"encode": "text is written as it is: leave encode out", "decode": "text is text already: leave decode out",
		"append": "make a new text: s + t", "push": "make a new text: s + t", "length": "write len(s)", "contains": "write t in s", "trim": "write s.strip()",
	},
	"list": {
		"add": "write xs.append(x)", "push": "write xs.append(x)", "length": "write len(xs)", "size": "write len(xs)", "map": "write [f(x) for x in xs]",
		"filter": "write [x for x in xs if …]", "join": `write ", ".join(xs)`, "get": "write xs[i], or take an element first: xs[0].get(key)",
		"items": "it is a list, not a dict: enumerate(xs), or take an element first", "keys": "it is a list, not a dict: take an element first",
		"values": "it is a list, not a dict: take an element first", "contains": "write x in xs", "sorted": "write sorted(xs)",
	},
	"dict": {
		"has_key": "write key in d", "iteritems": "write d.items()", "append": "write d[key] = value", "add": "write d[key] = value", "sort": "write sorted(d.items())",
		"length": "write len(d)",
	},
	"deque":    {"push": "write q.append(x)", "enqueue": "write q.append(x)", "dequeue": "write q.popleft()", "shift": "write q.popleft()", "sort": "write sorted(q)"},
	"iterator": {"sort": "write sorted(xs)", "append": "make a list of it first: list(xs)", "next": "write next(it)"},
	keysView:   {"sort": "write sorted(d)", "append": "write d[key] = value", "index": "make a list of it first: list(d)"},
	itemsView:  {"sort": "write sorted(d.items())", "append": "write d[key] = value"},
	"set":      {"append": "write s.add(x)", "extend": "write s.update(xs)", "sort": "write sorted(s)"},
	"module": {
		"dump": "there are no files: dumps gives text", "load": "there are no files: loads takes text", "namedtuple": "use a dict, or a tuple",
		"ChainMap": "use {**a, **b}",
	},
}

// FunctionName is a function's name as the code spells it. The lowered code sets some apart by spaces at their ends.
func FunctionName(f starlark.Callable) string { return strings.TrimRight(f.Name(), " ") }

// noAttr says what there is in place of an attribute.
func (c *call) noAttr(x starlark.Value, name string) error {
	what := typeName(x)
	if m, ok := x.(*starlarkstruct.Module); ok {
		what = "module " + m.Name
	}
	e := fault.New("AttributeError", "%s has no .%s", what, name)
	if strings.HasPrefix(name, "__") {
		return e.Hinted("names that begin with __ are not there; type(x) gives a type")
	}
	if hint := instead[typeName(x)][name]; hint != "" {
		return e.Hinted("%s", hint)
	}
	switch x := x.(type) {
	case starlark.NoneType:
		return e.Hinted("what stands before .%s is None: test for that, or write (… or {}).get(…)", name)
	case *starlark.Dict:
		if _, found, err := x.Get(starlark.String(name)); err == nil && found {
			return e.Hinted("a dict's values are reached by key: write [\"%s\"] in place of .%s", name, name)
		}
		near := nearest(name, c.attrNames(x))
		if near != "" {
			return e.Hinted("did you mean .%s? A key is written [\"%s\"]", near, name)
		}
		return e.Hinted("a dict's values are reached by key, as in [\"%s\"]; it has %s", name, keysOf(x))
	case *starlark.Function, *starlark.Builtin:
		return e.Hinted("it is a function: call it first, %s(…)", FunctionName(x.(starlark.Callable)))
	}
	names := c.attrNames(x)
	if near := nearest(name, names); near != "" {
		return e.Hinted("did you mean .%s?", near)
	}
	if len(names) == 0 {
		return e
	}
	return e.Hinted("it has %s", strings.Join(names, ", "))
}

// nearest is the name that is a few letters away from name; "" where none is.
func nearest(name string, names []string) string {
	best, least := "", 1+min(2, len(name)/3)
	for _, n := range names {
		if d := distance(strings.ToLower(name), strings.ToLower(n)); d < least {
			best, least = n, d
		}
	}
	return best
}

// distance is how many letters must be put in, left out or changed to make b of a.
func distance(a, b string) int {
	const most = 100
	if len(a) > most || len(b) > most {
		return most
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
