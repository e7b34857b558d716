package dialect

import (
	"slices"
	"strings"
)

func (p *parser) atom() expr {
	t := p.tok()
	switch {
	case t.kind == nameToken:
		p.next()
		if t.text == "__name__" {
			return &literal{t.place, "__main__"}
		}
		return &nameExpr{place: t.place, name: t.text}
	case t.kind == numberToken:
		p.next()
		return &literal{t.place, t.value}
	case t.kind == stringToken:
		return p.strings()
	case t.is("None", "True", "False"):
		p.next()
		return &builtinExpr{t.place, t.text}
	case t.is("("):
		return p.parenthesised()
	case t.is("["):
		return p.list()
	case t.is("{"):
		return p.braces()
	case t.kind == keywordToken:
		p.refuseKeyword(t)
	}
	p.unexpected("expected an expression")
	return nil
}

// strings reads literals side by side, which are one.
func (p *parser) strings() expr {
	at := p.tok().place
	var parts []part
	for p.tok().kind == stringToken {
		parts = append(parts, p.next().value.([]part)...)
	}
	p.fields(parts)
	if !slices.ContainsFunc(parts, func(f part) bool { return f.field != nil }) {
		var text strings.Builder
		for _, f := range parts {
			text.WriteString(f.text)
		}
		return &literal{at, text.String()}
	}
	return &fstring{at, parts}
}

// fields parses the expressions of an f-string.
func (p *parser) fields(parts []part) {
	for i := range parts {
		if f := &parts[i]; f.field != nil {
			p.nested(f.at, func() {
				inner := &parser{tokens: f.field, o: p.o, depth: p.depth, inField: true}
				f.value = inner.expressions()
				if inner.tok().kind != endToken {
					inner.unexpected("expected the end of the field of the f-string")
				}
				p.fields(f.spec)
			})
		}
	}
}

func (p *parser) parenthesised() (x expr) {
	at := p.tok().place
	p.bracketed(")", func() {
		items, comma := []expr{}, false
		p.until(")", func() {
			items = append(items, p.starOr(p.named))
			comma = p.tok().is(",")
			if len(items) == 1 && p.tok().is("for", "async") {
				x = p.comprehension('(', at, nil, items[0])
			}
		})
		switch {
		case x != nil:
		case len(items) == 1 && !comma:
			if x = items[0]; isStarred(x) {
				x.at().failHint("write (*x,)", "a star needs a list or a tuple around it")
			}
		default:
			x = &display{at, '(', items}
		}
	})
	return x
}

func isStarred(x expr) bool {
	_, ok := x.(*starred)
	return ok
}

func (p *parser) list() (x expr) {
	at := p.tok().place
	p.bracketed("]", func() {
		d := &display{place: at, open: '['}
		x = d
		p.until("]", func() {
			d.items = append(d.items, p.starOr(p.named))
			if len(d.items) == 1 && p.tok().is("for", "async") {
				x = p.comprehension('[', at, nil, d.items[0])
			}
		})
	})
	return x
}

// braces reads a dict or a set.
func (p *parser) braces() (x expr) {
	at := p.tok().place
	p.bracketed("}", func() {
		set := &display{place: at, open: '{'}
		dict := &dictDisplay{place: at}
		p.until("}", func() {
			t := p.tok()
			if p.accept("**") {
				dict.keys, dict.values = append(dict.keys, nil), append(dict.values, p.binary(bitOr))
				return
			}
			item := p.starOr(p.named)
			if isStarred(item) || len(dict.values) == 0 && !p.tok().is(":") {
				set.items = append(set.items, item)
				if len(set.items) == 1 && p.tok().is("for", "async") {
					x = p.comprehension('{', at, nil, item)
				}
				return
			}
			if len(set.items) > 0 {
				t.fail("a set does not have keys with values")
			}
			p.expect(":", "after the key")
			dict.keys, dict.values = append(dict.keys, item), append(dict.values, p.expression())
			if len(dict.keys) == 1 && p.tok().is("for", "async") {
				x = p.comprehension('{', at, item, dict.values[0])
			}
		})
		switch {
		case x != nil:
		case len(set.items) > 0 && len(dict.keys) > 0:
			at.fail("a dict and a set in one")
		case len(set.items) > 0:
			x = set
		default:
			x = dict
		}
	})
	return x
}

// comprehension reads the clauses after what is collected.
func (p *parser) comprehension(open byte, at place, key, value expr) expr {
	if isStarred(value) {
		value.at().failHint("add another for", "a star in a comprehension")
	}
	c := &comprehension{place: at, open: open, key: key, value: value}
	for {
		t := p.tok()
		switch {
		case t.is("async"):
			p.refuseKeyword(t)
		case t.is("for"):
			p.next()
			target := p.targets("in")
			p.expect("in", "after the names of for")
			c.clauses = append(c.clauses, clause{t.place, target, p.disjunction()})
		case t.is("if"):
			p.next()
			c.clauses = append(c.clauses, clause{t.place, nil, p.condition()})
		default:
			return c
		}
	}
}

// condition reads the test of a comprehension, which is no conditional expression.
func (p *parser) condition() expr {
	x := p.disjunction()
	if target, ok := x.(*nameExpr); ok && p.accept(":=") {
		return &walrus{target.place, target, p.disjunction()}
	}
	return x
}

// targets reads what for assigns to, up to a word.
func (p *parser) targets(end string) expr {
	first := p.starOr(func() expr { return p.binary(bitOr) })
	x := first
	if p.tok().is(",") {
		items := []expr{first}
		for p.accept(",") && !p.tok().is(end) {
			items = append(items, p.starOr(func() expr { return p.binary(bitOr) }))
		}
		x = &display{first.at(), '(', items}
	}
	checkTarget(x)
	return x
}

// checkTarget refuses what cannot be assigned to.
func checkTarget(x expr) {
	switch x := x.(type) {
	case *nameExpr:
		return
	case *index:
		if _, ok := x.i.(*slice); ok {
			x.failHint("make a new list: xs = xs[:a] + [...] + xs[b:]", "a slice cannot be assigned to")
		}
		return
	case *attribute:
		x.failHint("keep it in a dict: d[\""+x.name+"\"] = …", "attributes cannot be set, so not .%s", x.name)
	case *display:
		if x.open != '{' && len(x.items) > 0 {
			checkTargets(x)
			return
		}
	case *starred:
		x.failHint("write first, *rest = xs", "a star needs other names beside it")
	case *comparison, *literal:
		x.at().failHint("write == to compare; on the left of = stands a name, or x[i]", "a value cannot be assigned to")
	case *call:
		x.failHint("on the left of = stands a name, or x[i]", "the result of a call cannot be assigned to")
	case *builtinExpr:
		x.fail("%s cannot be assigned to", x.name)
	}
	x.at().failHint("on the left of = stands a name, or x[i]", "this cannot be assigned to")
}

func checkTargets(d *display) {
	stars := slices.IndexFunc(d.items, isStarred)
	for i, item := range d.items {
		if s, ok := item.(*starred); ok {
			if i != stars {
				s.fail("two stars on the left of =")
			}
			item = s.x
		}
		checkTarget(item)
	}
}
