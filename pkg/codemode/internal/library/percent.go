package library

import (
	"strings"

	"go.starlark.net/starlark"

	"github.com/openenv-go/openenv-go/pkg/codemode/internal/fault"
)

// percent is format % arg.
func (c *call) percent(format string, arg starlark.Value) (string, error) {
	p := percenter{writer: writer{call: c}, arg: arg}
	p.args, p.several = arg.(starlark.Tuple)
	if !p.several {
		p.args = starlark.Tuple{arg}
	}
	for format != "" {
		at := strings.IndexByte(format, '%')
		if at < 0 {
			at = len(format)
		}
		if err := p.put(format[:at]); err != nil {
			return "", err
		}
		if format = format[at:]; format == "" {
			break
		}
		var err error
		if format, err = p.conversion(format[1:]); err != nil {
			return "", err
		}
	}
	_, names := arg.(*starlark.Dict)
	if p.next < len(p.args) && !p.named && !(names && !p.several) {
		return "", fault.New("TypeError", "%%: there are %d values and %d places for them", len(p.args), p.next)
	}
	return p.String(), nil
}

type percenter struct {
	writer
	arg     starlark.Value // the right operand
	args    starlark.Tuple // the values
	several bool           // the operand is a tuple
	named   bool           // a place had a name
	next    int
}

// conversion writes what the % before s stands for, and returns what is behind it.
func (p *percenter) conversion(s string) (string, error) {
	if strings.HasPrefix(s, "(") {
		end := nameEnd(s)
		d, ok := p.arg.(*starlark.Dict)
		if end < 0 {
			return "", fault.New("ValueError", "%%: the name after %%( is never closed")
		}
		if !ok {
			return "", fault.New("TypeError", "%%: %s needs a dict on the right, not %s", s[:end+1], typeName(p.arg))
		}
		v, err := p.lookup(d, starlark.String(s[1:end]))
		if err != nil {
			return "", err
		}
		p.named, p.args, p.next = true, starlark.Tuple{v}, 0
		s = s[end+1:]
	}
	f, s, err := p.flags(s)
	if err != nil {
		return "", err
	}
	if s == "" {
		return "", fault.New("ValueError", "%%: the format ends after a %%").Hinted("write %%%% for a percent sign")
	}
	if s[0] == '%' {
		return s[1:], p.put("%")
	}
	f.verb = s[0]
	if strings.IndexByte("srdiufFeEgGxXoca", f.verb) < 0 {
		bad := s[:runeLen(s)]
		return "", fault.New("ValueError", "%%: there is no conversion %%%s", bad).Hinted("write %%%% for a percent sign")
	}
	v, err := p.take1()
	if err != nil {
		return "", err
	}
	text, err := p.convert(v, f)
	if err != nil {
		return "", err
	}
	return s[1:], p.put(text)
}

// nameEnd is where the name in parentheses that s begins with ends; there may be parentheses in it.
func nameEnd(s string) int {
	open := 0
	for i := range len(s) {
		switch s[i] {
		case '(':
			open++
		case ')':
			if open--; open == 0 {
				return i
			}
		}
	}
	return -1
}

func (p *percenter) take1() (starlark.Value, error) {
	if p.next >= len(p.args) {
		return nil, fault.New("TypeError", "%%: there are more places than the %d values", len(p.args)).
			Hinted("several values are a tuple: \"%%s %%s\" %% (a, b)")
	}
	p.next++
	return p.args[p.next-1], nil
}

// flags reads flags, width and precision.
func (p *percenter) flags(s string) (spec, string, error) {
	f := spec{fill: " ", align: '>', precision: -1}
	for ; s != ""; s = s[1:] {
		switch s[0] {
		case '-':
			f.align = '<'
		case '+':
			f.sign = '+'
		case ' ':
			if f.sign == 0 {
				f.sign = ' '
			}
		case '#':
			f.alternate = true
		case '0':
			f.zero = true
		default:
			goto width
		}
	}
width:
	var err error
	if f.width, s, err = p.size(s); err != nil {
		return f, s, err
	}
	if f.width < 0 {
		f.align, f.width = '<', -f.width
	}
	if strings.HasPrefix(s, ".") {
		if f.precision, s, err = p.size(s[1:]); err != nil {
			return f, s, err
		}
		f.precision = max(f.precision, 0)
	}
	s = strings.TrimLeft(s, "hlL")
	if err := p.meter.Room(f.width + max(f.precision, 0)); err != nil {
		return f, s, err
	}
	return f, s, p.scan(f.width + max(f.precision, 0))
}

// size reads a width or precision: digits, or * for one of the values.
func (p *percenter) size(s string) (int, string, error) {
	if !strings.HasPrefix(s, "*") {
		n, rest, ok := number(s, 0)
		if !ok {
			return 0, s, fault.New("ValueError", "%%: the width is too large")
		}
		return n, rest, nil
	}
	v, err := p.take1()
	if err != nil {
		return 0, s, err
	}
	n, ok := asIndex(v)
	if !ok || n > 1<<40 || n < -1<<40 {
		return 0, s, fault.New("TypeError", "%%: * wants an integer for the width, not %s", Repr(v))
	}
	return n, s[1:], nil
}

func (p *percenter) convert(v starlark.Value, f spec) (string, error) {
	switch f.verb {
	case 's', 'r', 'a':
		t, err := p.converted(v, string(f.verb))
		if err != nil {
			return "", err
		}
		return p.plainText(string(t.(starlark.String)), f)
	case 'c':
		return p.rune(v, f)
	case 'd', 'i', 'u', 'x', 'X', 'o':
		return p.integerText(v, f)
	}
	switch plain(v).(type) {
	case starlark.Int, starlark.Float:
	default:
		return "", p.wants("a number", v, f)
	}
	x, err := toFloat(v)
	if err != nil {
		return "", err
	}
	if f.zero && f.align == '>' {
		f.fill, f.align = "0", '='
	}
	return p.formatFloat(x, f)
}

func (p *percenter) wants(what string, v starlark.Value, f spec) error {
	e := fault.New("TypeError", "%%: %%%c wants %s, not %s", f.verb, what, typeName(v))
	if v == starlark.None {
		return e.Hinted("the value may be missing: write (x or 0), or %%s")
	}
	return e.Hinted("write %%s for any value")
}

func (p *percenter) plainText(s string, f spec) (string, error) {
	if f.precision >= 0 {
		s = s[:offset(s, f.precision)]
	}
	return p.aligned(s, f, '>')
}

func (p *percenter) rune(v starlark.Value, f spec) (string, error) {
	if s, ok := v.(starlark.String); ok && s != "" && runeLen(string(s)) == len(s) {
		return p.aligned(string(s), f, '>')
	}
	i, ok := plain(v).(starlark.Int)
	if !ok {
		return "", p.wants("an integer or one character", v, f)
	}
	f.sign, f.alternate = 0, false
	return p.formatRune(i, f)
}

func (p *percenter) integerText(v starlark.Value, f spec) (string, error) {
	if x, ok := v.(starlark.Float); ok && strings.IndexByte("diu", f.verb) >= 0 {
		i, err := truncate(float64(x))
		if err != nil {
			return "", err
		}
		v = i
	}
	i, ok := plain(v).(starlark.Int)
	if !ok {
		return "", p.wants("an integer", v, f)
	}
	base, prefix := 10, ""
	switch f.verb {
	case 'x', 'X':
		base, prefix = 16, "0"+string(f.verb)
	case 'o':
		base, prefix = 8, "0o"
	}
	digits, err := p.digitsIn(i, base)
	if err != nil {
		return "", err
	}
	digits, negative := strings.CutPrefix(digits, "-")
	if f.verb == 'X' {
		digits = strings.ToUpper(digits)
	}
	if !f.alternate {
		prefix = ""
	}
	if n := f.precision - len(digits); n > 0 {
		if err := p.text(n); err != nil {
			return "", err
		}
		digits = strings.Repeat("0", n) + digits
	}
	if f.zero && f.align == '>' {
		f.fill, f.align = "0", '='
	}
	return p.formatDigits(signOf(negative, f), prefix, digits, "", f, 3)
}
