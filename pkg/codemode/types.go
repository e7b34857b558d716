package codemode

import (
	"cmp"
	"context"
	"encoding/json"
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

// A Tool is what code may call, as models are told of it.
type Tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Input       json.RawMessage `json:"input"` // the JSON schema of its arguments; its properties' order is that of positions
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
