package dialect

import "strings"

// block reads : and what belongs to it; what says to what it does.
func (p *parser) block(what string) (body []stmt) {
	at := p.tok().place
	if !p.tok().is(":") {
		p.unexpected("expected : after " + what)
	}
	p.next()
	if p.tok().kind != newlineToken {
		if t := p.tok(); t.is("if", "for", "while", "def", "try", "with", "class") {
			t.failHint("put it on a line of its own, indented", "%s behind a colon", t.text)
		}
		return p.line()
	}
	p.next()
	if t := p.tok(); t.kind != indentToken {
		if t.kind == endToken || t.kind == dedentToken {
			t.failHint("write pass for nothing", "expected an indented block after %s", what)
		}
		t.failHint("indent the lines that belong to it", "expected an indented block after %s", what)
	}
	p.next()
	p.nested(at, func() {
		for p.tok().kind != dedentToken && p.tok().kind != endToken {
			if p.tok().kind == indentToken {
				p.tok().failHint("begin the line under the one above", "a deeper indentation, where no block begins")
			}
			body = append(body, p.statement()...)
		}
	})
	if p.tok().kind == dedentToken {
		p.next()
	}
	return body
}

func (p *parser) ifStatement() stmt {
	s := &ifStmt{place: p.tok().place}
	for p.tok().is("if", "elif") {
		t := p.next()
		test := p.named()
		s.arms = append(s.arms, arm{t.place, test, p.block(t.text)})
		if p.tok().is("if") {
			break
		}
	}
	s.other = p.other()
	return s
}

// other reads else, if it is there.
func (p *parser) other() []stmt {
	if !p.accept("else") {
		return nil
	}
	return p.block("else")
}

func (p *parser) forLoop() stmt {
	l := &loop{place: p.next().place}
	l.target = p.targets("in")
	p.expect("in", "after the names of for")
	l.x = p.expressions()
	return p.loop(l, "for")
}

func (p *parser) whileLoop() stmt {
	l := &loop{place: p.next().place}
	l.x = p.named()
	return p.loop(l, "while")
}

func (p *parser) loop(l *loop, word string) stmt {
	p.inLoop++
	l.body = p.block(word)
	p.inLoop--
	l.other = p.other()
	return l
}

func (p *parser) def() stmt {
	d := &def{place: p.next().place}
	d.name = p.name("after def")
	if !p.tok().is("(") {
		p.unexpected("expected ( after the function's name")
	}
	p.bracketed(")", func() { d.params = p.params(")") })
	if p.accept("->") {
		p.expression()
	}
	loops := p.inLoop
	p.inLoop = 0
	d.body = p.block("def")
	p.inLoop = loops
	return d
}

// params reads the parameters of a function up to closing. Types are dropped, those of a def only are there.
func (p *parser) params(closing string) (params []param) {
	seen := map[string]bool{}
	var optional, star, stars bool
	p.until(closing, func() {
		t := p.tok()
		if p.accept("/") {
			return
		}
		a := param{place: t.place}
		if p.accept("*") {
			a.stars = 1
		} else if p.accept("**") {
			a.stars = 2
		}
		if a.stars != 1 || !p.tok().is(",", closing) {
			a.name = p.name("for a parameter")
			if seen[a.name.name] {
				a.fail("the parameter %s is there twice", a.name.name)
			}
			seen[a.name.name] = true
		}
		if closing == ")" && a.name != nil && p.accept(":") {
			p.expression()
		}
		if a.stars == 0 && p.accept("=") {
			a.value = p.expression()
		}
		switch {
		case stars:
			a.fail("a parameter after **")
		case a.stars == 1 && star:
			a.fail("a second * among the parameters")
		case a.stars == 0 && a.value == nil && optional && !star:
			a.failHint("put it in front of those", "the parameter %s has no default and comes after one that has", a.name.name)
		}
		star, stars = star || a.stars == 1, a.stars == 2
		optional = optional || a.value != nil
		params = append(params, a)
	})
	for i, a := range params {
		if a.stars == 1 && a.name == nil && (i == len(params)-1 || params[i+1].stars > 0) {
			a.fail("a bare * needs a parameter after it")
		}
	}
	return params
}

func (p *parser) try() stmt {
	s := &try{place: p.next().place}
	s.body = p.block("try")
	for p.tok().is("except") {
		s.handlers = append(s.handlers, p.handler())
	}
	if s.otherAt = p.tok().place; len(s.handlers) > 0 {
		s.other = p.other()
	}
	if s.lastAt = p.tok().place; p.accept("finally") {
		s.finally = p.block("finally")
	}
	if len(s.handlers) == 0 && s.finally == nil {
		p.unexpected("expected except or finally after the block of try")
	}
	for i, h := range s.handlers {
		if h.classes == nil && i < len(s.handlers)-1 {
			h.fail("a bare except must be the last")
		}
	}
	return s
}

func (p *parser) handler() handler {
	h := handler{place: p.next().place}
	if p.tok().is("*") {
		p.tok().failHint("write except", "there are no groups of exceptions, so no except*")
	}
	if !p.tok().is(":") {
		h.classes = p.expressions()
		if d, ok := h.classes.(*display); ok && len(d.items) > 1 && isVariable(d.items[len(d.items)-1]) {
			h.classes.at().failHint("write except … as e", "a name after a comma")
		}
		if p.accept("as") {
			h.name = p.name("after as")
		}
	}
	h.body = p.block("except")
	return h
}

// isVariable tells what was meant for the name of an exception: classes begin with a capital letter.
func isVariable(x expr) bool {
	n, ok := x.(*nameExpr)
	return ok && strings.ToLower(n.name[:1]) == n.name[:1]
}
