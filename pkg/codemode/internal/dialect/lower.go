package dialect

import (
	"math/big"
	"strconv"

	"go.starlark.net/syntax"
)

var options = &syntax.FileOptions{Set: true, While: true, TopLevelControl: true, GlobalReassign: true, Recursion: true}

// A lowering makes Starlark of a tree whose names are bound.
type lowering struct {
	file  string // what positions point to
	count int    // of temporaries
	fn    *context
}

// A context is the function that is being made: what a jump is there.
type context struct {
	kind    contextKind
	loops   []string // around the present statement, in this function: the flag that break sets, "" for none
	signals signals  // that a part of a try returns
}

type contextKind int

const (
	topLevel contextKind = iota
	function
	tryPart
)

// lower makes a file of a tree.
func lower(tree []stmt, file *scope) *syntax.File {
	l := &lowering{file: FileName, fn: &context{}}
	body := append(l.globals(file), l.cells(file, place{1, 1})...)
	for i, s := range tree {
		if x, ok := s.(*exprStmt); ok && i == len(tree)-1 {
			body = append(body, l.set(x.place, ident(l, x.place, "$last"), l.expr(x.x)))
			continue
		}
		body = append(body, l.stmt(s)...)
	}
	return &syntax.File{Path: l.file, Stmts: body, Options: options}
}

// globals declares the variables of the file, for Starlark takes no use of a global that stands above its assignment, such as
// one in a loop that an earlier round made. The assignments here are never run.
func (l *lowering) globals(file *scope) []syntax.Stmt {
	at := place{1, 1}
	var body []syntax.Stmt
	for _, b := range file.order {
		body = append(body, l.set(at, ident(l, at, b.variable), l.none(at)))
	}
	if body == nil {
		return nil
	}
	return []syntax.Stmt{&syntax.IfStmt{If: l.pos(at), Cond: ident(l, at, "False"), True: body}}
}

// cells makes the variables of a scope that are cells, and gives those that hide a built-in its value.
func (l *lowering) cells(s *scope, at place) (body []syntax.Stmt) {
	for _, b := range s.order {
		name := ident(l, at, b.variable)
		if !b.cell {
			if b.shadows {
				body = append(body, l.set(at, name, ident(l, at, b.name)))
			}
			continue
		}
		var initial syntax.Expr
		if b.shadows {
			initial = ident(l, at, b.name)
		}
		if b.param {
			t := l.temp()
			body = append(body, l.set(at, ident(l, at, t), ident(l, at, b.variable)))
			initial = ident(l, at, t)
		}
		body = append(body, l.set(at, name, l.hidden(at, "$cell", text(l, at, b.name))))
		if initial != nil {
			body = append(body, l.set(at, l.contents(at, b), initial))
		}
	}
	return body
}

// contents is what a cell holds, to be assigned to.
func (l *lowering) contents(at place, b *binding) syntax.Expr {
	return &syntax.IndexExpr{X: ident(l, at, b.variable), Lbrack: l.pos(at), Y: l.integer(at, 0), Rbrack: l.pos(at)}
}

func (l *lowering) temp() string {
	l.count++
	return "$t" + strconv.Itoa(l.count)
}

func (l *lowering) pos(at place) syntax.Position {
	return syntax.MakePosition(&l.file, at.line, at.col)
}

func ident(l *lowering, at place, name string) *syntax.Ident {
	return &syntax.Ident{NamePos: l.pos(at), Name: name}
}

func text(l *lowering, at place, s string) *syntax.Literal {
	return &syntax.Literal{Token: syntax.STRING, TokenPos: l.pos(at), Value: s}
}

func (l *lowering) integer(at place, n int) *syntax.Literal {
	return &syntax.Literal{Token: syntax.INT, TokenPos: l.pos(at), Value: int64(n)}
}

func (l *lowering) none(at place) syntax.Expr { return ident(l, at, "None") }

func (l *lowering) literal(x *literal) syntax.Expr {
	lit := &syntax.Literal{TokenPos: l.pos(x.place), Value: x.value}
	switch x.value.(type) {
	case string:
		lit.Token = syntax.STRING
	case int64, *big.Int:
		lit.Token = syntax.INT
	default:
		lit.Token = syntax.FLOAT
	}
	return lit
}

// maxArgs are what a call of Starlark may have; more go in as a list.
const maxArgs = 250

// hidden is a call of a hidden built-in.
func (l *lowering) hidden(at place, name string, args ...syntax.Expr) syntax.Expr {
	return l.callAt(at, ident(l, at, name), args)
}

func (l *lowering) callAt(at place, fn syntax.Expr, args []syntax.Expr) syntax.Expr {
	if len(args) > maxArgs {
		args = []syntax.Expr{&syntax.UnaryExpr{OpPos: l.pos(at), Op: syntax.STAR, X: l.list(at, args)}}
	}
	return &syntax.CallExpr{Fn: fn, Lparen: l.pos(at), Args: args, Rparen: l.pos(at)}
}

func (l *lowering) list(at place, items []syntax.Expr) syntax.Expr {
	return &syntax.ListExpr{Lbrack: l.pos(at), List: items, Rbrack: l.pos(at)}
}

func (l *lowering) tuple(at place, items []syntax.Expr) *syntax.TupleExpr {
	return &syntax.TupleExpr{Lparen: l.pos(at), List: items, Rparen: l.pos(at)}
}

func (l *lowering) set(at place, target, value syntax.Expr) syntax.Stmt {
	return &syntax.AssignStmt{OpPos: l.pos(at), Op: syntax.EQ, LHS: target, RHS: value}
}

func (l *lowering) do(x syntax.Expr) syntax.Stmt { return &syntax.ExprStmt{X: x} }
