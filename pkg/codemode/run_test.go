package codemode_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/openenv-go/openenv-go/pkg/codemode"
)

// echo is a tool that answers with its arguments.
func echo(_ context.Context, _ string, args json.RawMessage) (codemode.Answer, error) {
	return codemode.Answer{Value: args}, nil
}

var echoTool = codemode.Tool{Name: "echo", Input: json.RawMessage(`{"type": "object", "properties": {"z": {}, "a": {}, "from": {}}, "additionalProperties": false}`)}

func run(t *testing.T, code string, limits codemode.Limits) codemode.Outcome {
	t.Helper()
	return codemode.Run(t.Context(), codemode.Job{Code: code, Tools: []codemode.Tool{echoTool}, Limits: limits}, echo)
}

// TestValuesComeBackAsTheyWent: what code passes to a tool is what it gets back, and what comes out.
func TestValuesComeBackAsTheyWent(t *testing.T) {
	for _, c := range []struct{ value, json string }{
		{"None", `null`},
		{"[True, False]", `[true,false]`},
		{"9007199254740993", `9007199254740993`},
		{"-(2 ** 200)", `-1606938044258990275541962092341162602522202993782792835301376`},
		{"0.1 + 0.2", `0.30000000000000004`},
		{"3.0", `3.0`},
		{"-0.0", `-0.0`},
		{"5e-324", `5e-324`},
		{"1.7976931348623157e308", `1.7976931348623157e+308`},
		{`"\"\\\n\u0000 é 海 🚢 \u2028"`, `"\"\\\n\u0000 é 海 🚢 ` + "\u2028" + `"`},
		{`{"b": 1, "a": [{}, [], ""]}`, `{"b":1,"a":[{},[],""]}`},
		{`{1: 2, None: 3, True: 4, 1.5: 5}`, `{"1":2,"null":3,"true":4,"1.5":5}`},
		{`(1, [2])`, `[1,[2]]`},
		{`range(3)`, `[0,1,2]`},
		{strings.Repeat("[", 40) + strings.Repeat("]", 40), strings.Repeat("[", 40) + strings.Repeat("]", 40)},
	} {
		o := run(t, "result = echo("+c.value+`)["z"]`, codemode.Limits{})
		if o.Error != nil || string(o.Result) != c.json {
			t.Errorf("%s: %s %v", c.value, o.Result, o.Error)
		}
	}
}

// TestResultBehindAnother: a global that is set from within functions is the outcome, whatever else has its name.
func TestResultBehindAnother(t *testing.T) {
	const set = "def f():\n  result = 1\n  def g():\n    global result\n    result = 7\n  g()\nf()"
	if o := run(t, set, codemode.Limits{}); string(o.Result) != "7" || o.Error != nil {
		t.Errorf("%s, %v", o.Result, o.Error)
	}
	named := codemode.Job{Code: "result = 8\n5", Tools: []codemode.Tool{{Name: "result", Input: json.RawMessage("{}")}}}
	if o := codemode.Run(t.Context(), named, nil); string(o.Result) != "8" || o.Error != nil {
		t.Errorf("%s, %v", o.Result, o.Error)
	}
}

// TestWhatIsNoJSON is refused with its place, as an outcome and as an argument.
func TestWhatIsNoJSON(t *testing.T) {
	for _, c := range []struct{ value, where, what string }{
		{`{"a": [1, {"b c": len}]}`, `.a[1]["b c"]`, "function"},
		{`{"a": [1, {"b": lambda: 1}]}`, `.a[1].b`, "function"},
		{`[0, float("nan")]`, "[1]", "nan"},
		{`[float("-inf")]`, "[0]", "-inf"},
		{`[{(1, 2): 3}]`, "[0]", "tuple"},
		{`{1: 2, "1": 3}`, "", "two keys"},
		{`[ValueError("x")]`, "[0]", "error"},
		{`10 ** 5000`, "", "digits"},
	} {
		for prefix, kind := range map[string]codemode.Kind{"result": codemode.Result, "echo: z": codemode.Runtime} {
			code := "result = " + c.value
			if kind == codemode.Runtime {
				code = "echo(z=" + c.value + ")"
			}
			e := run(t, code, codemode.Limits{}).Error
			if e == nil || e.Kind != kind || !strings.Contains(e.Message, prefix+c.where+" ") || !strings.Contains(e.Message, c.what) {
				t.Errorf("%s: %+v", code, e)
			}
		}
	}
}

func TestLimits(t *testing.T) {
	for _, c := range []struct {
		limit, code string
		limits      codemode.Limits
	}{
		{"steps", "while True: pass", codemode.Limits{Steps: 1000}},
		{"steps", "sum(range(1 << 40))", codemode.Limits{Steps: 1000}},
		{"time", "while True: pass", codemode.Limits{Steps: 1 << 60, Time: time.Millisecond}},
		{"memory", `"x" * (1 << 40)`, codemode.Limits{}},
		{"nesting", "def f(): f()\nf()", codemode.Limits{Nesting: 10}},
		{"nesting", "f = lambda: f()\nf()", codemode.Limits{Nesting: 10}},
		{"nesting", "def f(x): return sorted([x, x], key=f)\nf(1)", codemode.Limits{}},
		{"nesting", "try_call(*[try_call] * 10000)", codemode.Limits{}},
		{"nesting", "def f(n):\n  try:\n    return f(n + 1)\n  finally:\n    f(n)\nf(1)", codemode.Limits{}},
		{"nesting", "x = []\nfor i in range(101): x = [x]\nresult = x", codemode.Limits{}},
		{"nesting", "x = []\nfor i in range(101): x = [x]\necho(x)", codemode.Limits{}},
		{"nesting", "x = TypeError\nfor i in range(101): x = (x,)\ntry:\n  raise KeyError()\nexcept x: pass", codemode.Limits{}},
		{"steps", "x = (TypeError,)\nfor i in range(40): x = (x, x)\ntry:\n  raise KeyError()\nexcept x: pass", codemode.Limits{Steps: 100_000}},
		{"output", "while True: print('0123456789')", codemode.Limits{Output: 1000}},
		{"output", "result = 'x' * 1001", codemode.Limits{Output: 1000}},
		{"output", "result = 'x' * 999", codemode.Limits{Output: 1000}},
		{"output", "result = '\\n' * 600", codemode.Limits{Output: 1000}},
		{"output", "result = ['x' * 600, 'y' * 600]", codemode.Limits{Output: 1000}},
		{"output", "echo('x' * 600, 'y' * 600)", codemode.Limits{Output: 1000}},
		{"output", "echo('x' * 993)", codemode.Limits{Output: 1000}}, // {"z":"…"}
		{"output", "echo()", codemode.Limits{Output: 1}},
		{"calls", "for i in range(11): try_call(echo, nothing=1)", codemode.Limits{Calls: 10}},
		{"calls", "for i in range(11): try_call(call_tool, 'nothing')", codemode.Limits{Calls: 10}},
		{"code", "# " + strings.Repeat("x", 1000), codemode.Limits{Code: 1000}},
	} {
		o := run(t, c.code, c.limits)
		if o.Error == nil || o.Error.Kind != codemode.Limited || o.Error.Limit != c.limit || len(o.Stdout) > max(c.limits.Output, 1) {
			t.Errorf("%s: %s: %+v", c.limit, c.code, o)
		}
	}
}

// TestNothingRunsAfterALimit: no clause of the code sees one, and nothing of it runs any more.
func TestNothingRunsAfterALimit(t *testing.T) {
	for _, code := range []string{
		"try:\n  while True: pass\nexcept:\n  print('ran')\nfinally:\n  print('ran')",
		"def f():\n  try:\n    while True: pass\n  finally:\n    return 1\nf()\nprint('ran')",
		"def f():\n  while True: pass\ntry_call(f)\nprint('ran')",
		"sorted([1, 2], key=lambda x: [x for i in range(10000000)])\nprint('ran')",
		"for i in range(100000): try_call(lambda: range(10000000)[5] + sum(range(10000000)))\nprint('ran')",
	} {
		o := run(t, code, codemode.Limits{Steps: 10_000})
		if o.Error == nil || o.Error.Limit != "steps" || o.Stdout != "" || o.Steps != 10_000 {
			t.Errorf("%s: %+v", code, o)
		}
	}
}

// TestTheHostsError ends the code at once, as the end of its context does.
func TestTheHostsError(t *testing.T) {
	const code = "try:\n  echo(1)\nexcept:\n  print('ran')\nprint('ran')"
	job := codemode.Job{Code: code, Tools: []codemode.Tool{echoTool}}
	o := codemode.Run(t.Context(), job, func(context.Context, string, json.RawMessage) (codemode.Answer, error) {
		return codemode.Answer{}, errors.New("the session is closed")
	})
	if o.Error == nil || o.Error.Message != "the session is closed" || o.Error.Line != 2 || o.Stdout != "" {
		t.Errorf("%+v", o)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	o = codemode.Run(ctx, job, func(ctx context.Context, _ string, _ json.RawMessage) (codemode.Answer, error) {
		cancel(errors.New("nobody waits for it"))
		return codemode.Answer{Value: []byte("1")}, nil
	})
	if o.Error == nil || o.Error.Message != "nobody waits for it" || o.Stdout != "" {
		t.Errorf("%+v", o)
	}
	if o = codemode.Run(ctx, job, echo); o.Error == nil || o.Calls != 0 {
		t.Errorf("%+v", o)
	}
}

func TestTimeCountsCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		job := codemode.Job{Code: "while True: try_call(echo)", Tools: []codemode.Tool{echoTool}, Limits: codemode.Limits{Time: 5 * time.Second}}
		o := codemode.Run(t.Context(), job, func(ctx context.Context, _ string, _ json.RawMessage) (codemode.Answer, error) {
			select {
			case <-ctx.Done():
				return codemode.Answer{}, ctx.Err()
			case <-time.After(2 * time.Second):
				return codemode.Answer{Failure: &codemode.CallError{Type: "timeout", Message: "too slow"}}, nil
			}
		})
		if o.Error == nil || o.Error.Limit != "time" || o.Calls != 3 || time.Since(began) != 5*time.Second {
			t.Errorf("%+v after %v", o, time.Since(began))
		}
	})
}

// TestAPanic of the host's function, or of anything else, is an error.
func TestAPanic(t *testing.T) {
	o := codemode.Run(t.Context(), codemode.Job{Code: "echo(1)", Tools: []codemode.Tool{echoTool}}, nil)
	if o.Error == nil || !strings.HasPrefix(o.Error.Message, "internal error") || string(o.Result) != "null" {
		t.Errorf("%+v", o)
	}
}

func TestFunctionNames(t *testing.T) {
	for _, c := range []struct{ tools, want []string }{
		{[]string{"search-notes", "import", "print", "sum", "load", "ValueError"}, []string{"search_notes", "import_", "print_", "sum_", "load_", "ValueError_"}},
		{[]string{"a-b", "a.b", "c"}, []string{"", "", "c"}},
		{[]string{"sum", "sum_"}, []string{"", ""}},
		{[]string{"2fa", "", "größe", "a b/ c"}, []string{"_2fa", "_", "größe", "a_b__c"}},
		{[]string{"result", "match"}, []string{"result", "match"}},
	} {
		var tools []codemode.Tool
		for _, n := range c.tools {
			tools = append(tools, codemode.Tool{Name: n})
		}
		if got := codemode.FunctionNames(tools); !slices.Equal(got, c.want) {
			t.Errorf("%q: got %q, want %q", c.tools, got, c.want)
		}
	}
}

func TestArguments(t *testing.T) {
	for _, c := range []struct{ code, want string }{
		{`echo(1, 2, 3)`, `{"z":1,"a":2,"from":3}`},
		{`echo(1, from_=2)`, `{"z":1,"from":2}`},
		{`echo(**{"from": 1})`, `{"from":1}`},
		{`call_tool("echo", {"from": 1}, a=2)`, `{"from":1,"a":2}`},
		{`call_tool("echo")`, `{}`},
		{`[t["function"] for t in list_tools()]`, `["echo"]`},
	} {
		if o := run(t, c.code, codemode.Limits{}); o.Error != nil || string(o.Result) != c.want {
			t.Errorf("%s: %s %v", c.code, o.Result, o.Error)
		}
	}
	for _, c := range []struct {
		code string
		kind codemode.Kind
		says string
	}{
		{`echo(1, 2, 3, 4)`, codemode.Runtime, "3 by position (z, a, from_)"},
		{`echo(1, z=1)`, codemode.Runtime, "z is given twice"},
		{`echo(from_=1, **{"from": 2})`, codemode.Runtime, "from is given twice"},
		{`echo(rom_=1)`, codemode.ToolErr, "did you mean from_?"},
		{`call_tool("eco")`, codemode.ToolErr, "did you mean echo?"},
		{`call_tool(echo)`, codemode.Runtime, "text"},
		{`call_tool("echo", [1])`, codemode.Runtime, "dict"},
	} {
		e := run(t, c.code, codemode.Limits{}).Error
		if e == nil || e.Kind != c.kind || !strings.Contains(e.Message, c.says) || e.Line != 1 {
			t.Errorf("%s: %+v", c.code, e)
		}
	}
}
