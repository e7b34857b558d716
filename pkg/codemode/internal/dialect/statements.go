package dialect

// statement reads one line of simple statements, or one compound statement.
func (p *parser) statement() []stmt {
	t := p.tok()
	switch {
	case t.is("if"):
		return []stmt{p.ifStatement()}
	case t.is("for"):
		return []stmt{p.forLoop()}
	case t.is("while"):
		return []stmt{p.whileLoop()}
	case t.is("try"):
		return []stmt{p.try()}
	case t.is("def"):
		return []stmt{p.def()}
	case t.is("with", "class", "async"):
		p.refuseKeyword(t)
	case t.is("@"):
		p.refuseDecorator()
	case t.kind == nameToken && t.text == "match" && p.isMatch():
		t.failHint("write if and elif", "there is no match")
	}
	return p.line()
}

// line reads simple statements up to the end of the line.
func (p *parser) line() (out []stmt) {
	for {
		out = append(out, p.simple()...)
		t := p.tok()
		switch {
		case t.kind == newlineToken:
			p.next()
			return out
		case t.kind == endToken:
			return out
		case !t.is(";"):
			p.afterStatement()
		}
		p.next()
		if p.tok().kind == newlineToken {
			p.next()
			return out
		}
	}
}

// afterStatement says what is wrong where a line should end.
func (p *parser) afterStatement() {
	prev := p.tokens[p.i-1]
	if prev.kind == nameToken && !p.tok().first && (prev.text == "print" || prev.text == "exec") {
		prev.failHint("write "+prev.text+"(…)", "%s is a function", prev.text)
	}
	if hint := refused[prev.text]; hint != "" && prev.kind == nameToken && p.tok().kind == nameToken {
		prev.failHint(hint, "there is no %s", prev.text)
	}
	p.unexpected("expected the end of the line")
}

func (p *parser) simple() []stmt {
	t := p.tok()
	switch {
	case t.is("pass", "break", "continue"):
		p.next()
		if t.text != "pass" && p.inLoop == 0 {
			t.fail("%s outside of a loop", t.text)
		}
		return []stmt{&branch{t.place, t.text}}
	case t.is("return"):
		p.next()
		s := &returnStmt{place: t.place}
		if !p.endsStatement() {
			s.value = p.expressions()
		}
		return []stmt{s}
	case t.is("raise"):
		return []stmt{p.raise()}
	case t.is("assert"):
		return []stmt{p.assert()}
	case t.is("del"):
		p.next()
		return []stmt{&delStmt{t.place, p.delTargets()}}
	case t.is("global", "nonlocal"):
		return []stmt{p.outer()}
	case t.is("import", "from") && !p.ahead().is("(", "="):
		return p.importLine()
	case t.is("..."):
		p.next()
		return []stmt{&branch{t.place, "pass"}}
	}
	return []stmt{p.assignment()}
}

func (p *parser) endsStatement() bool {
	t := p.tok()
	return t.kind == newlineToken || t.kind == endToken || t.is(";")
}

// assignment reads what begins with an expression.
func (p *parser) assignment() stmt {
	x := p.expressions()
	t := p.tok()
	switch {
	case t.is(":"):
		return p.annotated(x)
	case t.kind == opToken && len(t.text) > 1 && t.text[len(t.text)-1] == '=' && t.text != ":=" && !t.is("==", "!=", "<=", ">="):
		if t.text == "@=" {
			t.fail("there is no @ of matrices")
		}
		p.next()
		checkTarget(x)
		if _, ok := x.(*display); ok {
			x.at().failHint("change one variable a line", "%s changes one variable, not several", t.text)
		}
		return &augmented{x.at(), x, t.text[:len(t.text)-1], t.place, p.expressions()}
	case !t.is("="):
		return &exprStmt{x.at(), x}
	}
	a := &assign{place: x.at()}
	for p.accept("=") {
		checkTarget(x)
		a.targets = append(a.targets, x)
		x = p.expressions()
	}
	a.value = x
	return a
}

// annotated reads the type of a variable, and drops it.
func (p *parser) annotated(x expr) stmt {
	switch x.(type) {
	case *nameExpr, *index:
	default:
		p.unexpected("expected the end of the line")
	}
	checkTarget(x)
	p.next()
	if p.tok().kind == newlineToken {
		p.tok().failHint("a block belongs to if, for, while, def, try or else", "expected a type after the colon")
	}
	p.expression()
	if !p.accept("=") {
		return &branch{x.at(), "pass"}
	}
	return &assign{x.at(), []expr{x}, p.expressions()}
}

func (p *parser) raise() stmt {
	s := &raiseStmt{place: p.next().place}
	if p.endsStatement() {
		return s
	}
	s.x = p.expression()
	if t := p.tok(); t.is(",") {
		t.failHint("write raise ValueError(\"…\")", "raise takes one exception")
	}
	if p.accept("from") {
		p.expression()
	}
	return s
}

// assert is an if that raises.
func (p *parser) assert() stmt {
	at := p.next().place
	test := p.expression()
	e := &call{place: at, fn: &builtinExpr{at, "AssertionError"}, nameAt: at}
	if p.accept(",") {
		x := p.expression()
		e.args = []arg{{place: x.at(), value: x}}
	}
	return &ifStmt{place: at, arms: []arm{{at, &unary{at, "not", test}, []stmt{&raiseStmt{at, e}}}}}
}

func (p *parser) delTargets() []expr {
	x := p.expressions()
	items := []expr{x}
	if d, ok := x.(*display); ok && d.open != '{' {
		items = d.items
	}
	for _, item := range items {
		switch item := item.(type) {
		case *nameExpr:
			continue
		case *index:
			if _, ok := item.i.(*slice); !ok {
				continue
			}
			item.failHint("keep the rest: xs = xs[:a] + xs[b:]", "a slice cannot be deleted")
		case *attribute:
			item.failHint("keep data in a dict", "attributes cannot be deleted, so not .%s", item.name)
		}
		item.at().failHint("write d.pop(key)", "del takes names and x[i]")
	}
	return items
}

func (p *parser) outer() stmt {
	t := p.next()
	s := &outer{place: t.place, word: t.text}
	for {
		name := p.name("after " + t.text)
		s.names = append(s.names, name)
		if !p.accept(",") {
			return s
		}
	}
}

// name passes a name that must be there; after says what it follows.
func (p *parser) name(after string) *nameExpr {
	t := p.tok()
	if t.kind == keywordToken {
		t.failHint("write "+t.text+"_", "%s is a keyword, no name", t.text)
	}
	if t.kind != nameToken {
		p.unexpected("expected a name " + after)
	}
	p.next()
	return &nameExpr{place: t.place, name: t.text}
}
