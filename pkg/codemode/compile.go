package codemode

import (
	"errors"
	"strings"

	"go.starlark.net/resolve"
	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

const (
	sourceName = "code"
	resultName = "result"
	lastName   = "$last" // the value of the last statement
)

// isHidden tells names that no code can spell.
func isHidden(name string) bool { return strings.HasPrefix(name, "$") }

var options = &syntax.FileOptions{Set: true, While: true, TopLevelControl: true, GlobalReassign: true, Recursion: true}

// compile reads the code and resolves its names.
func (r *run) compile(code string) (*starlark.Program, *Error) {
	if len(code) > r.limits.Code {
		return nil, r.report(r.exceeded("code", "the code has %d bytes, more than the %s allowed: send less, and leave data to tools", len(code), size(r.limits.Code)))
	}
	r.lines = strings.Split(code, "\n")
	file, err := options.Parse(sourceName, code, 0)
	if err != nil {
		return nil, r.refused(err)
	}
	if n := len(file.Stmts); n > 0 {
		if e, ok := file.Stmts[n-1].(*syntax.ExprStmt); ok {
			file.Stmts[n-1] = &syntax.AssignStmt{Op: syntax.EQ, LHS: &syntax.Ident{Name: lastName}, RHS: e.X}
		}
	}
	file.Options = options
	program, err := starlark.FileProgram(file, r.names.Has)
	if err != nil {
		return nil, r.refused(err)
	}
	return program, nil
}

// refused is a fault found before anything ran.
func (r *run) refused(err error) *Error {
	e := &Error{Kind: Syntax, Message: err.Error()}
	var at syntax.Position
	var one syntax.Error
	var list resolve.ErrorList
	switch {
	case errors.As(err, &one):
		e.Message, at = one.Msg, one.Pos
	case errors.As(err, &list) && len(list) > 0:
		e.Message, at = list[0].Msg, list[0].Pos
	}
	r.place(e, int(at.Line), int(at.Col))
	return e
}
