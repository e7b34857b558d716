package library_test

import (
	"errors"
	"strings"
	"testing"

	"go.starlark.net/starlark"

	"github.com/openenv-go/openenv-go/pkg/codemode/internal/fault"
)

// TestMessages holds exceptions to saying what is there and what to write.
func TestMessages(t *testing.T) {
	for _, tt := range []struct {
		expr, class string
		says        []string
	}{
		{`{"name": 1, "id": 2}.name`, "AttributeError", []string{"name", `["name"]`}},
		{`{"name": 1}.nam3x9`, "AttributeError", []string{"nam3x9", `["nam3x9"]`}},
		{`{"id": 1, "cargo": []}["weight"]`, "KeyError", []string{"weight", "id", "cargo", ".get("}},
		{`[{}]["result"]`, "TypeError", []string{"leave", `["result"]`}},
		{`[{}]["name"]`, "TypeError", []string{"xs[0]", `["name"]`}},
		{`[][0]`, "IndexError", []string{"index 0", "empty"}},
		{`[1, 2][2]`, "IndexError", []string{"index 2", "length 2"}},
		{`{"captain": None}["captain"]["name"]`, "TypeError", []string{"None", "or {}"}},
		{`None.name`, "AttributeError", []string{"None", "or {}"}},
		{`"id " + 1`, "TypeError", []string{"string + int", "str("}},
		{`sorted([1, None])`, "TypeError", []string{"<", "None"}},
		{`max([])`, "ValueError", []string{"max", "empty", "default="}},
		{`1 / 0`, "ZeroDivisionError", []string{"division by zero"}},
		{`sum([]) / len([])`, "ZeroDivisionError", []string{"division by zero"}},
		{`json.loads("Fog until 09:00")`, "JSONDecodeError", []string{"json", "line 1", "column 1"}},
		{`json.loads("[1,\n 2 x]")`, "JSONDecodeError", []string{"line 2", "column 4"}},
		{`json.loads("1" * 10000)`, "JSONDecodeError", []string{"digits"}},
		{`int("7" * 20000)`, "ValueError", []string{"digits"}},
		{`int("1", 99)`, "ValueError", []string{"base"}},
		{`chr(-1)`, "ValueError", []string{"chr"}},
		{`"abc".split("")`, "ValueError", []string{"separator"}},
		{`"{5}".format(1)`, "IndexError", []string{"index"}},
		{`"{0.__class__.__init__}".format(len)`, "ValueError", []string{"format"}},
		{`"{0[x].y}".format({"a": 1})`, "KeyError", []string{"x"}},
		{`re.findall(r"(\w)\1", "aa")`, "PatternError", []string{`\1`, "RE2"}},
		{`re.findall(r"CR-(?=12)\d+", "CR-12")`, "PatternError", []string{"(?=", "RE2"}},
		{`re.compile("((a{100}){100}){100}")`, "PatternError", []string{"repeat"}},
		{`re.compile("(x|y|" * 100000)`, "PatternError", []string{"pattern"}},
		{`json.codecs`, "AttributeError", []string{"codecs"}},
		{`().__class__`, "AttributeError", []string{"__class__"}},
		{`[].push`, "AttributeError", []string{"append"}},
		{`[d.pop("a") for d in [{"a": 1}] for x in d]`, "RuntimeError", []string{"during iteration", "list("}},
		{`format(None, ">8")`, "TypeError", []string{"None", "or 0"}},
		{`format("1.5", ".2f")`, "ValueError", []string{"float("}},
		{`", ".join([1])`, "TypeError", []string{"str(x)"}},
		{`len(None)`, "TypeError", []string{"or []"}},
		{`{[1]: 2}["a"] if False else {1: 2}[[1]]`, "TypeError", []string{"unhashable", "tuple"}},
		{`next([1, 2])`, "TypeError", []string{"next(iter("}},
		{`map(str, []) + [1]`, "TypeError", []string{"list("}},
		{`collections.deque().popleft()`, "IndexError", []string{"popleft", "empty", "while q"}},
		{`collections.deque([1]).pop(0)`, "TypeError", []string{"popleft"}},
		{`[q.append(1) for q in [collections.deque([1])] for x in q]`, "RuntimeError", []string{"during iteration"}},
		{`set([collections.deque()])`, "TypeError", []string{"unhashable"}},
		{`collections.deque([1])[0:1]`, "TypeError", []string{"list("}},
		{`set([1])[0]`, "TypeError", []string{"sorted("}},
	} {
		_, err := evaluate(&starlark.Thread{}, tt.expr)
		var e *fault.Exception
		if !errors.As(err, &e) {
			t.Errorf("%s: %v is no exception", tt.expr, err)
			continue
		}
		if e.Class != tt.class {
			t.Errorf("%s: got %s, want %s", tt.expr, e.Class, tt.class)
		}
		for _, word := range tt.says {
			if text := e.Message + "; " + e.Hint; !strings.Contains(strings.ToLower(text), strings.ToLower(word)) {
				t.Errorf("%s: %q does not say %q", tt.expr, text, word)
			}
		}
	}
}

// TestBeyondPython holds what Python has not, or has otherwise, to what the documentation says.
func TestBeyondPython(t *testing.T) {
	for expr, want := range map[string]string{
		`str(["a", {"b": None}])`:                                `"[\"a\", {\"b\": None}]"`,
		`"%r" % "NO"`:                                            `"\"NO\""`,
		`type({}) == "dict"`:                                     "True",
		`type("") == "string" and type("") == "str"`:             "True",
		`type({}) in ("dict", "list")`:                           "True",
		`json.encode({"b": [1, 2.5, None, True], "a": "é"})`:     `"{\"a\":\"é\",\"b\":[1,2.5,null,true]}"`,
		`json.decode("[1, 2]")`:                                  "[1, 2]",
		`json.decode("x", default=None)`:                         "None",
		`json.indent("[1]")`:                                     `"[\n\t1\n]"`,
		`list("Þór".elems())`:                                    `["Þ", "ó", "r"]`,
		`[next(i) + next(i) for i in [iter([1, 2])]]`:            "[3]",
		`"append" in dir([])`:                                    "True",
		`hash("harbour") == hash("harbour")`:                     "True",
		`[x[1][1][1][0] == 1 for x in [[1]] if not x.append(x)]`: "[True]",
		`[str(x) for x in [[1]] if not x.append(x)]`:             `["[1, [...]]"]`,
		`0.5 in range(1 << 50) or 7.0 in range(1 << 50)`:         "True",
		`len(range(1 << 62))`:                                    "4611686018427387904",
	} {
		if got, err := outcome(expr); got != want {
			t.Errorf("%s: got %s, want %s (%v)", expr, got, want, err)
		}
	}
}
