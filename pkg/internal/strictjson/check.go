package strictjson

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// DefaultMaxDepth is how deeply objects and arrays may nest in any input, unless a server is told otherwise.
const DefaultMaxDepth = 128

// A SyntaxError says why input is not acceptable JSON.
type SyntaxError struct {
	Offset int64  // bytes before the fault
	Msg    string // what is wrong there
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("invalid JSON: %s (at byte %d)", e.Msg, e.Offset)
}

// Check reports whether b is exactly one JSON value that meets the rules of the package comment, with objects and
// arrays nested at most maxDepth deep. The error, if any, is a *[SyntaxError].
func Check(b []byte, maxDepth int) error {
	if off := deeperThan(b, maxDepth); off >= 0 {
		return &SyntaxError{Offset: int64(off), Msg: fmt.Sprintf("objects and arrays nest deeper than %d", maxDepth)}
	}
	if jsontext.Value(b).IsValid() {
		return nil
	}
	return explain(b)
}

// deeperThan returns the offset of the first bracket that opens level max+1, or -1. On malformed input its answer is
// only a bound: what it lets pass, the parser refuses.
func deeperThan(b []byte, max int) int {
	depth := 0
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			i = skipString(b, i)
		case '{', '[':
			if depth++; depth > max {
				return i
			}
		case '}', ']':
			depth--
		}
	}
	return -1
}

// explain finds the fault in input that is known to be invalid; it is slower than the check and runs only then.
func explain(b []byte) error {
	dec := jsontext.NewDecoder(bytes.NewReader(b))
	switch {
	case len(bytes.TrimLeft(b, " \t\r\n")) == 0:
		return &SyntaxError{Msg: "empty input"}
	case bytes.HasPrefix(b, []byte("\ufeff")):
		return &SyntaxError{Msg: "a byte order mark before the value"}
	}
	if err := dec.SkipValue(); err != nil {
		return syntaxError(err, dec.InputOffset(), len(b))
	}
	rest := bytes.TrimLeft(b[dec.InputOffset():], " \t\r\n")
	return &SyntaxError{Offset: int64(len(b) - len(rest)), Msg: "more data after the value"}
}

func syntaxError(err error, off int64, n int) *SyntaxError {
	var se *jsontext.SyntacticError
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return &SyntaxError{Offset: int64(n), Msg: "the input ends in the middle of a value"}
	case errors.As(err, &se):
		msg := se.Err.Error()
		if se.JSONPointer != "" && errors.Is(se.Err, jsontext.ErrDuplicateName) {
			msg = fmt.Sprintf("member %.80q appears twice", se.JSONPointer.LastToken())
		}
		return &SyntaxError{Offset: se.ByteOffset, Msg: msg}
	}
	return &SyntaxError{Offset: off, Msg: err.Error()}
}
