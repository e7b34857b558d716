package codemode_test

import (
	"strings"
	"testing"

	"github.com/openenv-go/openenv-go/pkg/codemode"
)

// BenchmarkRun is what a run costs beside its process: one that does nothing, one that calls tools, one that computes.
func BenchmarkRun(b *testing.B) {
	for _, c := range []struct{ name, code string }{
		{"code=sum", "1 + 1"},
		{"code=calls", strings.Repeat("tide(hour=12)\n", 10)},
		{"code=fib", "def fib(n):\n    return n if n < 2 else fib(n - 1) + fib(n - 2)\nfib(20)"},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			h := harbour(b)
			for b.Loop() {
				if o := codemode.Run(b.Context(), codemode.Job{Code: c.code, Tools: h.Tools()}, h.Call); o.Error != nil {
					b.Fatal(o.Error.Text())
				}
			}
		})
	}
}
