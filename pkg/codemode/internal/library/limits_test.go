package library_test

import (
	"errors"
	"testing"

	"go.starlark.net/starlark"

	"github.com/openenv-go/openenv-go/pkg/codemode/internal/fault"
)

// A meter bounds steps and room, as that of a run does.
type meter struct{ steps, room int }

func (m *meter) Charge(n int) error {
	if m.steps -= n; m.steps < 0 {
		return &fault.Limit{Name: "steps"}
	}
	return nil
}

func (m *meter) Room(n int) error {
	if n > m.room {
		return &fault.Limit{Name: "memory"}
	}
	return nil
}

func (m *meter) Depth() int { return 100 }

// TestLimits holds whatever could take long, or much, to ending as a limit: without one, hours would not be enough.
func TestLimits(t *testing.T) {
	const shared = `[(xs.append(xs[-1:] + xs[-1:]), xs) for xs in [[1]] for i in range(60)][0][1]`
	for _, expr := range []string{
		"sum(range(1 << 50))", "max(range(1 << 50))", "min(range(1 << 50), key=lambda x: x)", "all(range(1, 1 << 50))",
		"list(range(1 << 40))", "tuple(range(1 << 40))", "set(range(1 << 40))", "sorted(range(1 << 40))", "enumerate(range(1 << 40))",
		"zip(range(1 << 40), range(1 << 40))", "map(str, range(1 << 40))", "filter(None, range(1 << 40))", "reversed(range(1 << 40))",
		"dict(zip(range(1 << 40), range(1 << 40)))", "iter(range(1 << 40))", `"x".ljust(1 << 34)`, `"x".center(1 << 34)`, `"x".zfill(1 << 34)`,
		`"{:>2000000000}".format("x")`, `format(1.5, ".2000000000f")`, `"%2000000000d" % 1`, `"%.*f" % (2000000000, 1.5)`, `"x" * (1 << 40)`,
		"[0] * (1 << 36)", "(0,) * (1 << 62)", `("a" * 100000).replace("a", "b" * 100000)`, `("x" * 1000000).join(["a"] * 1000)`,
		"pow(9, pow(9, 9))", "1 << 1000000000", "pow(3, 1 << 400000, (1 << 4000) + 1)", "math.factorial(1 << 30)", "math.comb(1 << 40, 1 << 39)",
		"[1, 2].extend(range(1 << 40))", "set([1]).union(range(1 << 40))",
		"set([1]).issubset(range(1 << 40))", "{}.update(zip(range(1 << 40), range(1 << 40)))", "dict.fromkeys(range(1 << 40))",
		"collections.Counter(range(1 << 40))", "collections.Counter(a=1 << 50).elements()", `json.loads("[" * 1000000)`,
		`re.findall("", "x" * 4000000)`, `re.search("(a|b)*c", "a" * 20000000)`, `[re.search("(x*)*y", "x" * 100000) for i in range(100)]`,
		`re.sub("a", "b" * 1000000, "a" * 1000000)`, `"a," * 10000000 and ("a," * 6000000).split(",")`, `("\t" * 100000).expandtabs(100000)`,
		`math.prod(range(1, 1 << 40))`, `math.fsum(range(1 << 50))`, `", ".join(["1234"] * 200000 * 10)`, `next(filter(None, range(1 << 50)))`,
		"str(" + shared + ")", shared + " == " + shared, `json.dumps(` + shared + `)`,
	} {
		thread := &starlark.Thread{}
		fault.Install(thread, &meter{steps: 500_000, room: 32 << 20})
		v, err := evaluate(thread, expr)
		var limit *fault.Limit
		if !errors.As(err, &limit) {
			got := "nothing"
			if v != nil {
				got = v.Type()
			}
			t.Errorf("%s: got %s (%v), want a limit", expr, got, err)
		}
	}
}

func FuzzFormat(f *testing.F) {
	for _, s := range []string{"{:>8,.2f}", "{0[a]!r:{1}}", "%-*.3d%%", "%(a)s", "{:_x}", "08.3f", "é^+#012_.3g"} {
		f.Add(s, "1.5", int64(3))
	}
	f.Fuzz(func(t *testing.T, format, text string, n int64) {
		thread := &starlark.Thread{}
		fault.Install(thread, &meter{steps: 1_000_000, room: 1 << 20})
		for _, expr := range []string{"f.format(s, n, x, a=s)", "f % s", "f % n", "f % x", "f % (s, n, x)", "format(n, f)", "format(s, f)", "format(x, f)",
			`f % {"a": n}`, "int(s)", "float(s)", "re.findall(f, s)", "re.sub(s, f, s)", "json.loads(f)", "s.title() + s.capitalize()"} {
			v, err := evaluateWith(thread, expr, starlark.StringDict{
				"f": starlark.String(format), "s": starlark.String(text), "n": starlark.MakeInt64(n), "x": starlark.Float(float64(n) / 7),
			})
			if v == nil && err == nil {
				t.Fatal("neither a value nor an error")
			}
		}
	})
}
