package codemodetest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/openenv-go/openenv-go/pkg/codemode"
)

// Check compares what a run came to with what the snippet wants. The error lists all differences.
func (s Snippet) Check(o codemode.Outcome, calls []Call) error {
	var wrong []error
	differs := func(what string, got, want any) {
		wrong = append(wrong, fmt.Errorf("%s\n  got  %v\n  want %v", what, got, want))
	}
	switch {
	case s.Error == nil && o.Error != nil:
		wrong = append(wrong, fmt.Errorf("it failed (%s): %s", o.Error.Kind, o.Error.Text()))
	case s.Error == nil && !Equal(o.Result, s.Result):
		differs("result", string(o.Result), string(s.Result))
	case s.Error != nil && o.Error == nil:
		wrong = append(wrong, fmt.Errorf("it did not fail: %s", o.Result))
	case s.Error != nil:
		wrong = append(wrong, s.Error.check(o.Error)...)
	}
	if strings.TrimRight(o.Stdout, "\n") != strings.TrimRight(s.Stdout, "\n") {
		differs("stdout", o.Stdout, s.Stdout)
	}
	if !slices.EqualFunc(calls, s.Calls, Call.equal) {
		differs("calls", calls, s.Calls)
	}
	return errors.Join(wrong...)
}

func (f *Fault) check(e *codemode.Error) (wrong []error) {
	differs := func(what string, got, want any) {
		wrong = append(wrong, fmt.Errorf("%s\n  got  %v\n  want %v", what, got, want))
	}
	if e.Kind != f.Kind {
		differs("kind", e.Kind, f.Kind)
	}
	if f.Line != 0 && e.Line != f.Line {
		differs("line", e.Line, f.Line)
	}
	if f.Column != 0 && e.Column != f.Column {
		differs("column", e.Column, f.Column)
	}
	if e.Tool != f.Tool || e.Type != f.Type {
		differs("tool and type", e.Tool+" "+e.Type, f.Tool+" "+f.Type)
	}
	if missing := unsaid(e, f.Says); missing != nil {
		differs("words", e.Text(), missing)
	}
	return wrong
}

// unsaid are the words that an error does not say.
func unsaid(e *codemode.Error, words []string) (missing []string) {
	said := strings.ToLower(e.Message + "\n" + e.Hint + "\n" + e.Source)
	for _, w := range words {
		if !strings.Contains(said, strings.ToLower(w)) {
			missing = append(missing, w)
		}
	}
	return missing
}

// Check reports whether the escape came to an end that is accepted.
func (e Escape) Check(o codemode.Outcome) error {
	for _, end := range e.Ends {
		if end.is(o) {
			return nil
		}
	}
	if o.Error == nil {
		return fmt.Errorf("it came to an outcome: %.200s", o.Result)
	}
	return fmt.Errorf("it came to an error that is not accepted: %s %s: %.400s", o.Error.Kind, o.Error.Limit, o.Error.Text())
}

func (end End) is(o codemode.Outcome) bool {
	want, e := end.Error, o.Error
	if want == nil || e == nil {
		return want == nil && e == nil && Equal(o.Result, end.Result)
	}
	return e.Kind == want.Kind && (want.Limit == nil || slices.Contains(want.Limit, e.Limit) || e.Limit == "steps" && slices.Contains(want.Limit, "time")) &&
		(want.Line == 0 || e.Line == want.Line) && unsaid(e, want.Says) == nil
}

// Equal compares JSON by value: integers exactly, floats as float64, members in any order.
func Equal(a, b []byte) bool {
	x, err := decode(a)
	y, err2 := decode(b)
	return err == nil && err2 == nil && equal(x, y)
}

func decode(b []byte) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	return v, d.Decode(&v)
}

func equal(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for k, v := range a {
			if w, has := b[k]; !has || !equal(v, w) {
				return false
			}
		}
		return true
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, equal)
	case json.Number:
		b, ok := b.(json.Number)
		return ok && equalNumbers(a, b)
	}
	return a == b
}

func equalNumbers(a, b json.Number) bool {
	x, ok := new(big.Int).SetString(a.String(), 10)
	y, ok2 := new(big.Int).SetString(b.String(), 10)
	if ok && ok2 {
		return x.Cmp(y) == 0
	}
	f, err := a.Float64()
	g, err2 := b.Float64()
	return err == nil && err2 == nil && f == g
}
