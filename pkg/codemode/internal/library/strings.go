package library

import (
	"strings"
	"unicode/utf8"

	"go.starlark.net/starlark"

	"github.com/openenv-go/openenv-go/pkg/codemode/internal/fault"
)

func (l *library) stringMethods() map[string]function {
	return map[string]function{
		"capitalize": mapped(capitalize), "casefold": mapped(casefold), "lower": mapped(lower), "swapcase": mapped(swapcase),
		"title": mapped(title), "upper": mapped(upper),
		"isalnum": every(isAlnum), "isalpha": every(isAlpha), "isascii": stringIsASCII, "isdecimal": every(isDecimal),
		"isdigit": every(isDigitRune), "isidentifier": stringIsIdentifier, "isnumeric": every(isNumeric),
		"isprintable": stringIsPrintable, "isspace": every(isSpace), "islower": cased(isLower, isUpper, isTitle),
		"isupper": cased(isUpper, isLower, isTitle), "istitle": stringIsTitle,
		"count": stringCount, "find": stringFind, "index": stringFind, "rfind": stringFind, "rindex": stringFind,
		"startswith": stringAffix, "endswith": stringAffix, "removeprefix": stringRemovePrefix, "removesuffix": stringRemoveSuffix,
		"center": stringPad, "ljust": stringPad, "rjust": stringPad, "zfill": stringZfill, "expandtabs": stringExpandTabs,
		"strip": stringStrip, "lstrip": stringStrip, "rstrip": stringStrip, "replace": stringReplace, "join": stringJoin,
		"split": stringSplit, "rsplit": stringSplit, "splitlines": stringSplitLines, "partition": stringPartition,
		"rpartition": stringPartition, "translate": stringTranslate, "maketrans": stringMakeTrans,
		"format": stringFormat, "format_map": stringFormatMap,
		"elems": stringElems, "codepoints": stringElems, "elem_ords": stringOrds, "codepoint_ords": stringOrds,
	}
}

// self is the text that a method was called on.
func (c *call) self() string { return string(c.recv.(starlark.String)) }

// textOf is an argument that must be text.
func (c *call) textOf(v starlark.Value, what string) (string, error) {
	if s, ok := v.(starlark.String); ok {
		return string(s), nil
	}
	return "", fault.New("TypeError", "%s: %s must be text, not %s", c.name, what, typeName(v)).Hinted("write str(…)")
}

// mapped is a method that makes another text of a text.
func mapped(f func(string) string) function {
	return func(c *call) (starlark.Value, error) {
		if err := c.take(0); err != nil {
			return nil, err
		}
		if err := c.text(2 * len(c.self())); err != nil {
			return nil, err
		}
		return starlark.String(f(c.self())), nil
	}
}

func stringPad(c *call) (starlark.Value, error) {
	var width starlark.Value
	fill := starlark.String(" ")
	if err := c.take(1, &width, &fill); err != nil {
		return nil, err
	}
	n, err := c.index(width, "the width")
	if err != nil {
		return nil, err
	}
	if utf8.RuneCountInString(string(fill)) != 1 {
		return nil, fault.New("TypeError", "%s: the fill must be one character, not %s", c.name, Repr(fill))
	}
	s := c.self()
	space := n - utf8.RuneCountInString(s)
	if space <= 0 {
		return c.recv, nil
	}
	left, right := 0, space
	switch c.name {
	case "rjust":
		left, right = space, 0
	case "center":
		left = space/2 + space&n&1
		right = space - left
	}
	return c.padded(s, string(fill), left, right)
}

func (c *call) padded(s, fill string, left, right int) (starlark.Value, error) {
	if err := c.text(len(s) + times(left+right, len(fill))); err != nil {
		return nil, err
	}
	return starlark.String(strings.Repeat(fill, left) + s + strings.Repeat(fill, right)), nil
}

func stringZfill(c *call) (starlark.Value, error) {
	var width starlark.Value
	if err := c.take(1, &width); err != nil {
		return nil, err
	}
	n, err := c.index(width, "the width")
	if err != nil {
		return nil, err
	}
	s, sign := c.self(), ""
	n -= utf8.RuneCountInString(s)
	if n <= 0 {
		return c.recv, nil
	}
	if strings.HasPrefix(s, "-") || strings.HasPrefix(s, "+") {
		sign, s = s[:1], s[1:]
	}
	if err := c.text(n + len(s)); err != nil {
		return nil, err
	}
	return starlark.String(sign + strings.Repeat("0", n) + s), nil
}

func stringExpandTabs(c *call) (starlark.Value, error) {
	var size starlark.Value
	if err := c.bind("tabsize?", &size); err != nil {
		return nil, err
	}
	tab, err := c.optional(size, "tabsize", 8)
	if err != nil {
		return nil, err
	}
	s := c.self()
	if err := c.text(len(s) + times(strings.Count(s, "\t"), tab)); err != nil {
		return nil, err
	}
	var b strings.Builder
	column := 0
	for _, r := range s {
		switch {
		case r == '\t' && tab > 0:
			n := tab - column%tab
			b.WriteString(strings.Repeat(" ", n))
			column += n
		case r == '\t':
		case r == '\n' || r == '\r':
			b.WriteRune(r)
			column = 0
		default:
			b.WriteRune(r)
			column++
		}
	}
	return starlark.String(b.String()), nil
}

func stringStrip(c *call) (starlark.Value, error) {
	var chars starlark.Value = starlark.None
	if err := c.take(0, &chars); err != nil {
		return nil, err
	}
	in := isSpace
	if chars != starlark.None {
		set, err := c.textOf(chars, "the argument")
		if err != nil {
			return nil, err
		}
		in = func(r rune) bool { return strings.ContainsRune(set, r) }
		if err := c.scan(times(len(set), len(c.self()))); err != nil {
			return nil, err
		}
	}
	s := c.self()
	if err := c.scan(len(s)); err != nil {
		return nil, err
	}
	if c.name != "rstrip" {
		s = strings.TrimLeftFunc(s, in)
	}
	if c.name != "lstrip" {
		s = strings.TrimRightFunc(s, in)
	}
	return starlark.String(s), nil
}

func stringReplace(c *call) (starlark.Value, error) {
	var old, new starlark.Value
	var most starlark.Value
	if err := c.bind("old", &old, "new", &new, "count?", &most); err != nil {
		return nil, err
	}
	from, err := c.textOf(old, "the text to replace")
	if err != nil {
		return nil, err
	}
	to, err := c.textOf(new, "the replacement")
	if err != nil {
		return nil, err
	}
	n, err := c.optional(most, "count", -1)
	if err != nil {
		return nil, err
	}
	s := c.self()
	if err := c.scan(4 * len(s)); err != nil {
		return nil, err
	}
	found := strings.Count(s, from)
	if n >= 0 {
		found = min(found, n)
	}
	if err := c.text(len(s) + times(found, len(to))); err != nil {
		return nil, err
	}
	return starlark.String(strings.Replace(s, from, to, found)), nil
}

func stringJoin(c *call) (starlark.Value, error) {
	var x starlark.Value
	if err := c.take(1, &x); err != nil {
		return nil, err
	}
	sep := c.self()
	var parts []string
	size := 0
	err := c.each(x, func(v starlark.Value) error {
		s, ok := v.(starlark.String)
		if !ok {
			return fault.New("TypeError", "join: element %d is no text but %s", len(parts), typeName(v)).
				Hinted("make text of the elements: %s.join([str(x) for x in xs])", Repr(c.recv))
		}
		parts = append(parts, string(s))
		size += len(s) + len(sep)
		if n := len(parts); n >= 1024 && n&(n-1) == 0 {
			return c.meter.Room(size + n*wordBytes)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if err := c.text(size); err != nil {
		return nil, err
	}
	return starlark.String(strings.Join(parts, sep)), nil
}

func stringElems(c *call) (starlark.Value, error) {
	if err := c.take(0); err != nil {
		return nil, err
	}
	if err := c.slots(2 * len(c.self()) / utf8.UTFMax); err != nil {
		return nil, err
	}
	values, err := c.collect(c.recv)
	return starlark.NewList(values), err
}

func stringOrds(c *call) (starlark.Value, error) {
	if err := c.take(0); err != nil {
		return nil, err
	}
	g := gatherer{call: c}
	err := c.each(c.recv, func(v starlark.Value) error {
		r, _ := utf8.DecodeRuneInString(string(v.(starlark.String)))
		return g.add(starlark.MakeInt(int(r)))
	})
	return starlark.NewList(g.values), err
}

// stringMakeTrans makes the table of translate: of a dict, or of two or three texts.
func stringMakeTrans(c *call) (starlark.Value, error) {
	var x, to, without starlark.Value
	if err := c.take(1, &x, &to, &without); err != nil {
		return nil, err
	}
	table := new(starlark.Dict)
	if d, ok := x.(*starlark.Dict); ok && to == nil {
		return table, c.entries(d, func(k, v starlark.Value) error {
			if s, ok := k.(starlark.String); ok {
				if s == "" || runeLen(string(s)) != len(s) {
					return fault.New("ValueError", "maketrans: a key must be one character, not %s", Repr(s))
				}
				r, _ := utf8.DecodeRuneInString(string(s))
				k = starlark.MakeInt(int(r))
			}
			return c.setKey(table, k, v)
		})
	}
	from, ok := x.(starlark.String)
	into, ok2 := to.(starlark.String)
	if !ok || !ok2 {
		return nil, fault.New("TypeError", "maketrans: want a dict, or two texts of the same length")
	}
	old, new := []rune(string(from)), []rune(string(into))
	if len(old) != len(new) {
		return nil, fault.New("ValueError", "maketrans: the texts must have the same length, not %d and %d", len(old), len(new))
	}
	for i, r := range old {
		if err := c.step(1); err != nil {
			return nil, err
		}
		if err := c.setKey(table, starlark.MakeInt(int(r)), starlark.MakeInt(int(new[i]))); err != nil {
			return nil, err
		}
	}
	drop, _ := without.(starlark.String)
	for _, r := range string(drop) {
		if err := c.setKey(table, starlark.MakeInt(int(r)), starlark.None); err != nil {
			return nil, err
		}
	}
	return table, nil
}

func stringTranslate(c *call) (starlark.Value, error) {
	var table *starlark.Dict
	if err := c.take(1, &table); err != nil {
		return nil, err
	}
	w := writer{call: c}
	for _, r := range c.self() {
		v, found, err := table.Get(starlark.MakeInt(int(r)))
		if err != nil {
			return nil, c.typeError(err)
		}
		out := string(r)
		switch v := v.(type) {
		case starlark.String:
			out = string(v)
		case starlark.Int:
			n, _ := asIndex(v)
			if n < 0 || n > utf8.MaxRune || !utf8.ValidRune(rune(n)) {
				return nil, fault.New("ValueError", "translate: %s is no code point", Repr(v))
			}
			out = string(rune(n))
		case starlark.NoneType:
			if found {
				out = ""
			}
		default:
			return nil, fault.New("TypeError", "translate: a character becomes text, a code point or None, not %s", typeName(v))
		}
		if err := w.put(out); err != nil {
			return nil, err
		}
	}
	return starlark.String(w.String()), nil
}
