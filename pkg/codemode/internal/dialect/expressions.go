package dialect

// expressions reads one expression or, with commas, a tuple without parentheses.
func (p *parser) expressions() expr {
	first := p.starOr(p.expression)
	if !p.tok().is(",") {
		if isStarred(first) {
			first.at().failHint("write [*xs]", "a star needs a list, a tuple or a call around it")
		}
		return first
	}
	items := []expr{first}
	for p.accept(",") && !p.endsExpressions() {
		items = append(items, p.starOr(p.expression))
	}
	return &display{first.at(), '(', items}
}

func (p *parser) endsExpressions() bool {
	t := p.tok()
	return t.kind == newlineToken || t.kind == endToken || t.is(")", "]", "}", "=", ":", ";") || len(t.text) > 1 && t.kind == opToken && t.text[len(t.text)-1] == '='
}

// starOr reads *x or what f reads.
func (p *parser) starOr(f func() expr) expr {
	t := p.tok()
	if p.accept("*") {
		return &starred{t.place, p.binary(bitOr)}
	}
	return f()
}

// named reads an expression that may be an assignment by :=.
func (p *parser) named() expr {
	x := p.expression()
	if !p.tok().is(":=") {
		return x
	}
	target, ok := x.(*nameExpr)
	if !ok {
		x.at().failHint("write name := value", ":= assigns to a name only")
	}
	p.next()
	return &walrus{target.place, target, p.expression()}
}

func (p *parser) expression() (x expr) {
	t := p.tok()
	p.nested(t.place, func() {
		if t.is("lambda") {
			x = p.lambda()
			return
		}
		x = p.disjunction()
		if p.tok().is("if") {
			p.next()
			c := &conditional{place: x.at(), then: x, test: p.disjunction()}
			if !p.tok().is("else") {
				p.unexpected("expected else after a if c")
			}
			p.next()
			c.other = p.expression()
			x = c
		}
	})
	return x
}

func (p *parser) lambda() expr {
	at := p.next().place
	l := &lambda{place: at, params: p.params(":")}
	p.expect(":", "after the parameters of lambda")
	l.body = p.expression()
	return l
}

func (p *parser) disjunction() expr {
	return p.chain("or", func() expr { return p.chain("and", p.negation) })
}

func (p *parser) chain(op string, operand func() expr) expr {
	x := operand()
	for p.tok().is(op) {
		at := p.next().place
		x = &binary{x.at(), op, at, x, operand()}
	}
	return x
}

func (p *parser) negation() (x expr) {
	t := p.tok()
	if !t.is("not") {
		return p.comparison()
	}
	p.next()
	p.nested(t.place, func() { x = &unary{t.place, "not", p.negation()} })
	return x
}

func (p *parser) comparison() expr {
	x := p.binary(bitOr)
	var rest []compared
	for {
		op, at := p.comparator()
		if op == "" {
			break
		}
		if len(rest) == maxNesting { // each is lowered within the one before
			at.tooDeep()
		}
		rest = append(rest, compared{op, at, p.binary(bitOr)})
	}
	if rest == nil {
		return x
	}
	return &comparison{x.at(), x, rest}
}

// comparator passes an operator that compares; "" if there is none.
func (p *parser) comparator() (string, place) {
	t := p.tok()
	switch {
	case t.is("<", ">", "<=", ">=", "==", "!=", "in"):
		p.next()
		return t.text, t.place
	case t.is("is"):
		p.next()
		if p.accept("not") {
			return "is not", t.place
		}
		return "is", t.place
	case t.is("not") && p.ahead().is("in"):
		p.next()
		p.next()
		return "not in", t.place
	}
	return "", place{}
}

// levels are the operators between two operands, from those that bind least.
var levels = [][]string{{"|"}, {"^"}, {"&"}, {"<<", ">>"}, {"+", "-"}, {"*", "/", "//", "%", "@"}}

const bitOr = 0

func (p *parser) binary(level int) expr {
	if level == len(levels) {
		return p.sign()
	}
	x := p.binary(level + 1)
	for p.tok().is(levels[level]...) {
		t := p.next()
		if t.text == "@" {
			t.failHint("write the sums out", "there is no @ of matrices")
		}
		x = &binary{x.at(), t.text, t.place, x, p.binary(level + 1)}
	}
	return x
}

func (p *parser) sign() (x expr) {
	t := p.tok()
	if !t.is("-", "+", "~") {
		return p.power()
	}
	p.next()
	p.nested(t.place, func() { x = &unary{t.place, t.text, p.sign()} })
	return x
}

func (p *parser) power() expr {
	x := p.primary()
	if !p.tok().is("**") {
		return x
	}
	at := p.next().place
	b := &binary{place: x.at(), op: "**", opAt: at, x: x}
	p.nested(at, func() { b.y = p.sign() })
	return b
}

// primary reads an atom and what follows it: attributes, calls, subscripts.
func (p *parser) primary() expr {
	x := p.atom()
	for {
		t := p.tok()
		switch {
		case t.is("."):
			p.next()
			name := p.tok()
			if name.kind == keywordToken {
				name.failHint("write x[\""+name.text+"\"]", "%s is a keyword, no attribute", name.text)
			}
			if name.kind != nameToken {
				p.unexpected("expected a name after the point")
			}
			p.next()
			x = &attribute{x.at(), x, name.text, name.place}
		case t.is("("):
			x = &call{x.at(), x, nameOf(x), p.args()}
		case t.is("["):
			x = &index{x.at(), x, p.subscript(), t.place}
		default:
			return x
		}
	}
}

// nameOf is where the last name of a callee stands.
func nameOf(fn expr) place {
	if a, ok := fn.(*attribute); ok {
		return a.nameAt
	}
	return fn.at()
}

func (p *parser) subscript() (x expr) {
	at := p.ahead().place
	p.bracketed("]", func() {
		items, comma := []expr{}, false
		p.until("]", func() {
			items = append(items, p.sliceOr())
			comma = p.tok().is(",")
		})
		if len(items) == 0 {
			p.unexpected("expected an index")
		}
		if x = items[0]; comma || len(items) > 1 {
			x = &display{at, '(', items}
		}
	})
	if d, ok := x.(*display); ok {
		for _, item := range d.items {
			if _, ok := item.(*slice); ok {
				at.failHint("index one dimension after the other: x[i][a:b]", "a slice within a tuple of indices")
			}
		}
	}
	return x
}

func (p *parser) sliceOr() expr {
	s := &slice{place: p.tok().place}
	if !p.tok().is(":") {
		x := p.named()
		if !p.tok().is(":") {
			return x
		}
		s.lo = x
	}
	p.next()
	s.hi = p.bound()
	if p.accept(":") {
		s.step = p.bound()
	}
	return s
}

func (p *parser) bound() expr {
	if p.tok().is(":", "]", ",") {
		return nil
	}
	return p.expression()
}

// args reads the arguments of a call.
func (p *parser) args() (args []arg) {
	seen := map[string]bool{}
	p.bracketed(")", func() {
		p.until(")", func() {
			a := p.arg(len(args) == 0)
			if a.name != "" && seen[a.name] {
				a.fail("the argument %s is given twice", a.name)
			}
			if n := len(args); a.name == "" && a.stars == 0 && n > 0 && (args[n-1].name != "" || args[n-1].stars == 2) {
				a.failHint("put it in front of those, or write name=", "an argument by position after one by name")
			}
			seen[a.name] = true
			args = append(args, a)
		})
	})
	return args
}

func (p *parser) arg(first bool) arg {
	t := p.tok()
	a := arg{place: t.place}
	switch {
	case p.accept("*"):
		a.stars = 1
	case p.accept("**"):
		a.stars = 2
	case t.kind == keywordToken && p.ahead().is("="):
		t.failHint("write "+t.text+"_=, or **{\""+t.text+"\": …}", "%s is a keyword", t.text)
	case t.kind == nameToken && p.ahead().is("="):
		p.next()
		p.next()
		a.name = t.text
	}
	if a.value = p.named(); a.name == "" && a.stars == 0 && p.tok().is("for", "async") {
		a.value = p.comprehension('(', t.place, nil, a.value)
		if !first || p.tok().is(",") {
			t.failHint("put it in brackets: […]", "a generator expression beside other arguments")
		}
	}
	return a
}
