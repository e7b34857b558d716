package library

import (
	"strings"
	"unicode/utf8"

	"go.starlark.net/starlark"

	"github.com/openenv-go/openenv-go/pkg/codemode/internal/fault"
)

// A spec is a format specification: [[fill]align][sign][z][#][0][width][grouping][.precision][type].
type spec struct {
	fill      string
	align     byte // < > = ^, or 0
	sign      byte // + - or space, or 0
	noMinus0  bool // z
	alternate bool // #
	zero      bool // 0 before the width
	width     int
	grouping  byte // , or _ or 0
	precision int  // -1: none
	verb      byte // 0: none
}

func parseSpec(s string) (spec, error) {
	p := spec{fill: " ", precision: -1}
	if s == "" {
		return p, nil
	}
	whole := s
	if n := runeLen(s); len(s) > n && strings.IndexByte("<>=^", s[n]) >= 0 {
		p.fill, p.align = s[:n], s[n]
		s = s[n+1:]
	} else if strings.IndexByte("<>=^", s[0]) >= 0 {
		p.align = s[0]
		s = s[1:]
	}
	filled := len(whole) > len(s) && p.fill != " " || p.align != 0 && len(whole)-len(s) > 1
	take := func(chars string) byte {
		if s == "" || strings.IndexByte(chars, s[0]) < 0 {
			return 0
		}
		b := s[0]
		s = s[1:]
		return b
	}
	p.sign = take("+- ")
	p.noMinus0 = take("z") != 0
	p.alternate = take("#") != 0
	if !filled && strings.HasPrefix(s, "0") {
		p.zero = true
		p.fill = "0"
		if p.align == 0 {
			p.align = '='
		}
		s = s[1:]
	}
	var ok bool
	if p.width, s, ok = number(s, 0); !ok {
		return p, fault.New("ValueError", "format: the width in %s is too large", Repr(starlark.String(whole)))
	}
	p.grouping = take(",_")
	if p.grouping != 0 && take(",_") != 0 {
		return p, fault.New("ValueError", "format: there can be one of , and _ in %s", Repr(starlark.String(whole)))
	}
	if take(".") != 0 {
		if s == "" || !isDigit(s[0]) {
			return p, fault.New("ValueError", "format: the precision is missing in %s", Repr(starlark.String(whole)))
		}
		if p.precision, s, ok = number(s, 0); !ok {
			return p, fault.New("ValueError", "format: the precision in %s is too large", Repr(starlark.String(whole)))
		}
	}
	if s != "" {
		if len(s) > 1 || s[0] >= utf8.RuneSelf {
			return p, invalidSpec(whole)
		}
		p.verb = s[0]
	}
	return p, nil
}

func invalidSpec(s string) error {
	return fault.New("ValueError", "format: invalid format specifier %s", Repr(starlark.String(s))).
		Hinted("it is [[fill]align][sign][#][0][width][,][.precision][type], as in >8, 05d, ,.2f or .1%%")
}

// number is the digits that s begins with, and the rest; otherwise stands for none. It is not ok where it is too large.
func number(s string, otherwise int) (n int, rest string, ok bool) {
	i := 0
	for ; i < len(s) && isDigit(s[i]); i++ {
		if n = n*10 + int(s[i]-'0'); n > 1<<40 {
			return 0, s, false
		}
	}
	if i == 0 {
		return otherwise, s, true
	}
	return n, s[i:], true
}

// format is what format, an f-string and str.format make of v.
func (c *call) format(v starlark.Value, text string) (string, error) {
	if text == "" {
		return c.str(v)
	}
	if err := c.scan(16 * len(text)); err != nil {
		return "", err
	}
	switch v.(type) {
	case starlark.String, starlark.Int, starlark.Bool, starlark.Float:
	default:
		e := fault.New("TypeError", "format: %s takes no format specifier, such as %s", typeName(v), Repr(starlark.String(text)))
		if v == starlark.None {
			return "", e.Hinted("the value may be missing: write {(x or 0):%s}, or {x!s:…} for its text", text)
		}
		return "", e.Hinted("make text of it: {x!s:%s}", text)
	}
	p, err := parseSpec(text)
	if err != nil {
		return "", err
	}
	if err := c.meter.Room(p.width + max(p.precision, 0)); err != nil {
		return "", err
	}
	if err := c.scan(p.width + max(p.precision, 0)); err != nil {
		return "", err
	}
	switch v := v.(type) {
	case starlark.String:
		return c.formatText(string(v), p)
	case starlark.Float:
		return c.formatFloat(float64(v), p)
	}
	if strings.IndexByte("eEfFgG%", p.verb) >= 0 && p.verb != 0 {
		f, err := toFloat(v)
		if err != nil {
			return "", err
		}
		return c.formatFloat(f, p)
	}
	return c.formatInt(plain(v).(starlark.Int), p, typeName(v))
}

func unknownVerb(verb byte, v string) error {
	e := fault.New("ValueError", "format: unknown format code '%c' for %s", verb, v)
	switch {
	case v == "string" && strings.IndexByte("dfeg%", verb) >= 0:
		return e.Hinted("the value is text: make a number of it first: float(x)")
	case v == "float" && verb == 'd':
		return e.Hinted("the value is a float: write .0f, or int(x)")
	}
	return e
}

func (c *call) formatText(s string, p spec) (string, error) {
	switch {
	case p.verb != 0 && p.verb != 's':
		return "", unknownVerb(p.verb, "string")
	case p.sign != 0, p.alternate, p.grouping != 0, p.noMinus0:
		return "", fault.New("ValueError", "format: a sign, z, #, , and _ are for numbers, and the value is text").
			Hinted("make a number of it first: float(x)")
	case p.align == '=' && !p.zero:
		return "", fault.New("ValueError", "format: the alignment = is for numbers, and the value is text")
	}
	if p.align == '=' {
		p.align = '<'
	}
	if p.precision >= 0 {
		s = s[:offset(s, p.precision)]
	}
	return c.aligned(s, p, '<')
}

// aligned pads s to the width of p.
func (c *call) aligned(s string, p spec, align byte) (string, error) {
	space := p.width - utf8.RuneCountInString(s)
	if space <= 0 {
		return s, nil
	}
	if p.align != 0 {
		align = p.align
	}
	left, right := space, 0
	switch align {
	case '<':
		left, right = 0, space
	case '^':
		left, right = space/2, space-space/2
	}
	v, err := c.padded(s, p.fill, left, right)
	if err != nil {
		return "", err
	}
	return string(v.(starlark.String)), nil
}

// formatDigits puts sign, prefix, digits and what follows them together, with grouping and padding.
func (c *call) formatDigits(sign, prefix, digits, tail string, p spec, group int) (string, error) {
	if p.grouping != 0 {
		least := 0
		if p.align == '=' && p.fill == "0" {
			least = p.width - len(sign) - len(prefix) - len(tail)
		}
		if err := c.text(2 * max(least, len(digits))); err != nil {
			return "", err
		}
		digits = grouped(digits, p.grouping, group, least)
	}
	if p.align != '=' {
		return c.aligned(sign+prefix+digits+tail, p, '>')
	}
	body := digits + tail
	p.width -= len(sign) + len(prefix)
	p.align = '>'
	body, err := c.aligned(body, p, '>')
	return sign + prefix + body, err
}

// grouped puts sep between groups of digits, and zeros in front until there are least characters.
func grouped(digits string, sep byte, group, least int) string {
	for len(digits)+(len(digits)-1)/group < least {
		need := least - len(digits) - (len(digits)-1)/group
		digits = strings.Repeat("0", max(1, need*group/(group+1))) + digits
	}
	var b strings.Builder
	for i := range len(digits) {
		if i > 0 && (len(digits)-i)%group == 0 {
			b.WriteByte(sep)
		}
		b.WriteByte(digits[i])
	}
	return b.String()
}

func signOf(negative bool, p spec) string {
	switch {
	case negative:
		return "-"
	case p.sign == '+':
		return "+"
	case p.sign == ' ':
		return " "
	}
	return ""
}

func builtinFormat(c *call) (starlark.Value, error) {
	var v starlark.Value
	var text starlark.String
	if err := c.take(1, &v, &text); err != nil {
		return nil, err
	}
	s, err := c.format(v, string(text))
	return starlark.String(s), err
}

// converted is a value after !r, !s or !a.
func (c *call) converted(v starlark.Value, conversion string) (starlark.Value, error) {
	var s string
	var err error
	switch conversion {
	case "":
		return v, nil
	case "r":
		s, err = c.repr(v)
	case "s":
		s, err = c.str(v)
	case "a":
		s, err = c.ascii(v)
	default:
		return nil, fault.New("ValueError", "format: unknown conversion !%s: there are !r, !s and !a", conversion)
	}
	return starlark.String(s), err
}

// hiddenFormat is a field of an f-string: a value, its conversion and its format.
func hiddenFormat(c *call) (starlark.Value, error) {
	conversion, _ := starlark.AsString(c.args[1])
	text, _ := starlark.AsString(c.args[2])
	v, err := c.converted(c.args[0], conversion)
	if err != nil {
		return nil, err
	}
	s, err := c.format(v, text)
	return starlark.String(s), err
}

// hiddenFString joins the parts of an f-string.
func hiddenFString(c *call) (starlark.Value, error) {
	size := 0
	for _, part := range c.args {
		s, ok := part.(starlark.String)
		if !ok {
			return nil, fault.New("TypeError", "a part of an f-string is text, not %s", typeName(part))
		}
		size += len(s)
	}
	if err := c.text(size); err != nil {
		return nil, err
	}
	var b strings.Builder
	b.Grow(size)
	for _, part := range c.args {
		b.WriteString(string(part.(starlark.String)))
	}
	return starlark.String(b.String()), nil
}
