package dialect

import (
	"slices"

	"go.starlark.net/syntax"
)

// block lowers statements; none are a pass.
func (l *lowering) block(body []stmt, at place) (out []syntax.Stmt) {
	for _, s := range body {
		out = append(out, l.stmt(s)...)
	}
	return l.some(out, at)
}

func (l *lowering) some(body []syntax.Stmt, at place) []syntax.Stmt {
	if len(body) == 0 {
		return []syntax.Stmt{&syntax.BranchStmt{Token: syntax.PASS, TokenPos: l.pos(at)}}
	}
	return body
}

func (l *lowering) stmt(s stmt) []syntax.Stmt {
	switch s := s.(type) {
	case *exprStmt:
		if _, ok := s.x.(*literal); ok { // a docstring
			return nil
		}
		return []syntax.Stmt{l.do(l.expr(s.x))}
	case *assign:
		return l.assignment(s)
	case *augmented:
		return l.augmented(s)
	case *branch:
		return l.branch(s)
	case *returnStmt:
		return l.leave(s.place, l.orNone(s.place, s.value))
	case *raiseStmt:
		if s.x == nil {
			return []syntax.Stmt{l.do(l.hidden(s.place, "$raise"))}
		}
		return []syntax.Stmt{l.do(l.hidden(s.place, "$raise", l.expr(s.x)))}
	case *delStmt:
		return l.del(s)
	case *ifStmt:
		return l.ifs(s.arms, s.other)
	case *loop:
		return l.loop(s)
	case *def:
		return l.def(s)
	case *try:
		return l.try(s)
	}
	return nil // global, nonlocal
}

func (l *lowering) assignment(s *assign) []syntax.Stmt {
	if len(s.targets) == 1 {
		return l.assign(s.place, s.targets[0], l.expr(s.value))
	}
	t := ident(l, s.place, l.temp())
	out := []syntax.Stmt{l.set(s.place, t, l.expr(s.value))}
	for _, target := range s.targets {
		out = append(out, l.assign(target.at(), target, ident(l, s.place, t.Name))...)
	}
	return out
}

// assign lowers target = value.
func (l *lowering) assign(at place, target expr, value syntax.Expr) []syntax.Stmt {
	if x, ok := target.(*index); ok {
		return []syntax.Stmt{l.do(l.hidden(x.lbrack, "$setindex", value, l.expr(x.x), l.expr(x.i)))}
	}
	if d, ok := target.(*display); ok {
		if star := slices.IndexFunc(d.items, isStarred); star >= 0 {
			value = l.unpack(at, value, d, star)
		}
		lhs, then := l.items(d)
		return append([]syntax.Stmt{l.set(at, lhs, value)}, statements(then)...)
	}
	lhs, _ := l.pattern(target)
	return []syntax.Stmt{l.set(at, lhs, value)}
}

func (l *lowering) unpack(at place, value syntax.Expr, d *display, star int) syntax.Expr {
	return l.hidden(at, "$unpack", value, l.integer(at, star), l.integer(at, len(d.items)-1-star))
}

// pattern is what a target is on the left of =, and the assignments to be made then.
func (l *lowering) pattern(target expr) (lhs syntax.Expr, then []*syntax.AssignStmt) {
	at := target.at()
	switch x := target.(type) {
	case *nameExpr:
		if x.of.cell {
			return l.contents(at, x.of), nil
		}
		return ident(l, at, x.of.variable), nil
	case *index:
		return &syntax.IndexExpr{X: l.expr(x.x), Lbrack: l.pos(x.lbrack), Y: l.expr(x.i), Rbrack: l.pos(x.lbrack)}, nil
	case *starred:
		return l.pattern(x.x)
	case *display:
		star := slices.IndexFunc(x.items, isStarred)
		if star < 0 {
			return l.items(x)
		}
		t := l.temp()
		items, then := l.items(x)
		first := &syntax.AssignStmt{OpPos: l.pos(at), Op: syntax.EQ, LHS: items, RHS: l.unpack(at, ident(l, at, t), x, star)}
		return ident(l, at, t), append([]*syntax.AssignStmt{first}, then...)
	}
	panic("no such target")
}

// items is the pattern of a display, whose stars are dropped.
func (l *lowering) items(d *display) (lhs syntax.Expr, then []*syntax.AssignStmt) {
	var list []syntax.Expr
	for _, item := range d.items {
		x, more := l.pattern(item)
		list, then = append(list, x), append(then, more...)
	}
	return l.tuple(d.place, list), then
}

func statements(list []*syntax.AssignStmt) (out []syntax.Stmt) {
	for _, s := range list {
		out = append(out, s)
	}
	return out
}

// augmented lowers target op= value. A list is changed in place, as in Python.
func (l *lowering) augmented(s *augmented) []syntax.Stmt {
	if x, ok := s.target.(*index); ok {
		a, b := l.temp(), l.temp()
		read := l.hidden(x.lbrack, "$index", ident(l, x.place, a), ident(l, x.place, b))
		out := []syntax.Stmt{l.set(x.place, ident(l, x.place, a), l.expr(x.x)), l.set(x.place, ident(l, x.place, b), l.expr(x.i))}
		t := l.temp()
		out = append(out, l.set(x.place, ident(l, x.place, t), read), l.change(s, t))
		return append(out, l.do(l.hidden(x.lbrack, "$setindex", ident(l, x.place, t), ident(l, x.place, a), ident(l, x.place, b))))
	}
	b := s.target.(*nameExpr).of
	if !b.cell {
		return []syntax.Stmt{l.change(s, b.variable)}
	}
	t := l.temp()
	return []syntax.Stmt{l.set(s.place, ident(l, s.place, t), l.expr(s.target)), l.change(s, t),
		l.set(s.place, l.contents(s.place, b), ident(l, s.place, t))}
}

// change lowers variable op= value.
func (l *lowering) change(s *augmented, variable string) syntax.Stmt {
	lhs, rhs := ident(l, s.place, variable), l.expr(s.value)
	if op := tokens[s.op]; isNative(s.op, s.target, s.value) {
		return &syntax.AssignStmt{OpPos: l.pos(s.opAt), Op: op - syntax.PLUS + syntax.PLUS_EQ, LHS: lhs, RHS: rhs}
	}
	name := calls[s.op]
	switch s.op {
	case "+":
		name = "$iadd"
	case "|":
		name = "$ior"
	}
	return l.set(s.place, lhs, l.hidden(s.opAt, name, ident(l, s.place, variable), rhs))
}

func (l *lowering) del(s *delStmt) (out []syntax.Stmt) {
	for _, x := range s.targets {
		switch x := x.(type) {
		case *nameExpr:
			out = append(out, l.do(l.hidden(x.place, "$unset", ident(l, x.place, x.of.variable))))
		case *index:
			out = append(out, l.do(l.hidden(x.lbrack, "$del", l.expr(x.x), l.expr(x.i))))
		}
	}
	return out
}

func (l *lowering) ifs(arms []arm, other []stmt) []syntax.Stmt {
	a := arms[0]
	s := &syntax.IfStmt{If: l.pos(a.place), Cond: l.expr(a.test), True: l.block(a.body, a.place), ElsePos: l.pos(a.place)}
	switch {
	case len(arms) > 1:
		s.False = l.ifs(arms[1:], other)
	case other != nil:
		s.False = l.block(other, a.place)
	}
	return []syntax.Stmt{s}
}

// loop lowers for and while. With else, break sets a flag.
func (l *lowering) loop(s *loop) (out []syntax.Stmt) {
	flag := ""
	if s.other != nil {
		l.count++
		flag = "$broke" + itoa(l.count)
		out = append(out, l.set(s.place, ident(l, s.place, flag), ident(l, s.place, "False")))
	}
	l.fn.loops = append(l.fn.loops, flag)
	if s.target == nil {
		out = append(out, &syntax.WhileStmt{While: l.pos(s.place), Cond: l.expr(s.x), Body: l.block(s.body, s.place)})
	} else {
		x := l.hidden(s.x.at(), "$iter", l.expr(s.x))
		target, then := l.pattern(s.target)
		body := append(statements(then), l.block(s.body, s.place)...)
		out = append(out, &syntax.ForStmt{For: l.pos(s.target.at()), Vars: target, X: x, Body: body})
	}
	l.fn.loops = l.fn.loops[:len(l.fn.loops)-1]
	if s.other != nil {
		test := &syntax.UnaryExpr{OpPos: l.pos(s.place), Op: syntax.NOT, X: ident(l, s.place, flag)}
		out = append(out, &syntax.IfStmt{If: l.pos(s.place), Cond: test, True: l.block(s.other, s.place)})
	}
	return out
}

// def lowers a function. One whose name is a cell is assigned to it.
func (l *lowering) def(s *def) []syntax.Stmt {
	b := s.name.of
	name := b.variable
	if b.cell {
		name = Aside(Aside(name)) // no global's
	}
	outside := l.fn
	l.fn = &context{kind: function}
	body := append([]syntax.Stmt{l.do(l.hidden(s.place, "$enter"))}, l.cells(s.own, s.place)...)
	body = append(body, l.block(s.body, s.place)...)
	l.fn = outside
	d := &syntax.DefStmt{Def: l.pos(s.place), Name: ident(l, s.name.place, name), Lparen: l.pos(s.place), Params: l.params(s.params), Rparen: l.pos(s.place), Body: body}
	if !b.cell {
		return []syntax.Stmt{d}
	}
	return []syntax.Stmt{d, l.set(s.place, l.contents(s.place, b), ident(l, s.place, name))}
}
