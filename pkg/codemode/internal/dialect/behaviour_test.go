package dialect_test

import (
	"errors"
	"strings"
	"testing"

	"go.starlark.net/starlark"

	"github.com/openenv-go/openenv-go/pkg/codemode/internal/dialect"
)

// run runs code on stand-ins, and returns its outcome as text.
func run(t *testing.T, code string) string {
	t.Helper()
	env := standins()
	env["json"], env["re"] = starlark.None, starlark.None
	o := dialect.Options{}
	for name := range env {
		if !strings.HasPrefix(name, "$") {
			o.Known = append(o.Known, name)
		}
	}
	for name := range starlark.Universe {
		o.Known = append(o.Known, name)
	}
	p, err := dialect.Parse(code, o)
	if err != nil {
		t.Fatal(err)
	}
	program, err := starlark.FileProgram(p.File, env.Has)
	if err != nil {
		t.Fatal(err)
	}
	globals, err := program.Init(&starlark.Thread{}, env)
	var stop *stopped
	var r *raised
	switch {
	case errors.As(err, &stop):
		return "stopped: " + stop.value.String()
	case errors.As(err, &r):
		return "raised: " + r.class
	case err != nil:
		t.Fatal(err)
	}
	out := globals["result"]
	if out == nil {
		out = globals["$last"]
	}
	if c, ok := out.(*cell); ok {
		out = c.value
	}
	if out == nil {
		return "nothing"
	}
	return out.String()
}

// TestBehaviour: lowered code does what Python does.
func TestBehaviour(t *testing.T) {
	for _, c := range []struct{ name, code, want string }{
		{"last expression", "x = 1\nx + 1", "2"},
		{"text at the end", "'done'", `"done"`},
		{"no expression at the end", "1\nx = 2", "nothing"},
		{"precedence", "result = [2 + 3 * 4, -2 ** 2, 2 ** 3 ** 2, not 1 == 2, 1 | 2 ^ 3 & 4, 7 // 2 * 2, 1 << 2 + 1, 2 ** -0]", "[14, -4, 512, True, 3, 6, 8, 1]"},
		{"conditional", "result = 1 if 0 else 2 if 0 else 3", "3"},
		{"and or", "result = [1 and 2 or 3, 0 or [] or 'x', 1 and 0 or 5]", `[2, "x", 5]`},
		{"is", "x = None\nresult = [x is None, x is not None]", "[True, False]"},
		{"in", "result = [1 in [1], 1 not in [1], 'a' in 'abc']", "[True, False, True]"},
		{"chained comparison", "result = [1 < 2 < 3, 1 < 3 < 2, 3 > 2 > 1 == 1, 1 < 2 > 1 != 3]", "[True, False, True, True]"},
		{"each operand once", "log = []\ndef f(n):\n    log.append(n)\n    return n\na = f(1) < f(2) < f(3) < f(3) < f(5)\nresult = (a, log)", "(False, [1, 2, 3, 3])"},
		{"chain in a comprehension", "def f(n): return n\nresult = [x for x in range(9) if 2 <= f(x) < f(5)]", "[2, 3, 4]"},
		{"numbers", "result = [1_000, 0x_ff, 0o17, 0b101, 1e3, .5, 5., 1_0.5, 00, 18446744073709551616]", "[1000, 255, 15, 5, 1000.0, 0.5, 5.0, 10.5, 0, 18446744073709551616]"},
		{"strings", `result = ['a\tb\x41\u00e9\U0001F600\101\q', r'\n\'', "a" 'b' """c
d""", '\
x', "\ud83d\ude00"]`, `["a\tbAé😀A\\q", "\\n\\'", "abc\nd", "x", "😀"]`},
		{"f-strings", "w = 5\nx = {'k': 'v'}\nresult = f'{w} {w:>3} {w!r:^{w}} {{}} {x[\"k\"]}' f\"{x['k']!r}\" \"{w}\"", `"5 5<>3> 5<^5> {} v\"v\"{w}"`},
		{"f-strings in f-strings", `result = f"{f"{1}" + f'{"a" if 1 != 2 else "b"}'}"`, `"1a"`},
		{"f-strings that say what they show", `x = "a"
result = [f"{x=}", f"{x = }", f"{x=!s}", f"{x=:3}", f"{x == 'a'}", f"{(lambda y: y)(3)}", f"{ {1: 2}[1] }"]`, `["x=\"a\"", "x = \"a\"", "x=a", "x=a<3>", "True", "3", "2"]`},
		{"f-strings over lines", "x = 1\nresult = f'''{\nx\n}\n{x:\n}'''", `"1\n1<\n>"`},
		{"raw f-strings", `x = 1
result = [rf"\d{x}", f"\\{x}", fr'{x}\{x}']`, `["\\d1", "\\1", "1\\1"]`},
		{"displays", "a = [1, 2]\nresult = [[*a, 3], (*a, 3), (0, *a), sorted({*a, 2}), {**{'x': 1}, 'y': 2}, {'y': 0, **{'y': 1}}]", `[[1, 2, 3], (1, 2, 3), (0, 1, 2), [1, 2], {"x": 1, "y": 2}, {"y": 1}]`},
		{"keys that are twice", "k = 'a'\nresult = {'a': 1, k: 2, 'b': 3, 'b': 4}", `{"a": 2, "b": 4}`},
		{"sets", "result = sorted({x % 3 for x in range(9)})", "[0, 1, 2]"},
		{"generators", "result = [sum(x for x in [1, 2]), sum((x for x in [3]))]", "[3, 3]"},
		{"comprehensions", "result = [{k: v for k, v in [(1, 2)]}, [(x, y) for x in range(3) if x for y in range(x) if y < 1 if y >= 0], [x for x in 'ab']]", `[{1: 2}, [(1, 0), (2, 0)], ["a", "b"]]`},
		{"comprehension variables stay inside", "x = 7\n_ = [x for x in range(3)]\nresult = x", "7"},
		{"stars in calls", "def f(*a, **k): return (a, k)\nresult = f(1, *[2], 3, *(4,), **{'x': 1}, y=2, **{'z': 3})", `((1, 2, 3, 4), {"y": 2, "x": 1, "z": 3})`},
		{"global behind a local", "x = 1\ndef f():\n  x = 2\n  def g():\n    global x\n    x += 5\n    return x\n  return (g(), x)\nresult = (f(), x)", "((6, 2), 6)"},
		{"global behind a parameter", "def f(x):\n  def g():\n    global x\n    x = 5\n  g()\n  return x\nresult = (f(x=1), x)", "(1, 5)"},
		{"global behind a function", "def f():\n  def x(): return 1\n  def g():\n    global x\n    x = 5\n  def h(): return x()\n  g()\n  return h()\nresult = (f(), x)", "(1, 5)"},
		{"text after a star", "def f(*a): return a\nresult = f(*'ab')", `("a", "b")`},
		{"names after stars", "def f(*a, k=0): return (a, k)\nresult = f(*[1], k=2)", "((1,), 2)"},
		{"many arguments", "def f(*a): return len(a)\nresult = f(" + strings.Repeat("1, ", 300) + ")", "300"},
		{"parameters", "def f(a, /, b: int = 2, *, c=3, **d) -> int: return (a, b, c, d)\nresult = [f(1), f(1, 4, c=5, e=6)]", "[(1, 2, 3, {}), (1, 4, 5, {\"e\": 6})]"},
		{"lambdas", "f = lambda x, y=2, *a, **k: (x, y, a)\nresult = [f(1), (lambda: 5)(), f(1, 3, 4)]", "[(1, 2, ()), 5, (1, 3, (4,))]"},
		{"chained assignment", "a = b = c = [1]\na.append(2)\nresult = c", "[1, 2]"},
		{"stars on the left", "a, *b, c = [1, 2, 3, 4]\n[d, (e, *f)], *g = [[1, [2, 3]], 5]\n*h, = [1]\nresult = [a, b, c, d, e, f, g, h]", "[1, [2, 3], 4, 1, 2, [3], [5], [1]]"},
		{"stars in loops", "r = []\nfor a, *b in [[1, 2, 3], [4]]:\n    r.append((a, b))\nresult = [r, [y for x, *y in [[1, 2]]]]", "[[(1, [2, 3]), (4, [])], [[2]]]"},
		{"swaps", "xs = [1, 2]\nxs[0], xs[1] = xs[1], xs[0]\na, b = 1, 2\na, b = b, a\nresult = [xs, a, b]", "[[2, 1], 2, 1]"},
		{"augmented", "n = 7\nn += 1; n //= 2; n **= 2; n %= 10; n <<= 2; n |= 1; n ^= 3; n &= 63; n -= 1; n *= 2\nresult = n", "50"},
		{"augmented elements", "d = {'a': [1], 'n': 1}\nalias = d['a']\nd['a'] += [2]\nd['n'] += 1\nresult = [d, alias]", `[{"a": [1, 2], "n": 2}, [1, 2]]`},
		{"augmented, index once", "log = []\ndef i():\n    log.append(1)\n    return 0\nxs = [5]\nxs[i()] += 1\nresult = [xs, log]", "[[6], [1]]"},
		{"annotations", "x: int = 1\ny: dict[str, list]\nresult: list = [x]", "[1]"},
		{"del", "d = {1: 2, 3: 4}\nx = 1\ndel d[1], x\ntry:\n    x\nexcept:\n    d['gone'] = True\nx = 5\nresult = [d, x]", `[{3: 4, "gone": True}, 5]`},
		{"assert", "assert 1 == 1, 'fine'\nassert 2 == 1", "raised: AssertionError"},
		{"slices", "result = ['x'[1:], 'x'[:2:3]]", `["(1, None, None)", "(None, 2, 3)"]`},
		{"docstrings", "def f():\n    'says what'\n    return 1\nresult = f()", "1"},
		{"one line", "def f(x): x += 1; return x\nif 1: a = f(1); b = 2\nelse: a = b = 0\nresult = [a, b]", "[2, 2]"},
		{"elif", "r = []\nfor x in range(4):\n    if x == 0: r.append('a')\n    elif x == 1: r.append('b')\n    elif x == 2: pass\n    else: r.append('d')\nresult = r", `["a", "b", "d"]`},
		{"loop else", "r = []\nfor n in [2, 9]:\n    for x in range(5):\n        if x == n: break\n    else:\n        r.append(n)\nwhile n > 0:\n    n -= 1\nelse:\n    r.append('w')\nresult = r", `[9, "w"]`},
		{"main", "def main():\n    return 3\nif __name__ == '__main__':\n    result = main()", "3"},
		{"return at top level", "for x in range(5):\n    if x == 2:\n        return x\n", "stopped: 2"},
		{"return at top level in try", "r = []\ntry:\n    return r\nfinally:\n    r.append('f')\n", `stopped: ["f"]`},
		{"walrus", "r = []\nxs = [1, 2, 0, 3]\nwhile (x := xs.pop(0)):\n    r.append(x)\nresult = [r, [y := 5, y], [z for w in [1, 2] if (z := w * 2) > 2], z]", "[[1, 2], [5, 5], [4], 4]"},
		{"walrus in a function", "def f():\n    if (n := 3) > 2: return n + (m := 1) + m\nresult = f()", "5"},
		{"global", "n = 0\ndef f():\n    global n, made\n    n += 1\n    made = 'm'\nf(); f()\nresult = [n, made]", `[2, "m"]`},
		{"global list", "xs = []\ndef f():\n    global xs\n    xs += [1]\nalias = xs\nf()\nresult = alias", "[1]"},
		{"nonlocal", "def f():\n    n = 0\n    def g():\n        nonlocal n\n        n += 1\n        return n\n    g()\n    g()\n    return n\nresult = f()", "2"},
		{"nonlocal parameter", "def f(n):\n    def g():\n        nonlocal n\n        n += 1\n    g()\n    return n\nresult = [f(1), f(n=5)]", "[2, 6]"},
		{"names of built-ins", "sum = sum([1, 2])\ndef len(x): return 'mine'\nlist = [3]\nresult = [sum, len([]), list, [max for max in [1]]]", `[3, "mine", [3], [1]]`},
		{"names of built-ins before", "a = len([1])\nlen = 5\ndef f(): return len\nresult = [a, f()]", "[1, 5]"},
		{"recursion", "def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)\nresult = fib(10)", "55"},
		{"loops that go on", "r = []\nfor x in range(5):\n    if x == 1: continue\n    if x == 3: break\n    r.append(x)\nresult = r", "[0, 2]"},
		{"line ends", "x = 1\r\nif x:\r\n\tresult = [x,\r\n\t\t2]\r\n", "[1, 2]"},
		{"lines that go on", "x = 1 + \\\n    2\nresult = (x\n  # why\n  + 1)", "4"},
		{"fence", "\n```python\nresult = 1\n```\n", "1"},
		{"fence without an end", "```\nresult = 1", "1"},
		{"names that are not ASCII", "größe = 1\nresult = größe", "1"},
		{"words that are names", "match = 1\ntype = 2\ncase = match\nmatch.x if 0 else 1\nresult = [match, type, case]", "[1, 2, 1]"},
		{"typing", "from typing import List, Optional\nfrom __future__ import annotations\ndef f(x: Optional[List[int]] = None) -> None: return x\nresult = f(1)", "1"},
		{"ellipsis", "def f(): ...\nresult = f()", "None"},
		{"globals of the round before", "r = []\nfor i in range(3):\n    if i > 0: r.append(prev)\n    prev = i\nresult = r", "[0, 1]"},
		{"late functions", "def f(): return g()\ndef g(): return 1\nresult = f()", "1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := run(t, c.code); got != c.want {
				t.Errorf("got %s\nwant %s", got, c.want)
			}
		})
	}
}

// TestTry: try in all its forms.
func TestTry(t *testing.T) {
	for _, c := range []struct{ name, code, want string }{
		{"caught", "try:\n    {}['x']\nexcept KeyError as e:\n    result = e", `"x"`},
		{"not raised", "try:\n    result = 1\nexcept KeyError:\n    result = 2", "1"},
		{"other class", "try:\n    raise ValueError('v')\nexcept KeyError:\n    result = 2", "raised: ValueError"},
		{"one of several", "try:\n    raise ValueError\nexcept KeyError:\n    result = 1\nexcept (KeyError, ValueError):\n    result = 2\nexcept:\n    result = 3", "2"},
		{"order", "r = []\ntry:\n    r.append('b')\nexcept:\n    r.append('x')\nelse:\n    r.append('e')\nfinally:\n    r.append('f')\nresult = r", `["b", "e", "f"]`},
		{"finally alone", "r = []\ndef f():\n    try:\n        return 1\n    finally:\n        r.append('f')\nresult = [f(), r]", `[1, ["f"]]`},
		{"finally overrides", "def f():\n    try:\n        return 1\n    finally:\n        return 2\nresult = f()", "2"},
		{"else does not run after return", "r = []\ndef f():\n    try:\n        return 1\n    except:\n        pass\n    else:\n        r.append('e')\nresult = [f(), r]", "[1, []]"},
		{"names set inside", "x = 0\ntry:\n    x = 1\n    y = x + 1\n    def f(): return y\nexcept:\n    pass\nresult = [x, y, f()]", "[1, 2, 2]"},
		{"in a function", "def g():\n    n = 0\n    for x in [1, 0, 2]:\n        try:\n            if x == 0: raise ValueError('z')\n            n += x\n        except ValueError as e:\n            n += 10\n    return n\nresult = g()", "13"},
		{"jumps", "r = []\nfor x in range(6):\n    try:\n        if x == 1: continue\n        if x == 2: raise KeyError('k')\n        if x == 4: break\n        r.append(x)\n    except KeyError:\n        continue\n    finally:\n        r.append('f')\n    r.append('a')\nresult = r", `[0, "f", "a", "f", "f", 3, "f", "a", "f"]`},
		{"jumps of loops inside", "r = []\ntry:\n    for x in range(5):\n        if x == 1: continue\n        if x == 3: break\n        r.append(x)\nexcept: pass\nresult = r", "[0, 2]"},
		{"nested", "r = []\ndef f():\n    for x in range(5):\n        try:\n            try:\n                if x == 0: continue\n                if x == 1: raise KeyError('k')\n                if x == 2: raise ValueError('v')\n                if x == 3: return 'ret'\n            except KeyError:\n                r.append('K')\n            finally:\n                r.append(x)\n        except ValueError as e:\n            r.append(e)\nresult = [f(), r]", `["ret", [0, "K", 1, 2, "v", 3]]`},
		{"break of a loop with else", "r = []\nfor x in range(3):\n    try:\n        if x == 1: break\n    except: pass\nelse:\n    r.append('else')\nfor x in range(3):\n    try:\n        pass\n    except: pass\nelse:\n    r.append('end')\nresult = r", `["end"]`},
		{"return of nothing", "def f():\n    try:\n        return\n    finally:\n        pass\n    return 1\nresult = f()", "None"},
		{"the caught value in a closure", "def f():\n    try:\n        raise ValueError('v')\n    except ValueError as e:\n        g = lambda: e\n        return g()\nresult = f()", `"v"`},
		{"the caught value is set", "try:\n    raise ValueError('v')\nexcept ValueError as e:\n    e = e + '!'\n    try:\n        e += '?'\n    except: pass\n    result = e", `"v!?"`},
		{"a variable of the same name", "e = 1\ntry:\n    raise ValueError('v')\nexcept ValueError as e:\n    f = e\nresult = f", `"v"`},
		{"raise again", "try:\n    try:\n        raise ValueError('v')\n    except ValueError:\n        raise\nexcept Exception as e:\n    result = 'again'", `"again"`},
		{"raise from", "try:\n    try:\n        raise ValueError('v')\n    except ValueError as e:\n        raise KeyError('k') from e\nexcept KeyError as e:\n    result = e", `"k"`},
		{"global inside", "n = 0\ndef f():\n    global n\n    try:\n        n += 1\n    finally:\n        n += 10\nf()\nresult = n", "11"},
		{"targets inside", "d = {}\ntry:\n    a, (b, *c) = 1, (2, 3)\n    for i, d['k'] in [(1, 2)]: pass\n    for x in [7]: pass\nexcept: pass\nresult = [a, b, c, i, d, x]", `[1, 2, [3], 1, {"k": 2}, 7]`},
		{"import inside", "try:\n    import json\nexcept: pass\nresult = 1", "1"},
		{"shadowing inside", "try:\n    sum = sum([1])\nexcept: pass\nresult = sum", "1"},
		{"lists in place", "xs = []\nalias = xs\ntry:\n    xs += [1]\nexcept: pass\nresult = alias", "[1]"},
		{"walrus inside", "try:\n    if (n := 2): m = n\nexcept: pass\nresult = [n, m]", "[2, 2]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := run(t, c.code); got != c.want {
				t.Errorf("got %s\nwant %s", got, c.want)
			}
		})
	}
}
