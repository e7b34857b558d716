package fault

import (
	"fmt"

	"go.starlark.net/starlark"
)

// An Exception is a failure that code can catch, by try_call or except.
type Exception struct {
	Class   string         // Python's name of it: KeyError, ValueError, …; "ToolError" for a tool's failure
	Message string         // what str(e) is
	Hint    string         // what to write instead; "" for none
	Value   starlark.Value // what belongs to it, for whoever raised it; nil: nothing
}

func (e *Exception) Error() string { return e.Message }

// New returns an exception whose message is formatted as by fmt.Sprintf.
func New(class, format string, args ...any) *Exception {
	return &Exception{Class: class, Message: fmt.Sprintf(format, args...)}
}

// Hinted returns e with a hint.
func (e *Exception) Hinted(format string, args ...any) *Exception {
	e.Hint = fmt.Sprintf(format, args...)
	return e
}

// A Limit is a bound that code has reached. Code cannot catch it.
type Limit struct {
	Name    string // steps, time, memory, nesting, output, calls or code
	Message string // names the bound's size, and says what to do
}

func (l *Limit) Error() string { return l.Message }

// A Meter counts what built-in functions do. It is used by one run, from one goroutine.
type Meter interface {
	// Charge counts n steps. Its error is the limit that was reached, or why the run has ended.
	Charge(n int) error
	// Room reports, as a limit, that a value of n bytes would be more than the run may hold.
	Room(n int) error
	// Depth is how many levels data may be nested.
	Depth() int
}

const meterKey = "meter"

// Install makes m the meter of a thread's run.
func Install(t *starlark.Thread, m Meter) { t.SetLocal(meterKey, m) }

// MeterOf is the meter of a thread's run. A thread without one is not bounded.
func MeterOf(t *starlark.Thread) Meter {
	if m, ok := t.Local(meterKey).(Meter); ok {
		return m
	}
	return boundless{}
}

type boundless struct{}

func (boundless) Charge(int) error { return nil }
func (boundless) Room(int) error   { return nil }
func (boundless) Depth() int       { return 100 }

// A Texter is a value whose text, which str gives, is not its literal form, which String gives: an exception, say.
type Texter interface {
	starlark.Value
	Text() string
}
