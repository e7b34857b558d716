package codemode_test

import (
	"runtime/debug"
	"testing"

	"github.com/openenv-go/openenv-go/pkg/codemode"
)

// TestStackStaysSmall: nothing that code does makes Go's stack large, whose overflow ends the process.
func TestStackStaysSmall(t *testing.T) {
	defer debug.SetMaxStack(debug.SetMaxStack(8 << 20))
	for _, code := range []string{
		"def f(x): return sorted([x, x], key=f)\nf(1)",
		"def f(x): return re.sub('a', f, 'a')\nf(1)",
		"def f(x): return max([x, x], key=lambda y: try_call(f, y))\nf(1)",
		"def f(x):\n  try:\n    try:\n      try:\n        return [y for y in map(f, [x])]\n      finally:\n        pass\n    finally:\n      pass\n  except ValueError:\n    pass\nf(1)",
		"result = r",
		"x = {d: 1}",
		"x = {e: 1 for e in [d]}",
		"x = d == (d,)",
		"x = d < (d,)",
		"x = set([d])",
		"x = hash(d)",
		"x = str(d)",
		"x = json.dumps(d)",
		"fail(d)",
		"raise ValueError(d)",
		"{}[d]",
		"try:\n  x = {d: 1}\nexcept:\n  pass",
	} {
		o := run(t, "d = ()\nr = 1\nfor i in range(50000):\n  d = (d,)\n  r = [try_call(lambda: r)]\n"+code, codemode.Limits{})
		if o.Error == nil || o.Error.Limit != "nesting" {
			t.Errorf("%s: %.300s %+v", code, o.Result, o.Error)
		}
	}
	if o := run(t, "r = 1\nfor i in range(50000):\n  r = [try_call(lambda: r)]\nprint(r)", codemode.Limits{}); o.Error != nil || len(o.Stdout) > 1000 {
		t.Errorf("%d bytes: %v", len(o.Stdout), o.Error)
	}
}
