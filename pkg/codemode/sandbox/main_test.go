//go:build linux && (amd64 || arm64)

package sandbox_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/openenv-go/openenv-go/pkg/codemode"
	"github.com/openenv-go/openenv-go/pkg/codemode/codemodetest"
	"github.com/openenv-go/openenv-go/pkg/codemode/sandbox"
)

// TestMain runs this binary as a bad child where a test asks for one, and the tests otherwise.
func TestMain(m *testing.M) {
	if kind, ok := strings.CutPrefix(os.Args[0], badChild); ok {
		misbehave(kind)
		return
	}
	if os.Getenv(orphanVariable) != "" {
		orphan()
		return
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if left := codemodetest.Children(); len(left) > 0 {
			fmt.Println("children are left:", left)
			code = 1
		}
		os.Exit(code)
	}))
}

// newPool is a pool that is closed with the test. Children in which the race detector finds something fail it.
func newPool(t testing.TB, o sandbox.Options) *sandbox.Pool {
	t.Helper()
	var log bytes.Buffer
	o.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	p, err := sandbox.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Close()
		if strings.Contains(log.String(), "DATA RACE") {
			t.Error(log.String())
		}
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
	return outcome(t, p, job, echo)
}

func outcome(t testing.TB, p *sandbox.Pool, job codemode.Job, call codemode.CallFunc) codemode.Outcome {
	t.Helper()
	o, err := p.Run(t.Context(), job, call)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// within does a run, which tells how long it took, and checks that it ended at its limit. A machine that is busy with something
// else can make a run late, but not thrice in a row.
func within(t testing.TB, limit time.Duration, run func() time.Duration) {
	t.Helper()
	var took time.Duration
	for range 3 {
		if took = run(); took < limit {
			t.Fatalf("it took %v, less than %v", took, limit)
		}
		if took <= limit*12/10 {
			return
		}
	}
	t.Errorf("it took %v, more than a fifth beyond %v", took, limit)
}

// timed runs a job, and tells how long it took.
func timed(t testing.TB, p *sandbox.Pool, job codemode.Job, call codemode.CallFunc) (codemode.Outcome, time.Duration) {
	t.Helper()
	began := time.Now()
	o := outcome(t, p, job, call)
	return o, time.Since(began)
}
