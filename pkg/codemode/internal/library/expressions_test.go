package library_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/openenv-go/openenv-go/pkg/codemode/internal/fault"
	"github.com/openenv-go/openenv-go/pkg/codemode/internal/library"
)

var hiddenOf = map[syntax.Token]string{
	syntax.PLUS: "$add", syntax.MINUS: "$sub", syntax.STAR: "$mul", syntax.SLASH: "$div", syntax.SLASHSLASH: "$floordiv",
	syntax.PERCENT: "$mod", syntax.AMP: "$and", syntax.PIPE: "$or", syntax.CIRCUMFLEX: "$xor", syntax.LTLT: "$lshift",
	syntax.GTGT: "$rshift", syntax.EQL: "$eq", syntax.NEQ: "$ne", syntax.LT: "$lt", syntax.LE: "$le", syntax.GT: "$gt", syntax.GE: "$ge",
	syntax.IN: "$in", syntax.NOT_IN: "$notin",
}

var universe = sync.OnceValue(library.Universe)

func hiddenCall(name string, args ...syntax.Expr) syntax.Expr {
	return &syntax.CallExpr{Fn: &syntax.Ident{Name: name}, Args: args}
}

// lower writes the operators, attributes and indexes of an expression as calls of hidden builtins, as package dialect does.
func lower(e syntax.Expr) syntax.Expr {
	list := func(es []syntax.Expr) {
		for i := range es {
			es[i] = lower(es[i])
		}
	}
	part := func(e syntax.Expr) syntax.Expr {
		if e == nil {
			return &syntax.Ident{Name: "None"}
		}
		return lower(e)
	}
	switch e := e.(type) {
	case *syntax.BinaryExpr:
		e.X, e.Y = lower(e.X), lower(e.Y)
		if name := hiddenOf[e.Op]; name != "" {
			return hiddenCall(name, e.X, e.Y)
		}
	case *syntax.UnaryExpr:
		if e.X != nil {
			e.X = lower(e.X)
		}
	case *syntax.CallExpr:
		e.Fn = lower(e.Fn)
		list(e.Args)
	case *syntax.DotExpr:
		return hiddenCall("$attr", lower(e.X), &syntax.Literal{Token: syntax.STRING, Value: e.Name.Name})
	case *syntax.IndexExpr:
		return hiddenCall("$index", lower(e.X), lower(e.Y))
	case *syntax.SliceExpr:
		return hiddenCall("$slice", lower(e.X), part(e.Lo), part(e.Hi), part(e.Step))
	case *syntax.ParenExpr:
		e.X = lower(e.X)
	case *syntax.ListExpr:
		list(e.List)
	case *syntax.TupleExpr:
		list(e.List)
	case *syntax.DictExpr:
		list(e.List)
	case *syntax.DictEntry:
		e.Key, e.Value = lower(e.Key), lower(e.Value)
	case *syntax.CondExpr:
		e.Cond, e.True, e.False = lower(e.Cond), lower(e.True), lower(e.False)
	case *syntax.LambdaExpr:
		e.Body = lower(e.Body)
	case *syntax.Comprehension:
		e.Body = lower(e.Body)
		for _, clause := range e.Clauses {
			switch clause := clause.(type) {
			case *syntax.ForClause:
				clause.X = hiddenCall("$iter", lower(clause.X))
			case *syntax.IfClause:
				clause.Cond = lower(clause.Cond)
			}
		}
	}
	return e
}

func evaluate(thread *starlark.Thread, expr string) (starlark.Value, error) {
	return evaluateWith(thread, expr, nil)
}

// evaluateWith is the value of an expression in which more names have values.
func evaluateWith(thread *starlark.Thread, expr string, more starlark.StringDict) (starlark.Value, error) {
	options := syntax.FileOptions{Set: true, TopLevelControl: true, GlobalReassign: true, Recursion: true, While: true}
	x, err := options.ParseExpr("code", expr, 0)
	if err != nil {
		return nil, err
	}
	file := &syntax.File{Path: "code", Options: &options, Stmts: []syntax.Stmt{
		&syntax.AssignStmt{Op: syntax.EQ, LHS: &syntax.Ident{Name: "result"}, RHS: lower(x)},
	}}
	universe := maps.Clone(universe())
	maps.Copy(universe, more)
	program, err := starlark.FileProgram(file, universe.Has)
	if err != nil {
		return nil, err
	}
	globals, err := program.Init(thread, universe)
	if err != nil {
		return nil, err
	}
	return globals["result"], nil
}

// canonical writes a value as testdata/generate.py does.
func canonical(v starlark.Value) string {
	row := func(open string, values []starlark.Value, end string) string {
		parts := make([]string, len(values))
		for i, v := range values {
			parts[i] = canonical(v)
		}
		return open + strings.Join(parts, ", ") + end
	}
	switch v := v.(type) {
	case starlark.String:
		var b strings.Builder
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		_ = enc.Encode(string(v))
		return strings.NewReplacer("\\u2028", "\u2028", "\\u2029", "\u2029").Replace(strings.TrimSpace(b.String()))
	case starlark.Float:
		f := float64(v)
		switch {
		case math.IsNaN(f):
			return "nan"
		case math.IsInf(f, 0):
			return map[bool]string{true: "inf", false: "-inf"}[f > 0]
		}
		return "float " + strconv.FormatFloat(f, 'g', 17, 64)
	case *starlark.List:
		return row("[", slices.Collect(v.Elements()), "]")
	case starlark.Tuple:
		return row("(", v, ")")
	case *starlark.Set:
		var parts []string
		for k := range v.Elements() {
			parts = append(parts, canonical(k))
		}
		slices.Sort(parts)
		return "set " + strings.Join(parts, ", ")
	case *starlark.Dict:
		var parts []string
		for k, x := range v.Entries() {
			parts = append(parts, canonical(k)+": "+canonical(x))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}
	switch v.Type() {
	case "range", "dict_keys", "dict_items":
		var values []starlark.Value
		for x := range starlark.Elements(v.(starlark.Iterable)) {
			values = append(values, x)
		}
		return row("[", values, "]")
	}
	return v.String()
}

// outcome is the canonical value of an expression, or ! and the class of its exception.
func outcome(expr string) (got string, err error) {
	v, err := evaluate(&starlark.Thread{}, expr)
	if err == nil {
		return canonical(v), nil
	}
	var e *fault.Exception
	if errors.As(err, &e) {
		return "!" + e.Class, err
	}
	return fmt.Sprintf("error %T: %v", err, err), err
}

func TestExpressionsAreSame(t *testing.T) {
	got, err := outcome(`[1, 2.5, "é", (None, True), {"a": 1 + 1}]`)
	if want := `[1, float 2.5, "é", (None, True), {"a": 2}]`; got != want || err != nil {
		t.Fatalf("got %s, want %s (%v)", got, want, err)
	}
}
