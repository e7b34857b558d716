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
	r.file = parsed.File
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

// last is where the last statement of the code begins.
func (r *run) last() (line, column int) {
	n := len(r.file.Stmts)
	if n == 0 {
		return 0, 0
	}
	at := syntax.Start(r.file.Stmts[n-1])
	return int(at.Line), int(at.Col)
}

// operands is what to do about an error of the interpreter's own that arose at an operator, or "" where there is none.
func (r *run) operands(line, column int) (hint string) {
	syntax.Walk(r.file, func(n syntax.Node) bool {
		var op syntax.Token
		var at syntax.Position
		switch n := n.(type) {
		case *syntax.BinaryExpr:
			op, at = n.Op, n.OpPos
		case *syntax.AssignStmt:
			op, at = n.Op, n.OpPos
		default:
			return n != nil
		}
		if int(at.Line) != line || int(at.Col) != column {
			return true
		}
		switch op {
		case syntax.PLUS, syntax.MINUS, syntax.PLUS_EQ, syntax.MINUS_EQ:
			hint = "both sides must be numbers, or both text or lists: str(x) makes text of a number, x or 0 a number of None"
		case syntax.LT, syntax.LE, syntax.GT, syntax.GE:
			hint = "both sides must be of one kind: float(x) makes a number of text, x or 0 one of None"
		}
		return true
	})
	return hint
}

// isFunction reports whether a frame stands where a function itself does, and not in its body: the call never began, since its
// arguments did not fit, so that the fault is its caller's.
func (r *run) isFunction(f Frame) (found bool) {
	syntax.Walk(r.file, func(n syntax.Node) bool {
		var at syntax.Position
		switch n := n.(type) {
		case *syntax.DefStmt:
			at = n.Def
		case *syntax.LambdaExpr:
			at = n.Lambda
		}
		found = found || at.IsValid() && int(at.Line) == f.Line && int(at.Col) == f.column
		return n != nil && !found
	})
	return found
}
