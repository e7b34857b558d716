package tools

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// An ErrorType says which way a tool call failed. The values are the wire's (OpenEnv's ToolErrorType).
type ErrorType string

const (
	ExecutionError ErrorType = "execution_error" // the function returned an error, panicked, or its output was not JSON
	InvalidArgs    ErrorType = "invalid_args"    // the arguments do not fit the tool's input schema
	TransportError ErrorType = "transport_error" // the tool could not be reached
	ToolNotFound   ErrorType = "tool_not_found"  // there is no tool of that name in this mode
	Timeout        ErrorType = "timeout"         // the call's deadline passed, in the queue or in the function
)

// An Error is a tool call that failed as such. A failure that the tool itself reports (see [Fail]) is a result instead.
type Error struct {
	Type    ErrorType
	Tool    string       // the name that was called
	Message string       // for the caller: what went wrong and, where there is something, what to do
	Fields  []FieldError // for InvalidArgs: one entry a field, at most [MaxFieldErrors]
	Err     error        // what the function returned, if it did
	Refused bool         // the tool was never reached: there is none of the name, or its schema refused the arguments
}

func (e *Error) Error() string { return e.Message }

func (e *Error) Unwrap() error { return e.Err }

// A Failure is a tool's own failure: the call worked, the answer is no. It reaches the caller as a result marked as an
// error, with Message as its text.
type Failure struct{ Message string }

func (f *Failure) Error() string { return f.Message }

// Fail returns a [*Failure]. A tool returns it for what the model should read and act on: no such page, illegal move.
func Fail(message string) error { return &Failure{Message: message} }

// Failf is [Fail] with a format as in fmt.Sprintf.
func Failf(format string, args ...any) error { return &Failure{Message: fmt.Sprintf(format, args...)} }

// MaxFieldErrors is how many fields an error names at most.
const MaxFieldErrors = 20

// A FieldError says what is wrong with one field of an input. Its JSON form is that of the wire's VALIDATION_ERROR and
// 422 answers, whose types are Pydantic's.
type FieldError struct {
	Type  string `json:"type"`  // a word for the kind of fault: missing, extra_forbidden, int_type, …
	Loc   []any  `json:"loc"`   // the path to the field: member names and list indexes; empty for the whole
	Msg   string `json:"msg"`   // what is wrong, for people
	Input any    `json:"input"` // the value that was sent there, shortened when long
}

// Path is the field's location in the form a.b.0.c, or "" for the whole input.
func (f FieldError) Path() string {
	parts := make([]string, len(f.Loc))
	for i, p := range f.Loc {
		parts[i] = fmt.Sprint(p)
	}
	return strings.Join(parts, ".")
}

func (f FieldError) String() string {
	if len(f.Loc) == 0 {
		return f.Msg
	}
	return f.Path() + ": " + f.Msg
}

// An InputError is an input that does not fit: a tool's arguments, an action, the options of a reset.
type InputError struct{ Fields []FieldError }

func (e *InputError) Error() string {
	parts := make([]string, len(e.Fields))
	for i, f := range e.Fields {
		parts[i] = f.String()
	}
	return strings.Join(parts, "; ")
}

// Invalid returns an [*InputError] for one field, named by its path ("board.3"); a step in digits is a list index. A tool
// or an action's function returns it, before it has changed anything, for an input that its schema could not refuse.
func Invalid(path, message string) error {
	loc := []any{}
	for p := range strings.SplitSeq(path, ".") {
		if n, err := strconv.Atoi(p); err == nil && n >= 0 && strconv.Itoa(n) == p {
			loc = append(loc, n)
		} else if p != "" {
			loc = append(loc, p)
		}
	}
	return &InputError{Fields: []FieldError{{Type: "value_error", Loc: loc, Msg: message}}}
}

// AsError is the typed error of a call that failed with err: err itself where it is an [*Error], InvalidArgs for an
// [*InputError], ExecutionError for any other. What is not valid UTF-8 in its words is replaced by U+FFFD, in a copy.
func AsError(tool string, err error) *Error {
	var typed *Error
	if errors.As(err, &typed) {
		return typed.legible()
	}
	var input *InputError
	if errors.As(err, &input) {
		typed = &Error{Type: InvalidArgs, Tool: tool, Message: "invalid arguments: " + input.Error(), Fields: input.Fields, Err: err}
	} else {
		typed = &Error{Type: ExecutionError, Tool: tool, Message: err.Error(), Err: err}
	}
	return typed.legible()
}

// legible is the error in words that can be written as JSON: an author's may repeat anything, such as a file's name.
func (e *Error) legible() *Error {
	all := utf8.ValidString(e.Message)
	for _, f := range e.Fields {
		all = all && utf8.ValidString(f.Path()) && utf8.ValidString(f.Msg)
	}
	if all {
		return e
	}
	clean := *e
	clean.Message = legible(e.Message)
	clean.Fields = slices.Clone(e.Fields)
	for i := range clean.Fields {
		f := &clean.Fields[i]
		f.Msg, f.Loc = legible(f.Msg), slices.Clone(f.Loc)
		for j, step := range f.Loc {
			if name, ok := step.(string); ok {
				f.Loc[j] = legible(name)
			}
		}
	}
	return &clean
}

func legible(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }

// Refuse is [AsError] for a call that never reaches its tool.
func Refuse(tool string, err error) *Error {
	e := *AsError(tool, err)
	e.Refused = true
	return &e
}
