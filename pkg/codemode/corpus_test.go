package codemode_test

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/openenv-go/openenv-go/pkg/codemode"
	"github.com/openenv-go/openenv-go/pkg/codemode/codemodetest"
)

const corpus = "testdata"

func harbour(t testing.TB) *codemodetest.Harbour {
	t.Helper()
	h, err := codemodetest.NewHarbour(corpus)
	if err != nil {
		t.Fatal(err)
	}
	h.Patience = 5 * time.Second
	return h
}

// TestSnippets runs what models write. The clock is fake, so that slow tools take no time.
func TestSnippets(t *testing.T) {
	snippets, err := codemodetest.Snippets(corpus)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range snippets {
		t.Run(s.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := harbour(t)
				o := codemode.Run(t.Context(), codemode.Job{Code: s.Code, Tools: h.Tools()}, h.Call)
				if err := s.Check(o, h.Calls()); err != nil {
					t.Errorf("%v\n%s", err, s.Code)
				}
				valid(t, o)
			})
		})
	}
}

// valid checks what holds of every outcome.
func valid(t testing.TB, o codemode.Outcome) {
	t.Helper()
	if !json.Valid(o.Result) {
		t.Errorf("the result is no JSON: %.200q", o.Result)
	}
	var back codemode.Outcome
	b, err := json.Marshal(o)
	if err == nil {
		err = json.Unmarshal(b, &back)
	}
	if err != nil {
		t.Errorf("the outcome cannot be passed on: %v", err)
	}
	if back.Stdout != o.Stdout {
		t.Error("what was printed is not valid UTF-8")
	}
}

// Memory is for package sandbox to bound, so that escapes which may take much of it before they reach another limit are not
// run in the process of the test.
func inProcess(e codemodetest.Escape) bool {
	for _, end := range e.Ends {
		if end.Error != nil && slices.Contains(end.Error.Limit, "memory") && !slices.Contains(harmless, e.Name) {
			return false
		}
	}
	return true
}

// harmless escapes name the limit of memory, and are refused before they take any.
var harmless = []string{
	"builtin-format-width", "builtin-fstring-width", "builtin-ljust", "builtin-percent-width", "integer-power", "string-multiply-overflow",
	"list-multiply", "string-multiply", "regex-repeat-explosion", "output-error-value",
}

func TestEscapes(t *testing.T) {
	escapes, err := codemodetest.Escapes(corpus)
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	for _, e := range escapes {
		if !inProcess(e) {
			continue
		}
		ran++
		t.Run(e.Name, func(t *testing.T) {
			for _, limit := range []time.Duration{2 * time.Second, 20 * time.Second} {
				h := harbour(t)
				h.Patience = limit / 4
				began := time.Now()
				o := codemode.Run(t.Context(), codemode.Job{Code: e.Code, Tools: h.Tools(), Limits: codemode.Limits{Time: limit}}, h.Call)
				took := time.Since(began)
				valid(t, o)
				err := e.Check(o)
				if err != nil && o.Error != nil && o.Error.Limit == "time" && limit < 20*time.Second {
					continue // on a busy machine time may be short before anything else is
				}
				if err != nil {
					t.Errorf("%v\n%.500s", err, e.Code)
				}
				if took > 2*limit {
					t.Errorf("it took %v", took)
				}
				break
			}
		})
	}
	if ran < 80 {
		t.Errorf("only %d escapes were run", ran)
	}
}

// TestRunsAreAlone runs the same jobs many times at once: each has its own state, and comes to the same.
func TestRunsAreAlone(t *testing.T) {
	snippets, err := codemodetest.Snippets(corpus)
	if err != nil {
		t.Fatal(err)
	}
	first := harbour(t)
	first.Patience = time.Millisecond
	outcomes := func() (all []codemode.Outcome) {
		for _, s := range snippets {
			all = append(all, codemode.Run(t.Context(), codemode.Job{Code: s.Code, Tools: first.Tools()}, first.Fresh().Call))
		}
		return all
	}
	want := outcomes()
	t.Run("group", func(t *testing.T) {
		for range 4 {
			t.Run("", func(t *testing.T) {
				t.Parallel()
				for i, o := range outcomes() {
					if !equalOutcomes(o, want[i]) {
						t.Errorf("%s: %v\nthen %v", snippets[i].Name, want[i], o)
					}
				}
			})
		}
	})
}

func equalOutcomes(a, b codemode.Outcome) bool {
	x, err := json.Marshal(a)
	y, err2 := json.Marshal(b)
	return err == nil && err2 == nil && bytes.Equal(x, y)
}

// FuzzRun: whatever the code, it ends within its limits, and twice the same.
func FuzzRun(f *testing.F) {
	snippets, err := codemodetest.Snippets(corpus)
	if err != nil {
		f.Fatal(err)
	}
	for _, s := range snippets {
		f.Add(s.Code)
	}
	first := harbour(f)
	first.Patience = time.Millisecond
	limits := codemode.Limits{Steps: 20_000, Time: time.Second, Memory: 4 << 20, Output: 4 << 10, Calls: 10, Code: 16 << 10}
	f.Fuzz(func(t *testing.T, code string) {
		run := func() codemode.Outcome {
			h := first.Fresh()
			return codemode.Run(context.Background(), codemode.Job{Code: code, Tools: h.Tools(), Limits: limits}, h.Call)
		}
		o := run()
		valid(t, o)
		if len(o.Stdout) > limits.Output || len(o.Result) > limits.Output || o.Calls > limits.Calls || o.Steps > limits.Steps {
			t.Errorf("beyond the limits: %d bytes printed, %d of result, %d calls, %d steps", len(o.Stdout), len(o.Result), o.Calls, o.Steps)
		}
		if e := o.Error; e != nil {
			message, err := json.Marshal(e.Message)
			if err != nil || len(message) > limits.Output+2 || bytes.Contains(message, []byte("internal error")) {
				t.Errorf("%v\n%s", err, message)
			}
			if e.Limit == "time" {
				t.Skip("a machine that is busy")
			}
		}
		if again := run(); !equalOutcomes(o, again) {
			t.Errorf("first %v\nthen %v", o, again)
		}
	})
}
