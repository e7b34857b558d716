package codemode

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"time"
)

// Limits are what a piece of code may take. A zero stands for the value of [Defaults].
type Limits struct {
	Steps   uint64        // of the interpreter; built-in functions that loop count too
	Time    time.Duration // wall clock, calls of tools included
	Memory  int64         // bytes that may be allocated at once
	Output  int           // bytes of printed text; and of the outcome, a call's arguments and a message, each as JSON
	Nesting int           // calls within calls; levels of data in data
	Calls   int           // of tools, refused and failed ones included
	Code    int           // bytes of source
}

// Defaults are the limits where nobody has set others.
func Defaults() Limits {
	return Limits{
		Steps: 10_000_000, Time: 10 * time.Second, Memory: 64 << 20, Output: 1 << 20, Nesting: 200, Calls: 100, Code: 256 << 10,
	}
}

// Or is l with the values of other in place of zeros.
func (l Limits) Or(other Limits) Limits {
	return Limits{
		cmp.Or(l.Steps, other.Steps), cmp.Or(l.Time, other.Time), cmp.Or(l.Memory, other.Memory), cmp.Or(l.Output, other.Output),
		cmp.Or(l.Nesting, other.Nesting), cmp.Or(l.Calls, other.Calls), cmp.Or(l.Code, other.Code),
	}
}

// Bounds of the limits themselves: below and above, other limits would not hold.
const (
	MinMemory  = 16 << 20 // what the interpreter's own steps of growth leave room to bound
	MinOutput  = 1 << 10  // for an error's message
	MaxNesting = 1000     // for which the interpreter's stack has room
)

// A RangeError is a limit that makes no sense.
type RangeError struct {
	Limit string // its name, as in [Error]
	Value string
	Want  string // what it may be
}

func (e *RangeError) Error() string {
	return fmt.Sprintf("a limit of %s on %s: want %s", e.Value, e.Limit, e.Want)
}

// Check reports the first limit that makes no sense, as a [*RangeError]. Zeros are fine.
func (l Limits) Check() error {
	for _, b := range []struct {
		name      string
		v         int64
		low, high int64
		want      string
	}{
		{"time", int64(l.Time), int64(time.Millisecond), math.MaxInt64, "1ms or more"},
		{"memory", l.Memory, MinMemory, math.MaxInt64, fmt.Sprintf("%d bytes or more", MinMemory)},
		{"output", int64(l.Output), MinOutput, math.MaxInt32, fmt.Sprintf("%d bytes or more", MinOutput)},
		{"nesting", int64(l.Nesting), 1, MaxNesting, fmt.Sprintf("1 to %d", MaxNesting)},
		{"calls", int64(l.Calls), 1, math.MaxInt32, "1 or more"},
		{"code", int64(l.Code), 1, math.MaxInt32, "1 byte or more"},
	} {
		if b.v != 0 && (b.v < b.low || b.v > b.high) {
			value := fmt.Sprint(b.v)
			if b.name == "time" {
				value = l.Time.String()
			}
			return &RangeError{b.name, value, b.want}
		}
	}
	return nil
}

// A Tool is what code may call, as models are told of it.
type Tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Unordered   bool            `json:"unordered,omitempty"` // the order of its properties is nobody's, so only one that is alone, or alone required, goes by position
	Output      json.RawMessage `json:"output,omitempty"`    // the JSON schema of what it returns, or null: it is not known
	Input       json.RawMessage `json:"input"`               // the JSON schema of its arguments; its properties' order is that of positions
}

// A Job is a piece of code to run.
type Job struct {
	Code   string `json:"code"`
	Tools  []Tool `json:"tools"`
	Limits Limits `json:"limits"`
}

// An Answer is what a tool's call came to: Value, or Failure.
type Answer struct {
	Value   json.RawMessage `json:"value,omitempty"` // one JSON value
	Failure *CallError      `json:"failure,omitempty"`
}

// Failure is the type of a call that a tool reports as failed itself.
const Failure = "failure"

// A CallError is a call that failed, which code may catch.
type CallError struct {
	Type    string `json:"type"` // [Failure], or the wire's error type: execution_error, timeout, …
	Message string `json:"message"`
}

// A CallFunc calls a tool by its published name with a JSON object of arguments. An error ends the code at once.
type CallFunc func(ctx context.Context, tool string, args json.RawMessage) (Answer, error)

// An Outcome is what a run came to.
type Outcome struct {
	Result json.RawMessage `json:"result"` // null where there is none
	Stdout string          `json:"stdout"`
	Calls  int             `json:"calls"` // of tools
	Steps  uint64          `json:"steps"`
	Error  *Error          `json:"error,omitempty"`
}

// A Kind says where an error arose.
type Kind string

const (
	Syntax  Kind = "syntax"  // found before anything ran: unknown names are among them
	Runtime Kind = "runtime" // raised by the code
	ToolErr Kind = "tool"    // a call failed, and nothing caught it
	Result  Kind = "result"  // the outcome is no JSON
	Limited Kind = "limit"   // a limit was reached
)

// An Error is why code did not come to its end.
type Error struct {
	Kind    Kind    `json:"kind"`
	Message string  `json:"message"`
	Hint    string  `json:"hint,omitempty"` // what to write instead
	Line    int     `json:"line,omitempty"` // from 1; 0: no place
	Column  int     `json:"column,omitempty"`
	Source  string  `json:"source,omitempty"` // the line
	Tool    string  `json:"tool,omitempty"`   // ToolErr: its published name
	Type    string  `json:"type,omitempty"`   // ToolErr: as in CallError
	Limit   string  `json:"limit,omitempty"`  // Limited: steps, time, memory, nesting, output, calls or code
	Trace   []Frame `json:"trace,omitempty"`  // the calls of the code's own functions that led there, outermost first
}

// A Frame is a place in the code where a function was called.
type Frame struct {
	Function string `json:"function"` // "" for the top level
	Line     int    `json:"line"`
	column   int
}
