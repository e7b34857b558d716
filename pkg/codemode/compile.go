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
	"github.com/openenv-go/openenv-go/pkg/codemode/internal/fault"
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
	var refusal *dialect.Error
	var unresolved resolve.ErrorList // which the parser has not seen: a fault of its own
	switch {
	case errors.As(err, &refusal):
		e.Message, e.Hint = refusal.Message, refusal.Hint
		if e.Limit = refusal.Limit; e.Limit != "" {
			e.Kind = Limited
		}
		at = syntax.MakePosition(nil, int32(refusal.Line), int32(refusal.Column))
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

// unset reports whether an error of the interpreter's own arose where a name stands, which has no value yet.
func (r *run) unset(err error) (found bool) {
	var raised *fault.Exception
	var eval *starlark.EvalError
	if errors.As(err, &raised) || !errors.As(err, &eval) || len(eval.CallStack) == 0 {
		return false
	}
	here := eval.CallStack.At(0).Pos
	tuple := false // which begins at its first name: what it is given does not fit
	syntax.Walk(r.file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Ident:
			found = found || n.NamePos.Line == here.Line && n.NamePos.Col == here.Col
		case *syntax.TupleExpr:
			tuple = tuple || n.Lparen.Line == here.Line && n.Lparen.Col == here.Col
		}
		return n != nil
	})
	return found && !tuple
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
