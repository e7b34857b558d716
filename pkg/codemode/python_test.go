package codemode_test

import (
	"strings"
	"testing"

	"github.com/openenv-go/openenv-go/pkg/codemode"
)

// TestAsPython: what these pieces of code print is what CPython prints.
func TestAsPython(t *testing.T) {
	for code, want := range map[string]string{
		"g = (x * 2 for x in range(3))\nprint(next(g), next(g), list(g), next(g, None))":                                                                                                                                                         "0 2 [4] None",
		"g = map(str, [1, 2])\nfor x in g: break\nprint(x, list(g), list(g))":                                                                                                                                                                    `1 ["2"] []`,
		"z = enumerate('ab')\nprint(next(z), 1 in (x for x in [1]), sum(x for x in [1, 2]), ','.join(c for c in 'ab'))":                                                                                                                          `(0, "a") True 3 a,b`,
		"f = True\nt = 0\nt += f\nt += 1\nprint(t, f + 1, 1 + (2 > 1), True + 1, -f, f < 2, 1 - f, ~f)":                                                                                                                                          "2 2 2 2 -1 True 0 -2",
		"n = float('nan')\nprint(n > 5, n < 5, 5 <= n)":                                                                                                                                                                                          "False False False",
		"def f(a, b=2):\n  for i in range(3): a += i + 1\n  while i < 5: i += 1\n  return a, i - b\nprint(f(True))":                                                                                                                              "(7, 3)",
		"d = {'a': 1}\nprint(d.keys() == {'a'}, d.keys() & {'a', 'b'} == {'a'}, d.items() - {('a', 1)}, {'a'} - d.keys())":                                                                                                                       "True True set() set()",
		"d, e = {'a': [1], 'b': 2}, {'b': 2, 'a': [1]}\nprint(d.keys() == e.keys(), d.items() == e.items(), d.keys() <= e.keys(), d.keys() == ['a', 'b'])":                                                                                       "True True True False",
		"from collections import deque\nq = deque([1, 2, 3], maxlen=3)\nq.append(4)\nq.appendleft(0)\nq.rotate(1)\nprint(q, q[0], q[-1], 2 in q, len(q), bool(deque()))":                                                                         "deque([3, 0, 2], maxlen=3) 3 2 True 3 False",
		"from collections import deque\nq = deque('ab')\nq += [1]\nq.extendleft([2, 3])\na, *b = q\nq[0] = 9\ndel q[1]\nprint(q == deque([9, 'a', 'b', 1]), a, len(b), q.popleft(), q.pop(), list(q) == ['a', 'b'])":                             "True 3 4 9 1 True",
		"from collections import deque\nq, seen = deque([(0, 0)]), {(0, 0)}\nwhile q:\n  x, y = q.popleft()\n  for p in ((x + 1, y), (x, y + 1)):\n    if p not in seen and max(p) < 5:\n      seen.add(p)\n      q.append(p)\nprint(len(seen))": "25",
		"from collections import OrderedDict\no = OrderedDict(a=1, b=2, c=3)\no.move_to_end('a')\no.move_to_end('c', last=False)\nprint(list(o), o.popitem(last=False), o.popitem())":                                                            `["c", "b", "a"] ("c", 3) ("a", 1)`,
		"n = 5\nfor f in (lambda: n(3), lambda: (n)(1), lambda: {'a': 1}['a'](), lambda: 'x'.upper()(), lambda: f(**5), lambda: print(**{1: 2})):\n  try:\n    f()\n  except TypeError:\n    print('t', end='')":                                 "tttttt",
		"def f():\n  x = 1\n  del x\n  return x\ntry:\n  f()\nexcept NameError:\n  print('caught')":                                                                                                                                              "caught",
		"try:\n  print(w)\nexcept NameError:\n  print('caught')\nw = 1":                                                                                                                                                                          "caught",
		"def f():\n  if False: y = 1\n  return y\ntry:\n  f()\nexcept UnboundLocalError:\n  print('caught')":                                                                                                                                     "caught",
	} {
		if o := run(t, code, codemode.Limits{}); o.Error != nil || strings.TrimSuffix(o.Stdout, "\n") != want {
			t.Errorf("%s\n got %s, want %s (%v)", code, o.Stdout, want, o.Error)
		}
	}
}

// TestWhatRowsAre as JSON: lists.
func TestWhatRowsAre(t *testing.T) {
	const code = "from collections import deque\nq = deque([1], maxlen=2)\nresult = [q, (x for x in [2]), {'a': 1}.keys(), json.dumps(deque([3]))]"
	if o := run(t, code, codemode.Limits{}); o.Error != nil || string(o.Result) != `[[1],[2],["a"],"[3]"]` {
		t.Errorf("%s %v", o.Result, o.Error)
	}
	const cyclic = "from collections import deque\nq = deque()\nq.append(q)\nprint(q)\nresult = q"
	if o := run(t, cyclic, codemode.Limits{}); o.Error == nil || !strings.Contains(o.Error.Message, "cyclic") || o.Stdout != "deque([deque([...])])\n" {
		t.Errorf("%+v", o)
	}
	const grows = "from collections import deque\nq = deque([0])\nwhile True: q.extend(q)"
	if o := run(t, grows, codemode.Limits{}); o.Error == nil || o.Error.Kind != codemode.Limited {
		t.Errorf("%+v", o)
	}
}

// TestOwnWords: messages name functions and values as the code does, and hold nothing that cannot be seen.
func TestOwnWords(t *testing.T) {
	for _, c := range []struct{ code, says, hint string }{
		{"rows = 5\nrows(3)", "rows is of type int, which is not callable", "assigned"},
		{"list = [1]\nlist((1, 2))", "list is of type list", "hides"},
		{"{'a': 1}.get('b')()", "NoneType is not callable", "None"},
		{"s = 'x'\ns += 1", "string + int", "str("},
		{"try:\n  def f(a): pass\nfinally: pass\nf()", "function f missing 1 argument (a)", ""},
		{`echo(**{"\x00\x1b": 2})`, `\x00\x1b`, ""},
	} {
		e := run(t, c.code, codemode.Limits{}).Error
		if e == nil || !strings.Contains(e.Message, c.says) || !strings.Contains(e.Hint, c.hint) {
			t.Errorf("%s: %+v", c.code, e)
		}
	}
	if e := run(t, "echo()\necho()", codemode.Limits{Calls: 1}).Error; e == nil || !strings.Contains(e.Message, "more than 1 call of") {
		t.Errorf("%+v", e)
	}
}
