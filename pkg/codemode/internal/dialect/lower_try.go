package dialect

import (
	"strconv"

	"go.starlark.net/syntax"
)

func itoa(n int) string { return strconv.Itoa(n) }

// signals are the jumps out of a part of a try, which that returns as values.
type signals struct{ breaks, continues, returns bool }

// leave lowers return. A part of a try returns a signal; the top level ends the code.
func (l *lowering) leave(at place, value syntax.Expr) []syntax.Stmt {
	switch l.fn.kind {
	case topLevel:
		return []syntax.Stmt{l.do(l.hidden(at, "$stop", value))}
	case tryPart:
		l.fn.signals.returns = true
		value = l.hidden(at, "$returned", value)
	}
	return []syntax.Stmt{&syntax.ReturnStmt{Return: l.pos(at), Result: value}}
}

// branch lowers pass, break and continue.
func (l *lowering) branch(s *branch) []syntax.Stmt {
	token := map[string]syntax.Token{"pass": syntax.PASS, "break": syntax.BREAK, "continue": syntax.CONTINUE}[s.word]
	native := &syntax.BranchStmt{Token: token, TokenPos: l.pos(s.place)}
	n := len(l.fn.loops)
	switch {
	case s.word == "pass" || n > 0 && s.word == "continue":
		return []syntax.Stmt{native}
	case n > 0:
		if flag := l.fn.loops[n-1]; flag != "" {
			return []syntax.Stmt{l.set(s.place, ident(l, s.place, flag), ident(l, s.place, "True")), native}
		}
		return []syntax.Stmt{native}
	}
	name := "$BREAK"
	if l.fn.signals.breaks = l.fn.signals.breaks || s.word == "break"; s.word == "continue" {
		l.fn.signals.continues = true
		name = "$CONTINUE"
	}
	return []syntax.Stmt{&syntax.ReturnStmt{Return: l.pos(s.place), Result: ident(l, s.place, name)}}
}

// A tryLowering makes the functions of one try.
type tryLowering struct {
	*lowering
	number  string
	defs    []syntax.Stmt
	signals signals
}

// try lowers the statement to functions of its parts, a call of $try, and the jumps that they ask for.
func (l *lowering) try(s *try) []syntax.Stmt {
	l.count++
	t := &tryLowering{lowering: l, number: itoa(l.count)}
	body := t.part("$body", s.place, s.body, nil)
	var handlers []syntax.Expr
	for i, h := range s.handlers {
		classes := l.orNone(h.place, h.classes)
		name := "$e"
		if h.name != nil {
			name = h.name.name
		}
		param := ident(l, h.place, name)
		fn := t.part("$except"+itoa(i+1)+"_", h.place, h.body, h.own, param)
		handlers = append(handlers, l.tuple(h.place, []syntax.Expr{classes, fn}))
	}
	other, finally := l.none(s.place), l.none(s.place)
	if s.other != nil {
		other = t.part("$else", s.otherAt, s.other, nil)
	}
	if s.finally != nil {
		finally = t.part("$finally", s.lastAt, s.finally, nil)
	}
	run := l.hidden(s.place, "$try", body, l.tuple(s.place, handlers), other, finally)
	return append(t.defs, t.dispatch(s.place, run)...)
}

// part makes a function of a block, and returns its name.
func (t *tryLowering) part(name string, at place, body []stmt, own *scope, params ...syntax.Expr) syntax.Expr {
	l := t.lowering
	name += t.number
	outside := l.fn
	l.fn = &context{kind: tryPart}
	var lines []syntax.Stmt
	if own != nil {
		lines = l.cells(own, at)
	}
	lines = append(lines, l.block(body, at)...)
	inner := l.fn.signals
	l.fn = outside
	t.signals.breaks = t.signals.breaks || inner.breaks
	t.signals.continues = t.signals.continues || inner.continues
	t.signals.returns = t.signals.returns || inner.returns
	t.defs = append(t.defs, &syntax.DefStmt{Def: l.pos(at), Name: ident(l, at, name), Lparen: l.pos(at), Params: params, Rparen: l.pos(at), Body: lines})
	return ident(l, at, name)
}

// dispatch does what the signal asks for that a run of the try returns.
func (t *tryLowering) dispatch(at place, run syntax.Expr) []syntax.Stmt {
	l := t.lowering
	if t.signals == (signals{}) {
		return []syntax.Stmt{l.do(run)}
	}
	s := "$s" + t.number
	out := []syntax.Stmt{l.set(at, ident(l, at, s), run)}
	when := func(test syntax.Expr, body []syntax.Stmt) {
		out = append(out, &syntax.IfStmt{If: l.pos(at), Cond: test, True: body})
	}
	same := func(signal string) syntax.Expr {
		return &syntax.BinaryExpr{X: ident(l, at, s), OpPos: l.pos(at), Op: syntax.EQL, Y: ident(l, at, signal)}
	}
	if t.signals.breaks {
		when(same("$BREAK"), l.branch(&branch{at, "break"}))
	}
	if t.signals.continues {
		when(same("$CONTINUE"), l.branch(&branch{at, "continue"}))
	}
	if t.signals.returns {
		when(l.hidden(at, "$isreturn", ident(l, at, s)), l.leave(at, l.hidden(at, "$value", ident(l, at, s))))
	}
	return out
}
