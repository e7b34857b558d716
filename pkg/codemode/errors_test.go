package codemode_test

import (
	"strings"
	"testing"

	"github.com/openenv-go/openenv-go/pkg/codemode"
)

func TestText(t *testing.T) {
	const code = `def outer(rows):
    return [inner(r) for r in rows]

def inner(row):
    try:
        return row["é"] + 1
    finally:
        print("done")

outer([{"é": 1}, {"é": None}])`
	const want = `TypeError: unsupported operands: NoneType + int
line 6, in inner:
            return row["é"] + 1
                            ^
hint: a value is None: test for it, or write (x or 0)
called from line 2, in outer
called from line 10`
	o := run(t, code, codemode.Limits{})
	if got := o.Error.Text(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if o.Stdout != "done\ndone\n" {
		t.Errorf("%q", o.Stdout)
	}
}

// TestErrorsAreShort, whatever the code puts into them.
// TestTextNames: the text says whose failure it is, once, and which key is missing.
func TestTextNames(t *testing.T) {
	failing := func(message string) *codemode.Error {
		return &codemode.Error{Kind: codemode.ToolErr, Tool: "answer", Message: message}
	}
	for message, want := range map[string]string{
		"the question has been answered": "answer: the question has been answered",
		"answer has no parameter x":      "answer has no parameter x",
		`tool "answer" panicked`:         `tool "answer" panicked`,
		"answered: answer again":         "answered: answer again",
		"no":                             "answer: no",
	} {
		if got := failing(message).Text(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if got := run(t, `{}["k"]`, codemode.Limits{}).Error.Text(); !strings.HasPrefix(got, `KeyError: "k"`) {
		t.Error(got)
	}
}

func TestErrorsAreShort(t *testing.T) {
	for _, code := range []string{
		`fail("\u0000" * 100000)`,
		`raise ValueError("é" * 100000)`,
		`{}["k" * 100000]`,
		"def " + strings.Repeat("f", 10000) + "(): fail()\n" + strings.Repeat("f", 10000) + "()",
		`x = "` + strings.Repeat("海", 10000) + `" + None`,
		"call_tool('x' * 100000)",
		"echo(**{'x' * 100000: 1})",
		"result = {'x' * 100000: len}",
		strings.Repeat("x", 100000),
	} {
		e := run(t, code, codemode.Limits{}).Error
		if e == nil || len(e.Text()) > 40_000 {
			t.Errorf("%.100s: %d bytes", code, len(e.Text()))
		}
		valid(t, codemode.Outcome{Result: []byte("null"), Error: e})
	}
}

func TestExceptions(t *testing.T) {
	const try = "try:\n  %\nexcept CLASS as e:\n  result = [str(e), type(e).__name__, isinstance(e, Exception)]"
	for _, c := range []struct{ body, class, want string }{
		{`raise ValueError("x")`, "ValueError", `["x","ValueError",true]`},
		{`raise ValueError`, "Exception", `["","ValueError",true]`},
		{`raise KeyError("x")`, "LookupError", `["x","KeyError",true]`},
		{`raise ValueError("x")`, "(KeyError, ValueError)", `["x","ValueError",true]`},
		{`raise ValueError("a", 1)`, "ValueError", `["(\"a\", 1)","ValueError",true]`},
		{`fail("a", 1)`, "Exception", `["a 1","Exception",true]`},
		{`[].x`, "AttributeError", ``},
		{`{}["k"]`, "KeyError", ``},
		{`[][0]`, "IndexError", ``},
		{`1 // 0`, "ArithmeticError", `["division by zero","ZeroDivisionError",true]`},
		{`int("x")`, "ValueError", ``},
		{`json.loads("{")`, "json.JSONDecodeError", ``},
		{`re.compile("(")`, "re.error", ``},
		{`re.compile("(")`, "ValueError", ``},
		{`raise UnboundLocalError("x")`, "NameError", `["x","UnboundLocalError",true]`},
		{`raise IOError("x")`, "OSError", `["x","OSError",true]`},
		{`a, b = [1]`, "ValueError", ``},
		{`(lambda: 1)(2)`, "TypeError", ``},
		{`assert 1 == 2, "no"`, "AssertionError", `["no","AssertionError",true]`},
		{`call_tool("none")`, "ToolError", `["there is no tool \"none\": list_tools() lists them","ToolError",true]`},
	} {
		code := strings.NewReplacer("%", c.body, "CLASS", c.class).Replace(try)
		o := run(t, code, codemode.Limits{})
		if o.Error != nil || c.want != "" && string(o.Result) != c.want {
			t.Errorf("%s: %s %v", code, o.Result, o.Error)
		}
	}
	for _, c := range []struct{ body, class string }{
		{`call_tool("none")`, "ValueError"},
		{`{}["k"]`, "(IndexError, ToolError)"},
		{`(lambda: 1)(2)`, "KeyError"},
		{`raise "x"`, "ValueError"},
		{`raise`, "ValueError"},
	} {
		code := strings.NewReplacer("%", c.body, "CLASS", c.class).Replace(try)
		if o := run(t, code, codemode.Limits{}); o.Error == nil || o.Error.Line != 2 {
			t.Errorf("%s: %s %v", code, o.Result, o.Error)
		}
	}
}

// TestArgumentsThatDoNotFit are the caller's fault: the error is where the call is, not where the function is.
func TestArgumentsThatDoNotFit(t *testing.T) {
	for _, code := range []string{
		"def f(a):\n  return a\nx = f()",
		"f = lambda a: a\n\nx = f(1, 2)",
		"def f(*, a):\n  return a\nx = (1 and\n  f(b=1))",
	} {
		e := run(t, code, codemode.Limits{}).Error
		if e == nil || e.Kind != codemode.Runtime || e.Line < 3 || !strings.Contains(e.Source, "f(") || e.Trace != nil {
			t.Errorf("%s: %+v", code, e)
		}
	}
}

// TestNamesOfFunctions are the code's, wherever a function is made.
func TestNamesOfFunctions(t *testing.T) {
	o := run(t, "try:\n  def f(): fail('x')\n  def max(): pass\n  print(f.__name__, f, max.__name__)\nfinally:\n  pass\nf()", codemode.Limits{})
	if want := "f <function f> max\n"; o.Stdout != want || o.Error == nil || o.Error.Trace[len(o.Error.Trace)-1].Function != "f" {
		t.Errorf("%+v, %+v", o, o.Error)
	}
}

// TestRaisedAgain: an error that is raised again is what it was, where it was.
func TestRaisedAgain(t *testing.T) {
	for _, again := range []string{"raise", "raise e"} {
		e := run(t, "try:\n  call_tool('none')\nexcept Exception as e:\n  try:\n    fail('x')\n  except:\n    pass\n  "+again, codemode.Limits{}).Error
		if e == nil || e.Kind != codemode.ToolErr || e.Line != 2 || e.Tool != "none" {
			t.Errorf("%s: %+v", again, e)
		}
	}
}

func TestCheck(t *testing.T) {
	if e := codemode.Check(codemode.Job{Code: "echo(1)", Tools: []codemode.Tool{echoTool}}); e != nil {
		t.Error(e.Text())
	}
	if e := codemode.Check(codemode.Job{Code: "\necho(1)"}); e == nil || e.Kind != codemode.Syntax || e.Line != 2 {
		t.Errorf("%+v", e)
	}
}
