package dialect_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/openenv-go/openenv-go/pkg/codemode/internal/dialect"
)

// FuzzParse: no code makes the parser panic; an error has a place in the source and says something; what is read compiles.
func FuzzParse(f *testing.F) {
	for _, dir := range []string{"snippets", "escape"} {
		for _, s := range snippets(f, dir) {
			f.Add(expandAtMost(s.sections["code"], 300))
		}
	}
	for _, code := range []string{
		"try:\n    x = 1\nexcept (A, B) as e:\n    raise\nelse:\n    del x\nfinally:\n    return", "global x; nonlocal y", "f(*a, b, **c, d=1)", "f'{x!r:>{w}}{y=}'",
		"a, *b = *c, d = [e[0], *f] = 1", "lambda *, x, **k: (y := x)", "{**a, 'b': c, d: e}", "def f(a, *b: int, c=1, **d) -> x:\n\tnonlocal e", "x[a:b, c]: int = 3", "'\\ud800\\x4'",
	} {
		f.Add(code)
	}
	o := environment(f)
	f.Fuzz(func(t *testing.T, code string) {
		if len(code) > 1<<16 {
			return
		}
		p, err := dialect.Parse(code, o)
		if err == nil {
			if err := compile(p, o); err != nil {
				t.Errorf("read, but not compiled: %v", err)
			}
			return
		}
		var e *dialect.Error
		if !errors.As(err, &e) {
			t.Fatalf("%T", err)
		}
		lines := strings.Count(strings.ReplaceAll(code, "\r", "\n"), "\n") + 1
		if e.Line < 1 || e.Line > lines || e.Column < 1 || e.Column > len(code)+1 || e.Message == "" {
			t.Errorf("%#v", e)
		}
	})
}
