package dialect

func (a *analysis) stmts(body []stmt) {
	for _, s := range body {
		a.stmt(s)
	}
}

func (a *analysis) deeper(at place, f func()) {
	if a.depth++; a.depth > maxDepth {
		at.tooDeep()
	}
	f()
	a.depth--
}

func (a *analysis) stmt(s stmt) {
	a.deeper(s.at(), func() {
		switch s := s.(type) {
		case *exprStmt:
			a.expr(s.x)
		case *assign:
			a.expr(s.value)
			for _, t := range s.targets {
				a.target(t, s.value)
			}
		case *augmented:
			a.expr(s.target)
			a.expr(s.value)
			if n, ok := s.target.(*nameExpr); ok {
				a.write(n, false, &counted{s})
			}
		case *returnStmt:
			a.expr(s.value)
		case *raiseStmt:
			a.expr(s.x)
		case *delStmt:
			a.del(s)
		case *outer:
			a.outer(s)
		case *ifStmt:
			for i, arm := range s.arms {
				if i > maxDepth/2 {
					arm.tooDeep()
				}
				a.expr(arm.test)
				a.stmts(arm.body)
			}
			a.stmts(s.other)
		case *loop:
			a.expr(s.x)
			a.target(s.target, &element{of: s.x})
			a.stmts(s.body)
			a.stmts(s.other)
		case *def:
			a.def(s)
		case *try:
			a.try(s)
		}
	})
}

// target walks what is assigned to; value is what can be said of what it gets.
func (a *analysis) target(x, value expr) {
	switch x := x.(type) {
	case nil:
	case *nameExpr:
		a.write(x, false, value)
	case *display:
		for i, item := range x.items {
			a.target(item, memberOf(value, i, x.items))
		}
	case *starred:
		a.target(x.x, nil)
	default:
		a.expr(x)
	}
}

func (a *analysis) del(s *delStmt) {
	for _, x := range s.targets {
		if n, ok := x.(*nameExpr); ok {
			a.write(n, true, nil)
			continue
		}
		a.expr(x)
	}
}

func (a *analysis) def(d *def) {
	a.defaults(d.params)
	a.write(d.name, false, d)
	d.own = a.within(defScope, new(frame), func() {
		a.params(d.params)
		a.stmts(d.body)
	})
	for _, b := range d.own.order {
		a.names.inside[b.name] = "the function " + d.name.name
	}
}

func (a *analysis) defaults(params []param) {
	for _, p := range params {
		a.expr(p.value)
	}
}

func (a *analysis) params(params []param) {
	for _, p := range params {
		if p.name != nil {
			a.write(p.name, false, nil)
			a.in.names[p.name.name].param = true
		}
	}
}

func (a *analysis) try(s *try) {
	a.part(s.body)
	for i := range s.handlers {
		h := &s.handlers[i]
		a.expr(h.classes)
		if h.name == nil {
			a.part(h.body)
			continue
		}
		h.own = a.within(exceptScope, new(frame), func() {
			b := a.bind(a.in, h.name.name)
			b.param = true
			h.name.of = b
			a.stmts(h.body)
		})
		a.names.inside[h.name.name] = "its except"
	}
	a.part(s.other)
	a.part(s.finally)
}

func (a *analysis) exprs(xs []expr) {
	for _, x := range xs {
		a.expr(x)
	}
}

func (a *analysis) expr(x expr) {
	if x == nil {
		return
	}
	a.deeper(x.at(), func() { a.inner(x) })
}

func (a *analysis) inner(x expr) {
	switch x := x.(type) {
	case *nameExpr:
		a.read(x)
	case *fstring:
		a.parts(x.parts)
	case *display:
		a.exprs(x.items)
	case *dictDisplay:
		for i := range x.keys {
			a.expr(x.keys[i])
			a.expr(x.values[i])
		}
	case *unary:
		a.expr(x.x)
	case *binary:
		a.expr(x.x)
		a.expr(x.y)
	case *comparison:
		a.expr(x.first)
		for _, c := range x.rest {
			a.expr(c.x)
		}
	case *conditional:
		a.exprs([]expr{x.test, x.then, x.other})
	case *lambda:
		a.defaults(x.params)
		a.within(lambdaScope, new(frame), func() {
			a.params(x.params)
			a.expr(x.body)
		})
	case *comprehension:
		a.comprehension(x)
	case *call:
		a.expr(x.fn)
		for _, arg := range x.args {
			a.expr(arg.value)
		}
	case *attribute:
		a.expr(x.x)
	case *index:
		a.exprs([]expr{x.x, x.i})
	case *slice:
		a.exprs([]expr{x.lo, x.hi, x.step})
	case *starred:
		a.expr(x.x)
	case *walrus:
		a.expr(x.value)
		a.walrus(x)
	}
}

func (a *analysis) parts(parts []part) {
	for _, p := range parts {
		a.expr(p.value)
		a.parts(p.spec)
	}
}

// comprehension walks its first sequence outside of its scope, as Python does.
func (a *analysis) comprehension(c *comprehension) {
	a.expr(c.clauses[0].x)
	a.within(comprehensionScope, a.frame, func() {
		for i, cl := range c.clauses {
			if cl.target != nil {
				a.target(cl.target, &element{of: cl.x})
			}
			if i > 0 {
				a.expr(cl.x)
			}
		}
		a.expr(c.key)
		a.expr(c.value)
	})
}
