package library

import (
	"strings"
	"unicode/utf8"

	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"

	"github.com/openenv-go/openenv-go/pkg/codemode/internal/fault"
)

func (l *library) re() *starlarkstruct.Module {
	m := starlark.StringDict{"compile": l.builtin("re.compile", reCompile), "escape": l.builtin("re.escape", reEscape),
		"purge": l.builtin("re.purge", func(c *call) (starlark.Value, error) { return starlark.None, c.take(0) })}
	for names, flag := range map[string]int{"I IGNORECASE": ignoreCase, "M MULTILINE": multiLine, "S DOTALL": dotAll,
		"X VERBOSE": verbose, "A ASCII": asciiOnly, "U UNICODE": unicodeTxt, "NOFLAG": 0} {
		for _, name := range strings.Fields(names) {
			m[name] = starlark.MakeInt(flag)
		}
	}
	for name, f := range l.patternMethods() {
		m[name] = l.builtin("re."+name, func(c *call) (starlark.Value, error) { return c.withPattern(f) })
	}
	return &starlarkstruct.Module{Name: "re", Members: m}
}

func (l *library) patternMethods() map[string]function {
	return map[string]function{
		"search": searchFor(anywhere), "match": searchFor(atStart), "fullmatch": searchFor(fully), "findall": reFindAll,
		"finditer": reFindIter, "sub": reSub, "subn": reSubN, "split": reSplit,
	}
}

// Attr gives what a pattern has beside its methods.
func (p *pattern) Attr(name string) (starlark.Value, error) {
	switch name {
	case "pattern":
		return starlark.String(p.text), nil
	case "flags":
		return starlark.MakeInt(p.flags | unicodeTxt), nil
	case "groups":
		return starlark.MakeInt(len(p.names) - 1), nil
	case "groupindex":
		d := new(starlark.Dict)
		for i, name := range p.names {
			if name != "" {
				if err := d.SetKey(starlark.String(name), starlark.MakeInt(i)); err != nil {
					return nil, err
				}
			}
		}
		return d, nil
	}
	return nil, nil
}

// AttrNames are the names that Attr knows.
func (p *pattern) AttrNames() []string { return []string{"flags", "groupindex", "groups", "pattern"} }

// withPattern is a function of the module: a method of the pattern that is its first argument, with flags.
func (c *call) withPattern(f function) (starlark.Value, error) {
	method := *c
	method.kwargs = nil
	var text, flags starlark.Value
	if len(c.args) > 0 {
		text, method.args = c.args[0], c.args[1:]
	}
	for _, kw := range c.kwargs {
		switch kw[0] {
		case starlark.String("pattern"):
			text = kw[1]
		case starlark.String("flags"):
			flags = kw[1]
		default:
			method.kwargs = append(method.kwargs, kw)
		}
	}
	most := map[string]int{"re.sub": 3, "re.subn": 3, "re.split": 2}[c.name]
	if most == 0 {
		most = 1
	}
	if len(method.args) == most+1 {
		flags, method.args = method.args[most], method.args[:most]
	}
	if text == nil {
		return nil, fault.New("TypeError", "%s: the pattern is missing", c.name)
	}
	p, err := c.patternOf(text, flags)
	if err != nil {
		return nil, err
	}
	method.recv, method.due = p, c.due
	c.due = 0
	v, err := f(&method)
	c.due = method.due
	return v, err
}

// patternOf is a pattern, or what is compiled of a text.
func (c *call) patternOf(v, flags starlark.Value) (*pattern, error) {
	if p, ok := v.(*pattern); ok {
		return p, nil
	}
	s, ok := v.(starlark.String)
	if !ok {
		return nil, fault.New("TypeError", "%s: the pattern must be text, not %s", c.name, typeName(v)).
			Hinted("the pattern comes first: %s(r\"…\", text)", c.name)
	}
	bits, err := c.optional(flags, "flags", 0)
	if err != nil {
		return nil, err
	}
	return c.compile(string(s), bits)
}

func reCompile(c *call) (starlark.Value, error) {
	var text, flags starlark.Value
	if err := c.bind("pattern", &text, "flags?", &flags); err != nil {
		return nil, err
	}
	return c.patternOf(text, flags)
}

func reEscape(c *call) (starlark.Value, error) {
	var s starlark.String
	if err := c.take(1, &s); err != nil {
		return nil, err
	}
	if err := c.text(2 * len(s)); err != nil {
		return nil, err
	}
	var b strings.Builder
	for _, r := range string(s) {
		if strings.ContainsRune("()[]{}?*+-|^$\\.&~# \t\n\r\v\f", r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return starlark.String(b.String()), nil
}

// subject is the text that a pattern is used on.
func (c *call) subject(v starlark.Value) (string, error) {
	if s, ok := v.(starlark.String); ok {
		return string(s), nil
	}
	e := fault.New("TypeError", "%s: the text must be text, not %s", c.name, typeName(v))
	if v == starlark.None {
		return "", e.Hinted("the value may be missing: write (s or \"\")")
	}
	return "", e.Hinted("write str(…)")
}

func searchFor(w where) function {
	return func(c *call) (starlark.Value, error) {
		text, at, err := c.region()
		if err != nil {
			return nil, err
		}
		if at > len(text) {
			return starlark.None, nil
		}
		m, err := c.find(c.recv.(*pattern), text, at, w)
		if err != nil || m == nil {
			return starlark.None, err
		}
		return m, nil
	}
}

// region is the text that is searched, and the byte it is searched from.
func (c *call) region() (string, int, error) {
	var s, pos, endpos starlark.Value
	if err := c.bind("string", &s, "pos?", &pos, "endpos?", &endpos); err != nil {
		return "", 0, err
	}
	text, err := c.subject(s)
	if err != nil || pos == nil && endpos == nil {
		return text, 0, err
	}
	if err := c.scan(len(text)); err != nil {
		return "", 0, err
	}
	n := utf8.RuneCountInString(text)
	lo, err := c.optional(pos, "pos", 0)
	if err != nil {
		return "", 0, err
	}
	hi, err := c.optional(endpos, "endpos", n)
	if err != nil {
		return "", 0, err
	}
	lo, hi = max(min(lo, n), 0), max(min(hi, n), 0)
	if lo > hi {
		return "", 1, nil
	}
	return text[:offset(text, hi)], offset(text, lo), nil
}

func reFindAll(c *call) (starlark.Value, error) {
	g := gatherer{call: c}
	text, at, err := c.region()
	if err != nil || at > len(text) {
		return starlark.NewList(nil), err
	}
	err = c.matches(c.recv.(*pattern), text, at, 0, func(m *match) error {
		switch n := len(m.p.names) - 1; n {
		case 0, 1:
			return g.add(orEmpty(m.group(n)))
		default:
			row := make(starlark.Tuple, n)
			for i := range row {
				row[i] = orEmpty(m.group(i + 1))
			}
			return g.add(row)
		}
	})
	return starlark.NewList(g.values), err
}

func orEmpty(v starlark.Value) starlark.Value {
	if v == starlark.None {
		return starlark.String("")
	}
	return v
}

func reFindIter(c *call) (starlark.Value, error) {
	g := gatherer{call: c}
	text, at, err := c.region()
	if err != nil || at > len(text) {
		return &iterator{}, err
	}
	err = c.matches(c.recv.(*pattern), text, at, 0, func(m *match) error { return g.add(m) })
	return &iterator{g.values}, err
}

func reSub(c *call) (starlark.Value, error) {
	s, _, err := c.substitute()
	return starlark.String(s), err
}

func reSubN(c *call) (starlark.Value, error) {
	s, n, err := c.substitute()
	return starlark.Tuple{starlark.String(s), starlark.MakeInt(n)}, err
}

func (c *call) substitute() (string, int, error) {
	var repl, s, most starlark.Value
	if err := c.bind("repl", &repl, "string", &s, "count?", &most); err != nil {
		return "", 0, err
	}
	text, err := c.subject(s)
	if err != nil {
		return "", 0, err
	}
	limit, err := c.optional(most, "count", 0)
	if err != nil {
		return "", 0, err
	}
	p := c.recv.(*pattern)
	write, err := c.replacement(p, repl)
	if err != nil {
		return "", 0, err
	}
	w := writer{call: c}
	at, n := 0, 0
	err = c.matches(p, text, 0, limit, func(m *match) error {
		n++
		if err := w.put(text[at:m.places[0]]); err != nil {
			return err
		}
		at = m.places[1]
		return write(&w, m)
	})
	if err != nil {
		return "", 0, err
	}
	return w.String() + text[at:], n, c.text(len(text) - at)
}

// replacement writes what stands in place of a match: a template, or what a function makes of it.
func (c *call) replacement(p *pattern, repl starlark.Value) (func(*writer, *match) error, error) {
	switch repl := repl.(type) {
	case starlark.String:
		t, err := parseTemplate(p, string(repl))
		return t.write, err
	case starlark.Callable:
		return func(w *writer, m *match) error {
			v, err := c.call(repl, m)
			if err != nil {
				return err
			}
			s, ok := v.(starlark.String)
			if !ok {
				return fault.New("TypeError", "%s: the function must return text, not %s", c.name, typeName(v)).Hinted("write str(…)")
			}
			return w.put(string(s))
		}, nil
	}
	return nil, fault.New("TypeError", "%s: the replacement must be text or a function, not %s", c.name, typeName(repl))
}

func reSplit(c *call) (starlark.Value, error) {
	var s, most starlark.Value
	if err := c.bind("string", &s, "maxsplit?", &most); err != nil {
		return nil, err
	}
	text, err := c.subject(s)
	if err != nil {
		return nil, err
	}
	limit, err := c.optional(most, "maxsplit", 0)
	if err != nil {
		return nil, err
	}
	g := gatherer{call: c}
	if limit < 0 {
		return starlark.NewList([]starlark.Value{s}), nil
	}
	at := 0
	err = c.matches(c.recv.(*pattern), text, 0, limit, func(m *match) error {
		if err := g.add(starlark.String(text[at:m.places[0]])); err != nil {
			return err
		}
		at = m.places[1]
		for i := 1; i < len(m.p.names); i++ {
			if err := g.add(m.group(i)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return starlark.NewList(append(g.values, starlark.String(text[at:]))), nil
}
