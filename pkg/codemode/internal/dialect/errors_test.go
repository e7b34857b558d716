package dialect_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/openenv-go/openenv-go/pkg/codemode/internal/dialect"
)

// TestErrors: faults are found at their place, and the message says what to write.
func TestErrors(t *testing.T) {
	o := environment(t)
	for _, c := range []struct {
		code         string
		line, column int
		says         string // words, parted by |
	}{
		{"if x = 3:\n  pass", 1, 6, "expected : after if|write =="},
		{"x = 3 +", 1, 8, "expected an expression, not the end of the line"},
		{"x = (1,\ny = 2\n", 1, 5, "the ( of line 1 is never closed"},
		{"[1, 2)", 1, 6, ") does not match the [ of line 1, column 1"},
		{"print('a' + )", 1, 13, "expected an expression, not )"},
		{"x = [1, 2\n3]", 2, 1, "line above may lack a comma"},
		{"print('it's')", 1, 11, "a quote within text"},
		{"def f(x)\n  return x", 1, 9, "expected : after def"},
		{"if True:\nx = 1", 2, 1, "indent the lines"},
		{"if True:", 1, 9, "write pass"},
		{"  x = 1", 1, 3, "indented line"},
		{"if 1:\n    x = 1\n  y = 2", 3, 3, "indentation of 2 columns|0 or 4"},
		{"else:\n  pass", 1, 1, "else belongs to no statement"},
		{"x = 'abc", 1, 5, "not closed in its line"},
		{"x = '''abc\n", 1, 5, "''' is never closed"},
		{"é = f'{}'", 1, 7, "empty field|{{}}"},
		{"x = f'}'", 1, 7, "single }|}}"},
		{"x = f'{1!x}'", 1, 9, "!r, !s and !a"},
		{"x = f'{a b}'", 1, 10, "not b"},
		{"x = f'ä{undefined_name}'", 1, 9, "undefined: undefined_name"},
		{"x = 'ä' + undefined_name", 1, 11, "undefined"},
		{"x++", 1, 4, "x += 1"},
		{"a && b", 1, 4, "write and"},
		{"!a", 1, 1, "write not"},
		{"a = null", 1, 5, "write None"},
		{"const x = 1", 1, 1, "write name = value"},
		{"if (1) {\n}", 1, 8, "a block begins with :"},
		{"if 1:\n  pass\nelse if 2:\n  pass", 3, 6, "write elif"},
		{"raise ValueError, 'x'", 1, 17, "ValueError(\"…\")"},
		{"try:\n  pass\nexcept ValueError, e:\n  pass", 3, 8, "as e"},
		{"try:\n  pass", 2, 7, "except or finally"},
		{"x = lambda: (y := 1)", 1, 14, "no := in a lambda"},
		{"[x := 1 for x in [1]]", 1, 2, "use another name"},
		{"x = []\nx[1:2] = 3", 2, 1, "xs[:a] + [...] + xs[b:]"},
		{"json.x = 3", 1, 1, "attributes cannot be set|d[\"x\"]"},
		{"3 = x", 1, 1, "=="},
		{"del x.y", 1, 5, "attributes cannot be deleted"},
		{"def f():\n  x = 1\nprint(x)", 3, 7, "undefined: x|the function f only"},
		{"try:\n  pass\nexcept Exception as err:\n  pass\nerr", 5, 1, "undefined: err|its except only"},
		{"break", 1, 1, "break outside of a loop"},
		{"for x in []:\n  def f():\n    continue", 3, 5, "continue outside of a loop"},
		{"def f():\n  nonlocal zz\n  zz = 1", 2, 12, "no function around has zz"},
		{"import json.decoder", 1, 1, "write import json"},
		{"from json import *", 1, 1, "write import json"},
		{"x = 08", 1, 5, "write 8"},
		{"x = 1abc", 1, 5, "no number"},
		{"x = b'a'", 1, 5, "b\"…\""},
		{`x = "\x4"`, 1, 6, `\x wants 2`},
		{`x = "\ud800"`, 1, 6, `\ud800`},
		{"x = “a”", 1, 5, "typographic quote"},
		{"x\u200b = 1", 1, 2, "U+200B"},
		{"x = 1 \x00", 1, 7, "U+0000"},
		{"x = 'é\xff'", 1, 7, "0xff|UTF-8"},
		{"f(a=1, a=2)", 1, 8, "given twice"},
		{"f(a=1, 2)", 1, 8, "put it in front"},
		{"f(1, x for x in y)", 1, 6, "put it in brackets"},
		{"def f(a=1, b): pass", 1, 12, "has no default"},
		{"x = {1: 2, 3}", 1, 13, "expected : after the key"},
		{"x = *[1]", 1, 5, "star"},
		{"a, *b, *c = x", 1, 8, "two stars"},
		{"The code:\n```\nx\n```", 1, 5, "send the code alone"},
		{"getvessel(1)", 1, 1, "get_vessel?|list_tools()"},
		{"search.notes(1)", 1, 1, "search_notes"},
		{"x = 9" + strings.Repeat("9", 5000), 1, 5, "digits"},
	} {
		_, err := dialect.Parse(c.code, o)
		var e *dialect.Error
		if !errors.As(err, &e) {
			t.Errorf("%q: %v", c.code, err)
			continue
		}
		if e.Line != c.line || e.Column != c.column {
			t.Errorf("%q: %v; want line %d, column %d", c.code, e, c.line, c.column)
		}
		for _, word := range strings.Split(c.says, "|") {
			if !strings.Contains(e.Error(), word) {
				t.Errorf("%q: %v does not say %q", c.code, e, word)
			}
		}
	}
}

// TestNesting: source of any shape that nests deeply is refused, by a limit, and what does not is read.
func TestNesting(t *testing.T) {
	o := environment(t)
	for name, shape := range map[string][3]string{
		"brackets": {"[", "", "]"}, "calls": {"len(", "1", ")"}, "sums": {"1+", "1", ""}, "attributes": {"", "json", ".a"}, "not": {"not ", "1", ""},
		"power": {"2**", "1", ""}, "conditions": {"1 if 2 else ", "3", ""}, "comparisons": {"1<", "2", ""}, "or": {"1 or ", "2", ""}, "fields": {"f'{", "1", "}'"},
		"specs": {"f'{1:{", "2", "}}'"}, "dicts": {"{1: ", "2", "}"}, "indices": {"", "json", "[0]"}, "elif": {"", "if 1: pass", "\nelif 2: pass"},
		"blocks": {"", "", ""}, "sequences": {"", "1", "()"},
	} {
		for _, n := range []int{30, 30000} {
			code := strings.Repeat(shape[0], n) + shape[1] + strings.Repeat(shape[2], n)
			if name == "blocks" {
				var b strings.Builder
				for i := range min(n, 600) {
					b.WriteString(strings.Repeat(" ", i) + "if 1:\n")
				}
				code = b.String() + strings.Repeat(" ", min(n, 600)) + "pass"
			}
			p, err := dialect.Parse(code, o)
			if n == 30 && err == nil {
				err = compile(p, o)
			}
			var e *dialect.Error
			if n == 30 && err != nil || n > 30 && (!errors.As(err, &e) || e.Limit != "nesting") {
				t.Errorf("%s, %d times: %v", name, n, err)
			}
		}
	}
}

// BenchmarkParse reads a hundred lines.
func BenchmarkParse(b *testing.B) {
	o := environment(b)
	var lines []string
	for _, s := range snippets(b, "snippets") {
		if code := s.sections["code"]; strings.HasPrefix(s.name, "task-") && len(lines) < 100 {
			lines = append(lines, strings.Split(code, "\n")...)
		}
	}
	code := strings.Join(lines, "\n")
	b.Logf("%d lines", len(lines))
	for b.Loop() {
		if _, err := dialect.Parse(code, o); err != nil {
			b.Fatal(err)
		}
	}
}
