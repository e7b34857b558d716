package dialect

import (
	"slices"

	"go.starlark.net/syntax"
)

// display lowers (…), […] or {…} of items.
func (l *lowering) display(d *display) syntax.Expr {
	var list syntax.Expr
	switch {
	case slices.ContainsFunc(d.items, isStarred):
		list = l.concat(d.place, d.items)
	case d.open == '(':
		return l.tuple(d.place, l.exprs(d.items))
	default:
		list = l.list(d.place, l.exprs(d.items))
	}
	switch d.open {
	case '(':
		return l.hidden(d.place, "tuple", list)
	case '{':
		return l.hidden(d.place, "$set", list)
	}
	return list
}

// concat is the list of items, some of which have stars.
func (l *lowering) concat(at place, items []expr) syntax.Expr {
	var args, run []syntax.Expr
	flush := func() {
		if run != nil {
			args, run = append(args, l.list(at, run)), nil
		}
	}
	for _, item := range items {
		if s, ok := item.(*starred); ok {
			flush()
			args = append(args, l.expr(s.x))
			continue
		}
		run = append(run, l.expr(item))
	}
	flush()
	return l.hidden(at, "$concat", args...)
}

// dict lowers a dict. Starlark refuses a key that is there twice, Python takes the last value: where keys are not known to
// differ, each has a dict of its own.
func (l *lowering) dict(d *dictDisplay) syntax.Expr {
	var args, run []syntax.Expr
	flush := func() {
		if run != nil {
			args, run = append(args, l.entries(d.place, run)), nil
		}
	}
	seen := map[any]bool{}
	for i, key := range d.keys {
		if key == nil {
			flush()
			args = append(args, l.expr(d.values[i]))
			continue
		}
		value, constant := constantKey(key)
		if !constant || seen[value] {
			flush()
			clear(seen)
		}
		run = append(run, l.entry(l.expr(key), key.at(), l.expr(d.values[i])))
		if seen[value] = true; !constant {
			flush()
			clear(seen)
		}
	}
	if args == nil {
		return l.entries(d.place, run)
	}
	flush()
	if len(args) == 1 && len(d.keys) == 1 && d.keys[0] != nil {
		return args[0]
	}
	return l.hidden(d.place, "$dict", args...)
}

func (l *lowering) entries(at place, entries []syntax.Expr) syntax.Expr {
	return &syntax.DictExpr{Lbrace: l.pos(at), List: entries, Rbrace: l.pos(at)}
}

// constantKey is the value of a key that is text or a small integer.
func constantKey(x expr) (any, bool) {
	lit, ok := x.(*literal)
	if !ok {
		return nil, false
	}
	switch lit.value.(type) {
	case string, int64:
		return lit.value, true
	}
	return nil, false
}

// call lowers a call. Starlark wants positions, names, one * and one ** in this order.
func (l *lowering) call(c *call) syntax.Expr {
	var positions, doubles []expr
	var named []syntax.Expr
	for _, a := range c.args {
		switch {
		case a.stars == 1:
			positions = append(positions, &starred{a.place, a.value})
		case a.stars == 2:
			doubles = append(doubles, a.value)
		case a.name != "":
			named = append(named, &syntax.BinaryExpr{X: ident(l, a.place, a.name), OpPos: l.pos(a.place), Op: syntax.EQ, Y: l.expr(a.value)})
		default:
			positions = append(positions, a.value)
		}
	}
	fn := l.callee(c)
	args, star := l.positions(c.nameAt, positions)
	if len(named) > maxArgs {
		c.fail("more than %d arguments by name", maxArgs)
	}
	args = append(args, named...)
	if star != nil {
		args = append(args, &syntax.UnaryExpr{OpPos: l.pos(c.nameAt), Op: syntax.STAR, X: star})
	}
	if len(doubles) > 0 {
		args = append(args, &syntax.UnaryExpr{OpPos: l.pos(c.nameAt), Op: syntax.STARSTAR, X: l.merged(c.nameAt, doubles)})
	}
	return &syntax.CallExpr{Fn: fn, Lparen: l.pos(c.nameAt), Args: args, Rparen: l.pos(c.nameAt)}
}

// positions are the arguments by position, and what goes in by a star.
func (l *lowering) positions(at place, xs []expr) (args []syntax.Expr, star syntax.Expr) {
	stars := slices.IndexFunc(xs, isStarred)
	switch {
	case stars < 0 && len(xs) <= maxArgs:
		return l.exprs(xs), nil
	case stars < 0:
		return nil, l.list(at, l.exprs(xs))
	case stars == len(xs)-1 && len(xs) <= maxArgs:
		return l.exprs(xs[:stars]), l.hidden(at, "$iter", l.expr(xs[stars].(*starred).x)) // text too gives its characters
	}
	return nil, l.concat(at, xs)
}

// merged is what goes in by two stars. It is looked at before Starlark does.
func (l *lowering) merged(at place, xs []expr) syntax.Expr {
	return l.hidden(at, "$keywords", l.exprs(xs)...)
}

// callee lowers what is called, with a look at whether it can be.
func (l *lowering) callee(c *call) syntax.Expr {
	if x, ok := c.fn.(*attribute); ok {
		return l.hidden(x.nameAt, "$method", l.expr(x.x), text(l, x.nameAt, x.name))
	}
	fn := l.expr(c.fn)
	if mayFail(c.fn) {
		return l.hidden(c.nameAt, "$callee", fn, text(l, c.nameAt, spelled(c.fn)))
	}
	return fn
}

// spelled is the name of what is called, if it has one.
func spelled(fn expr) string {
	if n, ok := fn.(*nameExpr); ok {
		return n.name
	}
	return ""
}

func (l *lowering) params(params []param) []syntax.Expr {
	var out []syntax.Expr
	for _, p := range params {
		var x syntax.Expr
		if p.name != nil {
			x = ident(l, p.name.place, p.name.name)
		}
		switch {
		case p.stars == 1:
			x = &syntax.UnaryExpr{OpPos: l.pos(p.place), Op: syntax.STAR, X: x}
		case p.stars == 2:
			x = &syntax.UnaryExpr{OpPos: l.pos(p.place), Op: syntax.STARSTAR, X: x}
		case p.value != nil:
			x = &syntax.BinaryExpr{X: x, OpPos: l.pos(p.place), Op: syntax.EQ, Y: l.expr(p.value)}
		}
		out = append(out, x)
	}
	return out
}
