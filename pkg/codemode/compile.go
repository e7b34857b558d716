package codemode

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"go.starlark.net/resolve"
	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/openenv-go/openenv-go/pkg/codemode/internal/dialect"
)

const (
	resultName = "result"
	lastName   = "$last" // the value of the last statement
)

// isHidden tells names that no code can spell.
func isHidden(name string) bool { return strings.HasPrefix(name, "$") }

// compile reads the code and resolves its names.
func (r *run) compile(code string) (*starlark.Program, *Error) {
	if len(code) > r.limits.Code {
		return nil, r.report(r.exceeded("code", "the code has %d bytes, more than the %s allowed: send less, and leave data to tools", len(code), size(r.limits.Code)))
	}
	parsed, err := dialect.Parse(code, dialect.Options{Known: slices.Collect(maps.Keys(r.names)), Functions: r.tools.functions()})
	if err != nil {
		return nil, r.refused(code, err)
	}
	r.lines = parsed.Lines
	if n := len(parsed.File.Stmts); n > 0 {
		r.last = syntax.Start(parsed.File.Stmts[n-1])
	}
	program, err := starlark.FileProgram(parsed.File, r.names.Has)
	if err != nil {
		return nil, r.refused(code, err)
	}
	return program, nil
}

// refused is a fault found before anything ran.
func (r *run) refused(code string, err error) *Error {
	r.lines = strings.Split(code, "\n")
	e := &Error{Kind: Syntax, Message: err.Error()}
	var at syntax.Position
	var fault *dialect.Error
	var unresolved resolve.ErrorList // which the parser has not seen: a fault of its own
	switch {
	case errors.As(err, &fault):
		e.Message, e.Hint = fault.Message, fault.Hint
		if e.Limit = fault.Limit; e.Limit != "" {
			e.Kind = Limited
		}
		at = syntax.MakePosition(nil, int32(fault.Line), int32(fault.Column))
	case errors.As(err, &unresolved) && len(unresolved) > 0:
		e.Message, at = unresolved[0].Msg, unresolved[0].Pos
	}
	r.place(e, int(at.Line), int(at.Col))
	return e
}
