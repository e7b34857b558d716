package library

import (
	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"

	"github.com/openenv-go/openenv-go/pkg/codemode/internal/fault"
)

// A library is what the builtins of one universe share. It does not change after it was built.
type library struct {
	types   map[string]*Type                        // by Starlark's name of them
	methods map[string]map[string]*starlark.Builtin // by the same
}

// Universe is what code finds: builtins, types, modules, and hidden builtins. It is made anew by each call, so that its modules can
// be added to; what is in it is not changed by code, and many runs may share it.
func Universe() starlark.StringDict {
	l := &library{}
	l.buildTypes()
	l.buildMethods()
	u := starlark.StringDict{"None": starlark.None, "True": starlark.True, "False": starlark.False}
	for name, f := range builtins() {
		u[name] = l.builtin(name, f)
	}
	for name, f := range hidden() {
		u[name] = l.builtin(name[1:], f)
	}
	for _, t := range l.types {
		if t.make != nil && t.name != "deque" { // which is in collections
			u[t.name] = t
		}
	}
	u["frozenset"] = l.types["set"]
	for _, m := range []*starlarkstruct.Module{l.collections(), l.json(), l.math(), l.re()} {
		u[m.Name] = m
	}
	l.buildOperators(u)
	return u
}

func (l *library) buildMethods() {
	l.methods = map[string]map[string]*starlark.Builtin{}
	for name, methods := range map[string]map[string]function{
		"string": l.stringMethods(), "list": l.listMethods(), "dict": l.dictMethods(), "set": l.setMethods(), "tuple": l.tupleMethods(),
		"pattern": l.patternMethods(), "match": l.matchMethods(), "int": l.intMethods(), "bool": l.intMethods(), "float": l.floatMethods(), "Counter": l.counterMethods(),
		"deque": l.dequeMethods(), keysView: viewMethods(), itemsView: viewMethods(),
	} {
		l.methods[name] = map[string]*starlark.Builtin{}
		for method, f := range methods {
			l.methods[name][method] = l.builtin(method, f)
		}
	}
}

func viewMethods() map[string]function { return map[string]function{"isdisjoint": viewIsDisjoint} }

func builtins() map[string]function {
	return map[string]function{
		"abs": builtinAbs, "all": builtinAll, "any": builtinAny, "ascii": builtinASCII, "bin": inBase("0b", 2), "callable": builtinCallable,
		"chr": builtinChr, "dir": builtinDir, "divmod": builtinDivmod, "enumerate": builtinEnumerate, "filter": builtinFilter,
		"format": builtinFormat, "hash": builtinHash, "hex": inBase("0x", 16), "isinstance": builtinIsinstance, "iter": builtinIter,
		"len": builtinLen, "map": builtinMap, "max": builtinMax, "min": builtinMin, "next": builtinNext, "oct": inBase("0o", 8),
		"ord": builtinOrd, "pow": builtinPow, "repr": builtinRepr, "reversed": builtinReversed, "round": builtinRound,
		"sorted": builtinSorted, "sum": builtinSum, "zip": builtinZip,
	}
}

func hidden() map[string]function {
	return map[string]function{
		"$attr": hiddenAttr, "$index": hiddenIndex, "$slice": hiddenSlice, "$setindex": hiddenSetIndex, "$del": hiddenDel,
		"$iter": hiddenIter, "$concat": hiddenConcat, "$set": hiddenSet, "$dict": hiddenDict, "$unpack": hiddenUnpack,
		"$format": hiddenFormat, "$fstring": hiddenFString, "$key": hiddenKey,
		"$method": hiddenMethod, "$callee": hiddenCallee, "$keywords": hiddenKeywords, "$generator": hiddenGenerator,
	}
}

// hiddenKey is a value that becomes the key of a dict.
func hiddenKey(c *call) (starlark.Value, error) { return c.args[0], c.hashable(c.args[0]) }

func builtinCallable(c *call) (starlark.Value, error) {
	var x starlark.Value
	if err := c.take(1, &x); err != nil {
		return nil, err
	}
	_, ok := x.(starlark.Callable)
	return starlark.Bool(ok), nil
}

func (l *library) intMethods() map[string]function {
	return map[string]function{
		"bit_length": func(c *call) (starlark.Value, error) {
			i := plain(c.recv).(starlark.Int)
			return starlark.MakeInt(i.BigInt().BitLen()), c.take(0)
		},
		"bit_count": func(c *call) (starlark.Value, error) {
			n := 0
			for _, w := range plain(c.recv).(starlark.Int).BigInt().Bits() {
				for ; w != 0; w &= w - 1 {
					n++
				}
			}
			return starlark.MakeInt(n), c.take(0)
		},
		"is_integer": func(c *call) (starlark.Value, error) { return starlark.True, c.take(0) },
		"conjugate":  func(c *call) (starlark.Value, error) { return plain(c.recv), c.take(0) },
	}
}

func (l *library) floatMethods() map[string]function {
	return map[string]function{
		"is_integer": func(c *call) (starlark.Value, error) {
			f := float64(c.recv.(starlark.Float))
			return starlark.Bool(f == float64(int64(f)) || f-f == 0 && (f >= 1<<53 || f <= -1<<53)), c.take(0)
		},
		"as_integer_ratio": func(c *call) (starlark.Value, error) {
			f := float64(c.recv.(starlark.Float))
			r, ok := ratio(f)
			if !ok {
				return nil, fault.New("ValueError", "%s is no ratio of integers", floatText(f))
			}
			return starlark.Tuple{starlark.MakeBigInt(r.Num()), starlark.MakeBigInt(r.Denom())}, c.take(0)
		},
	}
}
