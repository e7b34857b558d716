//go:build linux && (amd64 || arm64)

package sandbox_test

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/openenv-go/openenv-go/pkg/codemode"
	"github.com/openenv-go/openenv-go/pkg/codemode/sandbox"
)

// TestMain runs this binary as a bad child where a test asks for one, and the tests otherwise.
func TestMain(m *testing.M) {
	if kind, ok := strings.CutPrefix(os.Args[0], "bad-child-"); ok {
		misbehave(kind)
		return
	}
	if os.Getenv(orphanVariable) != "" {
		orphan()
		return
	}
	goleak.VerifyTestMain(m)
}

func newPool(t testing.TB, o sandbox.Options) *sandbox.Pool {
	t.Helper()
	p, err := sandbox.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Close()
	})
	return p
}

// echo answers with its arguments.
func echo(_ context.Context, _ string, args json.RawMessage) (codemode.Answer, error) {
	return codemode.Answer{Value: args}, nil
}

var tools = []codemode.Tool{{Name: "echo", Description: "Returns what it is given.", Input: json.RawMessage(`{"type":"object","properties":{"v":{}}}`)}}

func run(t testing.TB, p *sandbox.Pool, code string) codemode.Outcome {
	t.Helper()
	return runJob(t, p, codemode.Job{Code: code, Tools: tools})
}

func runJob(t testing.TB, p *sandbox.Pool, job codemode.Job) codemode.Outcome {
	t.Helper()
	o, err := p.Run(t.Context(), job, echo)
	if err != nil {
		t.Fatal(err)
	}
	return o
}
