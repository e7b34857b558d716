package dialect

// A parser makes a tree of tokens, by recursive descent. Faults are panics of *Error.
type parser struct {
	tokens  []token
	i       int
	o       Options
	depth   int
	open    []token // brackets
	inLoop  int
	inField bool
}

func newParser(tokens []token, o Options) *parser { return &parser{tokens: tokens, o: o} }

func (p *parser) file() (body []stmt) {
	for p.tok().kind != endToken {
		if p.tok().kind == indentToken {
			p.tok().failHint("begin the line at its left edge, or under the block that it belongs to", "an indented line, where no block begins")
		}
		body = append(body, p.statement()...)
	}
	return body
}

func (p *parser) tok() token {
	t := p.tokens[p.i]
	if t.kind == faultToken {
		panic(t.value)
	}
	return t
}

// ahead is the token after the present one.
func (p *parser) ahead() token { return p.tokens[min(p.i+1, len(p.tokens)-1)] }

func (p *parser) next() token {
	t := p.tok()
	if p.i < len(p.tokens)-1 {
		p.i++
	}
	return t
}

func (t token) is(words ...string) bool {
	if t.kind == opToken || t.kind == keywordToken {
		for _, w := range words {
			if t.text == w {
				return true
			}
		}
	}
	return false
}

// accept passes a token if it is one of words.
func (p *parser) accept(words ...string) bool {
	if p.tok().is(words...) {
		p.next()
		return true
	}
	return false
}

// expect passes a token that must be there; after says what it follows.
func (p *parser) expect(word, after string) token {
	if !p.tok().is(word) {
		p.unexpected("expected " + word + " " + after)
	}
	return p.next()
}

// nested runs f one level deeper.
func (p *parser) nested(at place, f func()) {
	if p.depth++; p.depth > maxNesting {
		at.tooDeep()
	}
	f()
	p.depth--
}

// bracketed passes an opening bracket, runs f, and passes the closing one.
func (p *parser) bracketed(closing string, f func()) {
	t := p.next()
	p.open = append(p.open, t)
	p.nested(t.place, f)
	if !p.tok().is(closing) {
		p.unexpected("expected " + closing + " or a comma")
	}
	p.next()
	p.open = p.open[:len(p.open)-1]
}

// until runs f for the items of a list with commas, up to a closing bracket.
func (p *parser) until(closing string, f func()) {
	for !p.tok().is(closing) {
		f()
		if !p.accept(",") {
			return
		}
	}
}

// unexpected says what was wanted in place of the present token, or what is the likelier fault.
func (p *parser) unexpected(wanted string) {
	t := p.tok()
	if n := len(p.open); n > 0 {
		o := p.open[n-1]
		switch closing := closings[o.text]; {
		case t.is(")", "]", "}") && t.text != closing:
			t.failHint("close that first", "%s does not match the %s of line %d, column %d", t.text, o.text, o.line, o.col)
		case !p.inField && !p.closed() && !quoteInText(p.tokens, p.i):
			o.failHint("close it with "+closing, "the %s of line %d is never closed", o.text, o.line)
		}
	}
	if hint := mistaken(p.tokens, p.i); hint != "" {
		t.failHint(hint, "%s, not %s", wanted, t.shown())
	}
	t.fail("%s, not %s", wanted, t.shown())
}

var closings = map[string]string{"(": ")", "[": "]", "{": "}"}

// closed tells whether the innermost open bracket has its match further on.
func (p *parser) closed() bool {
	depth := 1
	for _, t := range p.tokens[p.i:] {
		switch {
		case t.is("(", "[", "{"):
			depth++
		case t.is(")", "]", "}"):
			if depth--; depth == 0 {
				return true
			}
		}
	}
	return false
}

// shown is how a message calls a token.
func (t token) shown() string {
	switch t.kind {
	case endToken:
		return "the end"
	case newlineToken:
		return "the end of the line"
	case indentToken:
		return "a deeper indentation"
	case dedentToken:
		return "the end of the block"
	case stringToken:
		return "text"
	}
	return t.text
}

// quoteInText tells text whose end came too soon, as in 'it's'.
func quoteInText(tokens []token, i int) bool {
	return i > 0 && tokens[i].kind == nameToken && tokens[i-1].kind == stringToken && tokens[i].line == tokens[i-1].line
}

// mistaken is a hint for what other languages and hasty writers have.
func mistaken(tokens []token, i int) string {
	t, prev, before := tokens[i], token{kind: newlineToken}, token{kind: newlineToken}
	if i > 0 {
		prev = tokens[i-1]
	}
	if i > 1 {
		before = tokens[i-2]
	}
	switch {
	case t.first && prev.kind != newlineToken && !t.is(")", "]", "}", ":", "="):
		return "the line above may lack a comma at its end"
	case t.is("&", "|") && prev.is(t.text):
		return map[string]string{"&": "write and", "|": "write or"}[t.text]
	case t.is("="):
		return "write == to compare"
	case t.is(":="):
		return "write =, or put it in parentheses"
	case prev.is("+", "-") && before.is(prev.text):
		return "write x " + prev.text + "= 1"
	case t.is("if") && prev.is("else"):
		return "write elif"
	case t.is("{") && (prev.is(")") || prev.kind == nameToken):
		return "a block begins with : and is indented"
	case t.kind == nameToken && prev.kind == nameToken && prev.text == "new":
		return "leave new out"
	case t.kind == stringToken || quoteInText(tokens, i):
		return "join text by + or separate it by a comma; a quote within text is written \\\" or in the other kind of quotes"
	case t.is("for") && prev.kind != newlineToken:
		return "put what is collected in parentheses: [(a, b) for …]"
	case t.is("else"):
		return "write a if c else b in front of for"
	}
	return ""
}
