package library

import (
	"io"
	"regexp"
	"strings"
	"unicode/utf8"

	"go.starlark.net/starlark"

	"github.com/openenv-go/openenv-go/pkg/codemode/internal/fault"
)

// A match is where a pattern was found.
type match struct {
	p      *pattern
	text   string
	places []int // of groups, in bytes: pairs of begin and end, or -1
}

func (m *match) String() string {
	return "<match " + Repr(m.group(0)) + ">"
}
func (m *match) Type() string          { return "match" }
func (m *match) Freeze()               {}
func (m *match) Truth() starlark.Bool  { return true }
func (m *match) Hash() (uint32, error) { return 0, fault.New("TypeError", "unhashable type: match") }

func (m *match) group(i int) starlark.Value {
	if m.places[2*i] < 0 {
		return starlark.None
	}
	return starlark.String(m.text[m.places[2*i]:m.places[2*i+1]])
}

// number is the number of the group that v names.
func (m *match) number(v starlark.Value) (int, error) {
	if i, ok := asIndex(v); ok {
		if i >= 0 && i < len(m.p.names) {
			return i, nil
		}
		return 0, fault.New("IndexError", "there is no group %d: the pattern has %d", i, len(m.p.names)-1)
	}
	if s, ok := v.(starlark.String); ok {
		for i, name := range m.p.names {
			if i > 0 && name == string(s) {
				return i, nil
			}
		}
	}
	return 0, fault.New("IndexError", "there is no group %s: a group is named (?P<name>…)", Repr(v))
}

func (m *match) index(v starlark.Value) (starlark.Value, error) {
	i, err := m.number(v)
	if err != nil {
		return nil, err
	}
	return m.group(i), nil
}

// A countingReader reads a text for a pattern. Each code point is charged what a step of the pattern takes, so that a search ends where
// the run's limits do.
type countingReader struct {
	*call
	text string
	cost int
	err  error
}

func (r *countingReader) ReadRune() (rune, int, error) {
	if r.text == "" || r.err != nil {
		return 0, 0, io.EOF
	}
	if r.err = r.step(r.cost); r.err != nil {
		return 0, 0, io.EOF
	}
	c, n := utf8.DecodeRuneInString(r.text)
	r.text = r.text[n:]
	return c, n, nil
}

// A where says where a match must be.
type where int

const (
	anywhere where = iota // the first there is
	atStart               // at the beginning
	fully                 // from the beginning to the end
)

// find looks for p in text from byte at. What is before it is seen by \b and ^.
func (c *call) find(p *pattern, text string, at int, w where) (*match, error) {
	re, back, err := p.form(at, w)
	if err != nil {
		return nil, err
	}
	if back {
		_, n := utf8.DecodeLastRuneInString(text[:at])
		at -= n
	} else {
		at = 0
	}
	r := countingReader{call: c, text: text[at:], cost: 1 + p.size/16}
	places := re.FindReaderSubmatchIndex(&r)
	if r.err != nil {
		return nil, r.err
	}
	if err := c.step(4 + len(places)); err != nil || places == nil {
		return nil, err
	}
	if back {
		places = places[2:] // the first group is what the form has of its own
	}
	for i := range places {
		if places[i] >= 0 {
			places[i] += at
		}
	}
	return &match{p, text, places}, nil
}

// form is the pattern for a place. Where it begins within a text it reads the character before, which it sets back for.
func (p *pattern) form(at int, w where) (re *regexp.Regexp, back bool, err error) {
	switch {
	case at == 0 && w == anywhere:
		return p.any, false, nil
	case at == 0 && w == atStart:
		re, err = p.as(&p.here, `\A`, "")
		return re, false, err
	case at == 0:
		re, err = p.as(&p.whole, `\A`, `\z`)
		return re, false, err
	case w == anywhere:
		re, err = p.as(&p.later, `\A(?s:.)(?s:.*?)(`, ")")
	case w == atStart:
		re, err = p.as(&p.laterHere, `\A(?s:.)(`, ")")
	default:
		var once *regexp.Regexp
		re, err = p.as(&once, `\A(?s:.)(`, `)\z`)
	}
	return re, true, err
}

// matches visits the matches of p in text from byte at on, as many as most, or all if that is 0.
func (c *call) matches(p *pattern, text string, at, most int, visit func(*match) error) error {
	for n := 0; at <= len(text) && (most <= 0 || n < most); n++ {
		m, err := c.find(p, text, at, anywhere)
		if err != nil || m == nil {
			return err
		}
		if err := visit(m); err != nil {
			return err
		}
		begin, end := m.places[0], m.places[1]
		switch {
		case begin < end:
			at = end
		case end == len(text):
			return nil
		default:
			at = end + runeLen(text[end:])
		}
	}
	return nil
}

func (l *library) matchMethods() map[string]function {
	return map[string]function{
		"group": matchGroup, "groups": matchGroups, "groupdict": matchGroupDict, "start": matchPlace, "end": matchPlace,
		"span": matchPlace, "expand": matchExpand,
	}
}

// Attr gives what a match has beside its methods.
func (m *match) Attr(name string) (starlark.Value, error) {
	switch name {
	case "string":
		return starlark.String(m.text), nil
	case "re":
		return m.p, nil
	case "pos":
		return starlark.MakeInt(0), nil
	case "endpos":
		return starlark.MakeInt(utf8.RuneCountInString(m.text)), nil
	case "lastindex", "lastgroup":
		return m.last(name == "lastgroup"), nil
	}
	return nil, nil
}

// AttrNames are the names that Attr knows.
func (m *match) AttrNames() []string {
	return []string{"endpos", "lastgroup", "lastindex", "pos", "re", "string"}
}

// last is the number or name of the group that was closed last.
func (m *match) last(named bool) starlark.Value {
	best := 0
	for i := 1; i < len(m.p.names); i++ {
		if m.places[2*i] >= 0 && (best == 0 || m.places[2*i+1] > m.places[2*best+1]) {
			best = i
		}
	}
	if best == 0 || named && m.p.names[best] == "" {
		return starlark.None
	}
	if named {
		return starlark.String(m.p.names[best])
	}
	return starlark.MakeInt(best)
}

func matchGroup(c *call) (starlark.Value, error) {
	m := c.recv.(*match)
	if len(c.kwargs) > 0 {
		return nil, c.take(0)
	}
	if len(c.args) == 0 {
		return m.group(0), nil
	}
	var row starlark.Tuple
	for _, v := range c.args {
		g, err := m.index(v)
		if err != nil {
			return nil, err
		}
		row = append(row, g)
	}
	if len(row) == 1 {
		return row[0], nil
	}
	return row, nil
}

func matchGroups(c *call) (starlark.Value, error) {
	otherwise := starlark.Value(starlark.None)
	if err := c.bind("default?", &otherwise); err != nil {
		return nil, err
	}
	m := c.recv.(*match)
	row := starlark.Tuple{}
	for i := 1; i < len(m.p.names); i++ {
		g := m.group(i)
		if m.places[2*i] < 0 {
			g = otherwise
		}
		row = append(row, g)
	}
	return row, nil
}

func matchGroupDict(c *call) (starlark.Value, error) {
	otherwise := starlark.Value(starlark.None)
	if err := c.bind("default?", &otherwise); err != nil {
		return nil, err
	}
	m := c.recv.(*match)
	d := new(starlark.Dict)
	for i, name := range m.p.names {
		if name == "" {
			continue
		}
		g := m.group(i)
		if m.places[2*i] < 0 {
			g = otherwise
		}
		if err := c.setKey(d, starlark.String(name), g); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// matchPlace is start, end and span.
func matchPlace(c *call) (starlark.Value, error) {
	group := starlark.Value(starlark.MakeInt(0))
	if err := c.take(0, &group); err != nil {
		return nil, err
	}
	m := c.recv.(*match)
	i, err := m.number(group)
	if err != nil {
		return nil, err
	}
	if err := c.scan(len(m.text)); err != nil {
		return nil, err
	}
	place := func(at int) starlark.Value {
		if at < 0 {
			return starlark.MakeInt(-1)
		}
		return starlark.MakeInt(utf8.RuneCountInString(m.text[:at]))
	}
	switch c.name {
	case "start":
		return place(m.places[2*i]), nil
	case "end":
		return place(m.places[2*i+1]), nil
	}
	return starlark.Tuple{place(m.places[2*i]), place(m.places[2*i+1])}, nil
}

func matchExpand(c *call) (starlark.Value, error) {
	var t starlark.String
	if err := c.take(1, &t); err != nil {
		return nil, err
	}
	m := c.recv.(*match)
	parts, err := parseTemplate(m.p, string(t))
	if err != nil {
		return nil, err
	}
	w := writer{call: c}
	if err := parts.write(&w, m); err != nil {
		return nil, err
	}
	return starlark.String(w.String()), nil
}

// A template is a replacement: texts, and groups between them.
type template []struct {
	text  string
	group int // -1: none
}

// parseTemplate reads \1, \g<1>, \g<name> and escapes.
func parseTemplate(p *pattern, s string) (template, error) {
	var t template
	add := func(text string, group int) {
		t = append(t, struct {
			text  string
			group int
		}{text, group})
	}
	for s != "" {
		at := strings.IndexByte(s, '\\')
		if at < 0 {
			add(s, -1)
			break
		}
		if at > 0 {
			add(s[:at], -1)
		}
		if s = s[at+1:]; s == "" {
			return nil, badPattern("the replacement ends with a backslash")
		}
		b := s[0]
		switch {
		case b == 'g' && strings.HasPrefix(s, "g<"):
			end := strings.IndexByte(s, '>')
			if end < 0 {
				return nil, badPattern(`\g< is never closed`)
			}
			var name starlark.Value = starlark.String(s[2:end])
			if n, rest, ok := number(s[2:end], -1); ok && rest == "" && n >= 0 {
				name = starlark.MakeInt(n)
			}
			i, err := (&match{p: p}).number(name)
			if err != nil {
				return nil, badPattern("bad replacement: %s", err)
			}
			add("", i)
			s = s[end+1:]
		case '1' <= b && b <= '9':
			n := 1
			if len(s) > 1 && isDigit(s[1]) {
				n = 2
			}
			group, _, _ := number(s[:n], 0)
			i, err := (&match{p: p}).number(starlark.MakeInt(group))
			if err != nil {
				return nil, badPattern("bad replacement: %s", err)
			}
			add("", i)
			s = s[n:]
		case b == '0':
			add("\x00", -1)
			s = s[1:]
		default:
			at := strings.IndexByte("abfnrtv\\", b)
			if at < 0 && ('a' <= b|0x20 && b|0x20 <= 'z') {
				return nil, badPattern(`bad escape \%c in the replacement`, b).Hinted(`a backslash is written \\\\`)
			}
			if at < 0 {
				add(`\`+s[:runeLen(s)], -1)
			} else {
				add("\a\b\f\n\r\t\v\\"[at:at+1], -1)
			}
			s = s[runeLen(s):]
		}
	}
	return t, nil
}

func (t template) write(w *writer, m *match) error {
	for _, part := range t {
		s := part.text
		if part.group >= 0 {
			if g, ok := m.group(part.group).(starlark.String); ok {
				s = string(g)
			}
		}
		if err := w.put(s); err != nil {
			return err
		}
	}
	return nil
}
