//go:build linux && (amd64 || arm64)

package sandbox_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/openenv-go/openenv-go/pkg/codemode"
	"github.com/openenv-go/openenv-go/pkg/codemode/codemodetest"
	"github.com/openenv-go/openenv-go/pkg/codemode/sandbox"
)

func TestRun(t *testing.T) {
	p := newPool(t, sandbox.Options{})
	o := run(t, p, "print('Þór')\nresult = {\"a\": [1, 2.5, None], \"t\": echo(v=1 << 200)}")
	const want = `{"a":[1,2.5,null],"t":{"v":1606938044258990275541962092341162602522202993782792835301376}}`
	if string(o.Result) != want || o.Stdout != "Þór\n" || o.Calls != 1 || o.Steps == 0 || o.Error != nil {
		t.Errorf("%+v", o)
	}
	if o = run(t, p, "x = [echo(v=i)[\"v\"] for i in range(10)]\nresult = x"); string(o.Result) != "[0,1,2,3,4,5,6,7,8,9]" || o.Calls != 10 {
		t.Errorf("%+v", o)
	}
}

// TestLongText: frames longer than a pipe holds go through, both ways.
func TestLongText(t *testing.T) {
	p := newPool(t, sandbox.Options{})
	long := strings.Repeat("x", 200_000)
	o := run(t, p, "# "+long+"\nv = echo(v=\"y\" * 900000)[\"v\"]\nprint(\"\\n\" * 900000)\nresult = v")
	if len(o.Result) != 900_002 || len(o.Stdout) != 900_001 || o.Error != nil {
		t.Errorf("%d, %d, %v", len(o.Result), len(o.Stdout), o.Error)
	}
}

// TestLongMarkup: what JSON may escape takes no more room between the processes than it did when it was held to its limit.
func TestLongMarkup(t *testing.T) {
	p := newPool(t, sandbox.Options{})
	for _, c := range []string{"<", "&", "\u2028"} {
		o := run(t, p, "v = echo(v=\""+c+"\" * 300000)[\"v\"]\nprint(v)\nresult = v")
		if want := `"` + strings.Repeat(c, 300_000) + `"`; string(o.Result) != want || len(o.Stdout) != len(want)-1 || o.Error != nil {
			t.Errorf("%q: %d, %d, %v", c, len(o.Result), len(o.Stdout), o.Error)
		}
	}
}

// TestSmallOutput: code, and not its process, breaks a limit that hardly anything keeps to.
func TestSmallOutput(t *testing.T) {
	p := newPool(t, sandbox.Options{})
	for code, want := range map[string]string{
		"1": "1", "x = 1": "null", "'abc'": "output", "print('abc')": "output", "echo()": "output", "result = '\\n' * 9": "output",
	} {
		o := runJob(t, p, codemode.Job{Code: code, Tools: tools, Limits: codemode.Limits{Output: 1}})
		if got := string(o.Result); got != want && (o.Error == nil || o.Error.Limit != want) {
			t.Errorf("%s: %s, %+v; want %s", code, got, o.Error, want)
		}
	}
}

// TestErrors: an error keeps its place and its kind on its way.
func TestErrors(t *testing.T) {
	p := newPool(t, sandbox.Options{})
	if e := run(t, p, "x = 1\nresult = x + None").Error; e == nil || e.Kind != codemode.Runtime || e.Line != 2 || e.Source != "result = x + None" {
		t.Errorf("%+v", e)
	}
	if e := run(t, p, "result = (").Error; e == nil || e.Kind != codemode.Syntax {
		t.Errorf("%+v", e)
	}
	o, err := p.Run(t.Context(), codemode.Job{Code: "x = 1\necho(v=x)", Tools: tools}, func(context.Context, string, json.RawMessage) (codemode.Answer, error) {
		return codemode.Answer{Failure: &codemode.CallError{Type: "failure", Message: "no echo here"}}, nil
	})
	if e := o.Error; err != nil || e == nil || e.Kind != codemode.ToolErr || e.Tool != "echo" || e.Type != "failure" || e.Message != "no echo here" || e.Line != 2 {
		t.Errorf("%+v, %v", e, err)
	}
}

// TestOtherTools: each run has the tools of its own job.
func TestOtherTools(t *testing.T) {
	p := newPool(t, sandbox.Options{Processes: 1})
	other := codemode.Tool{Name: "other", Input: json.RawMessage(`{"type":"object","properties":{"v":{}}}`)}
	for i := range 4 {
		job := codemode.Job{Code: "result = echo(1)", Tools: tools}
		if i%2 == 1 {
			job = codemode.Job{Code: "result = other(1)", Tools: []codemode.Tool{other}}
		}
		if o := runJob(t, p, job); string(o.Result) != `{"v":1}` {
			t.Errorf("%+v", o.Error)
		}
		job.Tools = nil
		if o := runJob(t, p, job); o.Error == nil {
			t.Error("a tool of another job is there")
		}
	}
}

// slice is the time of runs that are to reach it.
const slice = 300 * time.Millisecond

func TestLimits(t *testing.T) {
	p := newPool(t, sandbox.Options{Processes: 2, Memory: 32 << 20})
	for _, c := range []struct{ name, code, limit string }{
		{"doubling", "x = [1]\nfor i in range(40):\n    x = x + x", "memory"},
		{"appending", "x = []\nwhile True:\n    x.append([len(x)] * 100)", "memory"},
		{"one list", "x = list(range(1000000000))", "memory"},
		{"one text", "x = \"a\" * 1000000000", "memory"},
		{"joined", "x = \",\".join([\"a\" * 1000000] * 1000)", "memory"},
		{"sorted", "x = sorted([-i for i in range(1 << 40)])", "memory"},
		{"loop", "while True:\n    pass", "time"},
		{"long steps", "x = list(range(100000))\nwhile True:\n    y = sorted(x, reverse=True)", "time"},
		{"steps", "while True:\n    pass", "steps"},
		{"calls", "while True:\n    echo(v=1)", "calls"},
		{"output", "while True:\n    print(\"x\" * 10000)", "output"},
	} {
		job := codemode.Job{Code: c.code, Tools: tools, Limits: codemode.Limits{Time: slice, Steps: 1 << 60, Calls: 20, Output: 100_000}}
		switch c.limit {
		case "steps":
			job.Limits.Steps, job.Limits.Time = 0, 0
		case "memory":
			job.Limits.Time = 0
		}
		once := func() time.Duration {
			o, took := timed(t, p, job, echo)
			if e := o.Error; e == nil || e.Kind != codemode.Limited || e.Limit != c.limit || e.Message == "" {
				t.Errorf("%s: %+v", c.name, e)
			}
			return took
		}
		if c.limit == "time" {
			within(t, slice, once)
		} else {
			once()
		}
		if o := run(t, p, "result = 1"); string(o.Result) != "1" {
			t.Errorf("after %s: %+v", c.name, o)
		}
	}
}

// TestLineOfLimit: where code reaches a limit step by step, the error has the line.
func TestLineOfLimit(t *testing.T) {
	p := newPool(t, sandbox.Options{})
	job := codemode.Job{Code: "\nwhile True:\n    pass", Limits: codemode.Limits{Time: time.Second, Steps: 1 << 60}}
	if e := runJob(t, p, job).Error; e == nil || e.Limit != "time" || e.Line < 2 {
		t.Errorf("%+v", e)
	}
}

// TestSmallerMemory: a job may ask for less memory than the pool gives, and no more.
func TestSmallerMemory(t *testing.T) {
	p := newPool(t, sandbox.Options{Memory: 64 << 20})
	job := codemode.Job{Code: "x = [1]\nfor i in range(40):\n    x = x + x", Limits: codemode.Limits{Memory: 16 << 20, Time: time.Minute}}
	if e := runJob(t, p, job).Error; e == nil || e.Limit != "memory" || !strings.Contains(e.Message, "16 MiB") {
		t.Errorf("%+v", e)
	}
	job.Limits.Memory = 1 << 40
	if e := runJob(t, p, job).Error; e == nil || e.Limit != "memory" || !strings.Contains(e.Message, "64 MiB") {
		t.Errorf("%+v", e)
	}
}

// TestGarbage: what code has let go does not count.
func TestGarbage(t *testing.T) {
	p := newPool(t, sandbox.Options{})
	job := codemode.Job{Code: "for i in range(300):\n    x = \"a\" * 1000000 + str(i)\nresult = len(x)", Limits: codemode.Limits{Time: time.Minute}}
	if o := runJob(t, p, job); string(o.Result) != "1000003" {
		t.Errorf("%+v", o.Error)
	}
}

func TestToolThatWaits(t *testing.T) {
	p := newPool(t, sandbox.Options{})
	waits := func(ctx context.Context, _ string, _ json.RawMessage) (codemode.Answer, error) {
		<-ctx.Done()
		return codemode.Answer{}, context.Cause(ctx)
	}
	within(t, time.Second, func() time.Duration {
		o, took := timed(t, p, codemode.Job{Code: "x = 1\necho(v=x)", Tools: tools, Limits: codemode.Limits{Time: time.Second}}, waits)
		if e := o.Error; e == nil || e.Limit != "time" || e.Line != 2 {
			t.Errorf("%+v", e)
		}
		return took
	})
}

// TestCallThatEndsTheRun: an error of the caller's ends the code, which cannot catch it.
func TestCallThatEndsTheRun(t *testing.T) {
	p := newPool(t, sandbox.Options{})
	job := codemode.Job{Code: "try_call(echo, v=1)\nresult = 1", Tools: tools}
	o, err := p.Run(t.Context(), job, func(context.Context, string, json.RawMessage) (codemode.Answer, error) {
		return codemode.Answer{}, errors.New("the session is closed")
	})
	if e := o.Error; err != nil || e == nil || !strings.Contains(e.Message, "the session is closed") {
		t.Errorf("%+v, %v", o, err)
	}
	for _, bad := range []string{`{"a":`, `"` + strings.Repeat("x", 64<<20) + `"`} {
		o, err = p.Run(t.Context(), job, func(context.Context, string, json.RawMessage) (codemode.Answer, error) {
			return codemode.Answer{Value: json.RawMessage(bad)}, nil
		})
		if err != nil || o.Error == nil {
			t.Errorf("%+v, %v", o, err)
		}
		t.Log(o.Error)
	}
}

// during runs code whose call of a tool does something to the child.
func during(t *testing.T, p *sandbox.Pool, rest string, do func(pid int)) (codemode.Outcome, time.Duration) {
	t.Helper()
	job := codemode.Job{Code: "echo(v=1)\n" + rest, Tools: tools, Limits: codemode.Limits{Time: slice, Steps: 1 << 60}}
	return timed(t, p, job, func(_ context.Context, _ string, args json.RawMessage) (codemode.Answer, error) {
		do(codemodetest.Children()[0])
		return codemode.Answer{Value: args}, nil
	})
}

func TestKilledChild(t *testing.T) {
	p := newPool(t, sandbox.Options{Processes: 1})
	o, _ := during(t, p, "while True:\n    pass", func(pid int) { syscall.Kill(pid, syscall.SIGKILL) })
	if e := o.Error; e == nil || e.Limit != "memory" || o.Calls != 1 {
		t.Errorf("%+v", o)
	}
}

func TestStoppedChild(t *testing.T) {
	within(t, slice, func() time.Duration {
		p := newPool(t, sandbox.Options{Processes: 1})
		if err := p.Warm(t.Context()); err != nil {
			t.Fatal(err)
		}
		o, took := during(t, p, "result = 1", stop)
		if e := o.Error; e == nil || e.Limit != "time" || o.Calls != 1 {
			t.Errorf("%+v", o)
		}
		p.Close()
		return took
	})
}

// TestChildThatDiedUnnoticed: the next run has another, and does not know.
func TestChildThatDiedUnnoticed(t *testing.T) {
	p := newPool(t, sandbox.Options{Processes: 1})
	for range 5 {
		run(t, p, "result = 1")
		syscall.Kill(codemodetest.Children()[0], syscall.SIGKILL)
		if o := run(t, p, "result = 2"); string(o.Result) != "2" {
			t.Errorf("%+v", o)
		}
	}
}

func TestCancel(t *testing.T) {
	p := newPool(t, sandbox.Options{Processes: 1})
	enough := errors.New("enough")
	returned := false
	ctx, cancel := context.WithCancelCause(t.Context())
	_, err := p.Run(ctx, codemode.Job{Code: "echo(v=1)", Tools: tools}, func(ctx context.Context, _ string, _ json.RawMessage) (codemode.Answer, error) {
		cancel(enough)
		<-ctx.Done()
		returned = true
		return codemode.Answer{}, context.Cause(ctx)
	})
	if err != enough || !returned {
		t.Error(err, returned)
	}
	ctx, stop := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, enough)
	defer stop()
	began := time.Now()
	if _, err := p.Run(ctx, codemode.Job{Code: "while True:\n    pass"}, nil); err != enough || time.Since(began) > time.Second {
		t.Error(err, time.Since(began))
	}
	if _, err := p.Run(ctx, codemode.Job{Code: "1"}, nil); err != enough {
		t.Error(err)
	}
}

func TestClose(t *testing.T) {
	p := newPool(t, sandbox.Options{Processes: 1})
	var others sync.WaitGroup
	_, err := p.Run(t.Context(), codemode.Job{Code: "echo(v=1)", Tools: tools}, func(ctx context.Context, _ string, _ json.RawMessage) (codemode.Answer, error) {
		others.Go(func() { // waits for its place
			if _, err := p.Run(context.Background(), codemode.Job{Code: "1"}, nil); err != sandbox.ErrClosed {
				t.Error(err)
			}
		})
		for range 2 {
			others.Go(func() { p.Close() })
		}
		<-ctx.Done()
		return codemode.Answer{}, nil
	})
	if err != sandbox.ErrClosed {
		t.Error(err)
	}
	others.Wait()
	if _, err := p.Run(t.Context(), codemode.Job{Code: "1"}, nil); err != sandbox.ErrClosed {
		t.Error(err)
	}
	if pids := codemodetest.Children(); len(pids) != 0 {
		t.Errorf("children %v are left", pids)
	}
}

// TestWaitIsNotTime: a job's time begins when it has a child.
func TestWaitIsNotTime(t *testing.T) {
	p := newPool(t, sandbox.Options{Processes: 1})
	var second sync.WaitGroup
	limit := codemode.Limits{Time: 400 * time.Millisecond, Steps: 1 << 60}
	_, err := p.Run(t.Context(), codemode.Job{Code: "echo(v=1)\nwhile True:\n    pass", Tools: tools, Limits: limit}, func(context.Context, string, json.RawMessage) (codemode.Answer, error) {
		second.Go(func() {
			if o := runJob(t, p, codemode.Job{Code: "result = 1", Limits: codemode.Limits{Time: 200 * time.Millisecond}}); string(o.Result) != "1" {
				t.Errorf("%+v", o)
			}
		})
		return codemode.Answer{}, nil
	})
	second.Wait()
	if err != nil {
		t.Error(err)
	}
}

// TestBusy: a run that finds no place in time has not begun, and says so.
func TestBusy(t *testing.T) {
	p := newPool(t, sandbox.Options{Processes: 1})
	_, err := p.Run(t.Context(), codemode.Job{Code: "echo(v=1)", Tools: tools}, func(context.Context, string, json.RawMessage) (codemode.Answer, error) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute+50*time.Millisecond)
		defer cancel()
		_, err := p.Run(ctx, codemode.Job{Code: "1", Limits: codemode.Limits{Time: time.Minute}}, nil)
		if busy, ok := errors.AsType[*sandbox.BusyError](err); !ok || busy.Processes != 1 {
			t.Errorf("the second run: %v", err)
		}
		return codemode.Answer{Value: json.RawMessage("1")}, nil
	})
	if err != nil {
		t.Error(err)
	}
	if o := runJob(t, p, codemode.Job{Code: "2"}); string(o.Result) != "2" { // its place is free again
		t.Errorf("%+v", o)
	}
}

// TestPanicOfATool: it goes to the caller, and no child is left behind.
func TestPanicOfATool(t *testing.T) {
	p := newPool(t, sandbox.Options{Processes: 1})
	func() {
		defer func() {
			if v := recover(); v != "oh" {
				t.Error(v)
			}
		}()
		p.Run(t.Context(), codemode.Job{Code: "echo(v=1)", Tools: tools}, func(context.Context, string, json.RawMessage) (codemode.Answer, error) {
			panic("oh")
		})
	}()
	if o := run(t, p, "result = 1"); string(o.Result) != "1" {
		t.Errorf("%+v", o)
	}
}

// TestLongLife: a child is replaced now and then, whatever it does.
func TestLongLife(t *testing.T) {
	p := newPool(t, sandbox.Options{Processes: 1})
	var first, last int
	during(t, p, "", func(pid int) { first = pid })
	for range 1000 {
		run(t, p, "1")
	}
	during(t, p, "", func(pid int) { last = pid })
	if last == first {
		t.Error("it is the same as a thousand runs ago")
	}
}

// TestNothingToReach: a child has its pipes, its mark, and no system calls to speak of.
func TestNothingToReach(t *testing.T) {
	leaked, err := syscall.Open("/dev/null", syscall.O_RDONLY, 0) // which children inherit
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(leaked)
	t.Setenv("SECRET", "token")
	p := newPool(t, sandbox.Options{Processes: 1})
	during(t, p, "", func(pid int) {
		dir := fmt.Sprintf("/proc/%d/", pid)
		files, err := os.ReadDir(dir + "fd")
		if err != nil {
			t.Error(err)
		}
		for _, f := range files {
			is, _ := os.Readlink(dir + "fd/" + f.Name())
			if !slices.Contains([]string{"0", "1", "2"}, f.Name()) && is != "anon_inode:[eventpoll]" && is != "anon_inode:[eventfd]" {
				t.Errorf("it has the file %s, %s", f.Name(), is)
			}
		}
		environ, _ := os.ReadFile(dir + "environ")
		if string(environ) != "OPENENV_CODE_PROCESS=1\x00GOMAXPROCS=1\x00MALLOC_ARENA_MAX=1\x00" {
			t.Errorf("its environment is %q", environ)
		}
		status, _ := os.ReadFile(dir + "status")
		for _, line := range []string{"Seccomp:\t2", "NoNewPrivs:\t1"} {
			if !strings.Contains(string(status), line) {
				t.Errorf("%s is not in %s", line, status)
			}
		}
		limits, _ := os.ReadFile(dir + "limits")
		if !strings.Contains(string(limits), "Max open files            0                    0 ") {
			t.Errorf("%s", limits)
		}
		if group, _ := syscall.Getpgid(pid); group != pid {
			t.Errorf("it is in group %d", group)
		}
	})
}

// TestMarkAlone: a program that merely has the variable does not run as a child, nor as a server.
func TestMarkAlone(t *testing.T) {
	for _, piped := range []bool{false, true} {
		cmd := exec.Command("/proc/self/exe")
		cmd.Env = []string{"OPENENV_CODE_PROCESS=1"}
		if piped {
			cmd.Stdin = strings.NewReader("a request of another protocol\n")
		}
		out, err := cmd.CombinedOutput()
		if err == nil || cmd.ProcessState.ExitCode() != 2 || !strings.Contains(string(out), "unset it") {
			t.Errorf("%v, %s", err, out)
		}
	}
}

// TestBombs: many runs that take all they can stay within the bound together, and harm nobody.
func TestBombs(t *testing.T) {
	bombs := []string{
		"x = [1]\nfor i in range(40):\n    x = x + x",
		"x = []\nwhile True:\n    x.append([len(x)] * 1000)",
		"d = {}\nfor i in range(1 << 40):\n    d[str(i)] = [i]",
		"x = list(range(1000000000))",
		"x = \"ab\"\nfor i in range(40):\n    x = x + x",
		"x = \",\".join([\"a\" * 1000000] * 1000)",
	}
	p := newPool(t, sandbox.Options{Processes: 4, Memory: 32 << 20})
	if err := p.Warm(t.Context()); err != nil {
		t.Fatal(err)
	}
	peak := codemodetest.Watch()
	var all sync.WaitGroup
	for i := range 50 / sandbox.Shadow { // the race detector makes them slow
		all.Go(func() {
			job := codemode.Job{Code: bombs[i%len(bombs)], Limits: codemode.Limits{Time: 10 * time.Second, Steps: 1 << 60}}
			if e := runJob(t, p, job).Error; e == nil || e.Limit != "memory" && e.Limit != "time" {
				t.Errorf("%s: %+v", job.Code, e)
			}
		})
	}
	all.Go(func() {
		for range 10 {
			if o := run(t, p, "result = echo(v=1)"); string(o.Result) != `{"v":1}` {
				t.Errorf("%+v", o)
			}
		}
	})
	all.Wait()
	most, one := peak()
	t.Logf("peak %d MiB, of one %d MiB, bound %d MiB", most>>20, one>>20, p.Bound()>>20)
	if limit := p.Bound(); most > limit {
		t.Errorf("children took %d MiB, more than %d", most>>20, limit>>20)
	}
}

func BenchmarkRun(b *testing.B) {
	for _, c := range []struct{ name, code string }{
		{"1+1", "result = 1 + 1"},
		{"10calls", "result = [echo(v=i) for i in range(10)]"},
		{"fib20", "def fib(n):\n    return n if n < 2 else fib(n - 1) + fib(n - 2)\nresult = fib(20)"},
	} {
		b.Run(c.name, func(b *testing.B) {
			p := newPool(b, sandbox.Options{})
			run(b, p, c.code)
			for b.Loop() {
				if o := run(b, p, c.code); o.Error != nil {
					b.Fatal(o.Error)
				}
			}
		})
	}
}

// BenchmarkStart is the time from a new pool to the outcome of its first run, and to its end.
func BenchmarkStart(b *testing.B) {
	for b.Loop() {
		p, err := sandbox.New(sandbox.Options{Processes: 1})
		if err != nil {
			b.Fatal(err)
		}
		if err := p.Warm(b.Context()); err != nil {
			b.Fatal(err)
		}
		p.Close()
	}
}
