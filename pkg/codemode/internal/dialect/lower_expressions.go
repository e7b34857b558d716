package dialect

import (
	"go.starlark.net/syntax"
)

func (l *lowering) exprs(xs []expr) []syntax.Expr {
	out := make([]syntax.Expr, len(xs))
	for i, x := range xs {
		out[i] = l.expr(x)
	}
	return out
}

// orNone lowers an expression; None stands for one that is not there.
func (l *lowering) orNone(at place, x expr) syntax.Expr {
	if x == nil {
		return l.none(at)
	}
	return l.expr(x)
}

func (l *lowering) expr(x expr) syntax.Expr {
	switch x := x.(type) {
	case *nameExpr:
		return l.name(x)
	case *builtinExpr:
		return ident(l, x.place, x.name)
	case *literal:
		return l.literal(x)
	case *fstring:
		return l.fstring(x.place, x.parts)
	case *display:
		return l.display(x)
	case *dictDisplay:
		return l.dict(x)
	case *unary:
		return l.unary(x)
	case *binary:
		return l.operation(x.op, x.opAt, l.expr(x.x), l.expr(x.y), isNative(x.op, x.x, x.y))
	case *comparison:
		return l.comparison(x)
	case *conditional:
		return l.choice(x.place, l.expr(x.test), l.expr(x.then), l.expr(x.other))
	case *lambda:
		body := l.choice(x.place, l.hidden(x.place, "$enter"), l.expr(x.body), l.none(x.place))
		return &syntax.LambdaExpr{Lambda: l.pos(x.place), Params: l.params(x.params), Body: body}
	case *comprehension:
		return l.comprehension(x)
	case *call:
		return l.call(x)
	case *attribute:
		return l.hidden(x.nameAt, "$attr", l.expr(x.x), text(l, x.nameAt, x.name))
	case *index:
		if s, ok := x.i.(*slice); ok {
			return l.hidden(x.lbrack, "$slice", l.expr(x.x), l.orNone(s.place, s.lo), l.orNone(s.place, s.hi), l.orNone(s.place, s.step))
		}
		return l.hidden(x.lbrack, "$index", l.expr(x.x), l.expr(x.i))
	case *walrus:
		return l.hidden(x.place, "$store", ident(l, x.place, x.target.of.variable), l.expr(x.value))
	}
	panic("no such expression")
}

func (l *lowering) name(x *nameExpr) syntax.Expr {
	switch b := x.of; {
	case b == nil:
		return ident(l, x.place, x.name)
	case b.cell:
		return l.hidden(x.place, "$get", ident(l, x.place, b.variable))
	default:
		return ident(l, x.place, b.variable)
	}
}

func (l *lowering) choice(at place, test, then, other syntax.Expr) syntax.Expr {
	return &syntax.CondExpr{If: l.pos(at), Cond: test, True: then, ElsePos: l.pos(at), False: other}
}

// calls are the operators as hidden built-ins, which know Python's rules, charge for large operands and say what is wrong.
var calls = map[string]string{
	"+": "$add", "-": "$sub", "*": "$mul", "/": "$div", "//": "$floordiv", "%": "$mod", "**": "$pow", "&": "$and", "|": "$or", "^": "$xor",
	"<<": "$lshift", ">>": "$rshift", "<": "$lt", ">": "$gt", "<=": "$le", ">=": "$ge", "==": "$eq", "!=": "$ne", "in": "$in",
	"not in": "$notin", "is": "$is",
}

// tokens are the operators that stay Starlark's: those that are no functions, and, between integers, those that are the same
// there and many times faster.
var tokens = map[string]syntax.Token{
	"and": syntax.AND, "or": syntax.OR,
	"+": syntax.PLUS, "-": syntax.MINUS, "<": syntax.LT, ">": syntax.GT, "<=": syntax.LE, ">=": syntax.GE,
}

// isNative tells whether Starlark's own operator does: between integers, of which none gets long without a charge.
func isNative(op string, x, y expr) bool {
	if _, ok := tokens[op]; !ok || !isWhole(x) || !isWhole(y) {
		return false
	}
	a, left := x.(*literal)
	b, right := y.(*literal)
	return left && isInteger(a) || right && isInteger(b) || op != "+" && op != "-"
}

func (l *lowering) unary(x *unary) syntax.Expr {
	op := map[string]syntax.Token{"not": syntax.NOT, "-": syntax.MINUS, "+": syntax.PLUS, "~": syntax.TILDE}[x.op]
	_, constant := x.x.(*literal)
	if x.op == "not" || constant && x.op != "~" || isWhole(x.x) {
		return &syntax.UnaryExpr{OpPos: l.pos(x.place), Op: op, X: l.expr(x.x)}
	}
	return l.hidden(x.place, map[string]string{"-": "$neg", "+": "$pos", "~": "$invert"}[x.op], l.expr(x.x))
}

func (l *lowering) operation(op string, at place, x, y syntax.Expr, native bool) syntax.Expr {
	if op == "is not" {
		return &syntax.UnaryExpr{OpPos: l.pos(at), Op: syntax.NOT, X: l.hidden(at, "$is", x, y)}
	}
	if name, ok := calls[op]; ok && !native {
		return l.hidden(at, name, x, y)
	}
	return &syntax.BinaryExpr{X: x, OpPos: l.pos(at), Op: tokens[op], Y: y}
}

// comparison lowers a < b < c to a < b and b < c, where b is evaluated once.
func (l *lowering) comparison(c *comparison) syntax.Expr {
	return l.compared(l.expr(c.first), c.first, c.rest)
}

// compared lowers a comparison whose first operand, of, has been lowered to x.
func (l *lowering) compared(x syntax.Expr, of expr, rest []compared) syntax.Expr {
	c := rest[0]
	native := isNative(c.op, of, c.x)
	if len(rest) == 1 {
		return l.operation(c.op, c.opAt, x, l.expr(c.x), native)
	}
	both := func(x, y, again syntax.Expr) syntax.Expr {
		return &syntax.BinaryExpr{X: l.operation(c.op, c.opAt, x, y, native), OpPos: l.pos(c.opAt), Op: syntax.AND, Y: l.compared(again, c.x, rest[1:])}
	}
	if isSimple(c.x) {
		return both(x, l.expr(c.x), l.expr(c.x))
	}
	at := c.x.at()
	a, b := l.temp(), l.temp()
	return l.let(at, []string{a, b}, []syntax.Expr{x, l.expr(c.x)}, both(ident(l, at, a), ident(l, at, b), ident(l, at, b)))
}

// isSimple tells what may be evaluated twice.
func isSimple(x expr) bool {
	switch x.(type) {
	case *nameExpr, *builtinExpr, *literal:
		return true
	}
	return false
}

// let is body with names for values: [body for names in [values]][0].
func (l *lowering) let(at place, names []string, values []syntax.Expr, body syntax.Expr) syntax.Expr {
	targets := make([]syntax.Expr, len(names))
	for i, n := range names {
		targets[i] = ident(l, at, n)
	}
	c := &syntax.Comprehension{Lbrack: l.pos(at), Body: body, Rbrack: l.pos(at), Clauses: []syntax.Node{
		l.forClause(at, l.tuple(at, targets), l.list(at, []syntax.Expr{l.tuple(at, values)}))}}
	return &syntax.IndexExpr{X: c, Lbrack: l.pos(at), Y: l.integer(at, 0), Rbrack: l.pos(at)}
}

func (l *lowering) forClause(at place, target, x syntax.Expr) *syntax.ForClause {
	return &syntax.ForClause{For: l.pos(at), Vars: target, In: l.pos(at), X: x}
}

func (l *lowering) comprehension(c *comprehension) syntax.Expr {
	out := &syntax.Comprehension{Lbrack: l.pos(c.place), Rbrack: l.pos(c.place)}
	for _, cl := range c.clauses {
		if cl.target == nil {
			out.Clauses = append(out.Clauses, &syntax.IfClause{If: l.pos(cl.place), Cond: l.expr(cl.x)})
			continue
		}
		x := l.hidden(cl.x.at(), "$iter", l.expr(cl.x))
		target, then := l.pattern(cl.target)
		out.Clauses = append(out.Clauses, l.forClause(cl.place, target, x))
		for _, s := range then {
			out.Clauses = append(out.Clauses, l.forClause(cl.place, s.LHS, l.list(cl.place, []syntax.Expr{s.RHS})))
		}
	}
	if c.key != nil {
		out.Curly = true
		out.Body = l.entry(l.expr(c.key), c.key.at(), l.expr(c.value))
		return out
	}
	out.Body = l.expr(c.value)
	if c.open == '{' {
		return l.hidden(c.place, "$set", out)
	}
	if c.open == '(' {
		return l.hidden(c.place, "$generator", out)
	}
	return out
}

// entry is a key with its value. A key that is made at run time is looked at before Starlark hashes it, which is not bounded.
func (l *lowering) entry(key syntax.Expr, at place, value syntax.Expr) *syntax.DictEntry {
	if _, constant := key.(*syntax.Literal); !constant {
		key = l.hidden(at, "$key", key)
	}
	return &syntax.DictEntry{Key: key, Colon: l.pos(at), Value: value}
}

func (l *lowering) fstring(at place, parts []part) syntax.Expr {
	var args []syntax.Expr
	for _, p := range parts {
		if p.field == nil {
			args = append(args, text(l, at, p.text))
			continue
		}
		spec := syntax.Expr(text(l, p.at, ""))
		if len(p.spec) == 1 && p.spec[0].field == nil {
			spec = text(l, p.at, p.spec[0].text)
		} else if len(p.spec) > 0 {
			spec = l.fstring(p.at, p.spec)
		}
		args = append(args, l.hidden(p.value.at(), "$format", l.expr(p.value), text(l, p.at, p.conv), spec))
	}
	return l.hidden(at, "$fstring", args...)
}
