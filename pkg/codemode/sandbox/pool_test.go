//go:build linux && (amd64 || arm64)

package sandbox_test

import (
	"testing"

	"github.com/openenv-go/openenv-go/pkg/codemode/sandbox"
)

func TestRun(t *testing.T) {
	p := newPool(t, sandbox.Options{})
	o := run(t, p, "print(1)\nresult = {\"a\": [1, 2.5, None], \"t\": echo(v=\"x\")}")
	if string(o.Result) != `{"a":[1,2.5,null],"t":{"v":"x"}}` || o.Stdout != "1\n" || o.Calls != 1 || o.Error != nil {
		t.Errorf("%+v", o)
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
