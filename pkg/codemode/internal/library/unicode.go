package library

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"go.starlark.net/starlark"
	"golang.org/x/text/cases"
	"golang.org/x/text/language"
)

// White space, digits and letters are Python's notions of them.

func isSpace(r rune) bool {
	switch {
	case r < utf8.RuneSelf:
		return '\t' <= r && r <= '\r' || 0x1c <= r && r <= ' '
	case r == 0x85, r == 0x2028, r == 0x2029:
		return true
	}
	return unicode.Is(unicode.Zs, r)
}

func trimSpace(s string) string { return strings.TrimFunc(s, isSpace) }

func isAlpha(r rune) bool   { return unicode.IsLetter(r) }
func isDecimal(r rune) bool { return unicode.Is(unicode.Nd, r) }
func isAlnum(r rune) bool   { return isAlpha(r) || isNumeric(r) }

// digits are the code points that have a digit's value and are no decimals: superscripts, circled digits and such.
var digits = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0xb2, Hi: 0xb3, Stride: 1}, {Lo: 0xb9, Hi: 0xb9, Stride: 1}, {Lo: 0x1369, Hi: 0x1371, Stride: 1},
		{Lo: 0x19da, Hi: 0x19da, Stride: 1}, {Lo: 0x2070, Hi: 0x2070, Stride: 1}, {Lo: 0x2074, Hi: 0x2079, Stride: 1},
		{Lo: 0x2080, Hi: 0x2089, Stride: 1}, {Lo: 0x2460, Hi: 0x2468, Stride: 1}, {Lo: 0x2474, Hi: 0x247c, Stride: 1},
		{Lo: 0x2488, Hi: 0x2490, Stride: 1}, {Lo: 0x24ea, Hi: 0x24ea, Stride: 1}, {Lo: 0x24f5, Hi: 0x24fd, Stride: 1},
		{Lo: 0x24ff, Hi: 0x24ff, Stride: 1}, {Lo: 0x2776, Hi: 0x277e, Stride: 1}, {Lo: 0x2780, Hi: 0x2788, Stride: 1},
		{Lo: 0x278a, Hi: 0x2792, Stride: 1},
	},
	R32: []unicode.Range32{
		{Lo: 0x10a40, Hi: 0x10a43, Stride: 1}, {Lo: 0x10e60, Hi: 0x10e68, Stride: 1}, {Lo: 0x11052, Hi: 0x1105a, Stride: 1},
		{Lo: 0x1f100, Hi: 0x1f10a, Stride: 1},
	},
	LatinOffset: 2,
}

func isDigitRune(r rune) bool { return isDecimal(r) || unicode.Is(digits, r) }

// isNumeric includes the ideographs of numbers.
func isNumeric(r rune) bool {
	return unicode.Is(unicode.N, r) ||
		r > 0x3000 && strings.ContainsRune("一二三四五六七八九十百千万億兆零〇壱壹弐貳貮叁参參肆伍陆陸柒漆捌玖拾佰仟萬亿廿卅", r)
}

func isLower(r rune) bool {
	return unicode.IsLower(r) || r >= utf8.RuneSelf && unicode.Is(unicode.Other_Lowercase, r)
}

func isUpper(r rune) bool {
	return unicode.IsUpper(r) || r >= utf8.RuneSelf && unicode.Is(unicode.Other_Uppercase, r)
}

func isTitle(r rune) bool { return unicode.IsTitle(r) }
func isCased(r rune) bool { return isLower(r) || isUpper(r) || isTitle(r) }

func upper(s string) string {
	if isASCII(s) {
		return strings.ToUpper(s)
	}
	return cases.Upper(language.Und).String(s)
}

func lower(s string) string {
	if isASCII(s) {
		return strings.ToLower(s)
	}
	return cases.Lower(language.Und).String(s)
}

func casefold(s string) string {
	if isASCII(s) {
		return strings.ToLower(s)
	}
	return cases.Fold().String(s)
}

// titled is the first letter of s as one of a title, and the rest in lower case.
func titled(s string) string {
	if s == "" {
		return ""
	}
	first := s[:runeLen(s)]
	rest := lower(s)[len(lower(first)):]
	if len(first) == 1 {
		return strings.ToUpper(first) + rest
	}
	if t := cases.Title(language.Und, cases.NoLower).String(first); t != first {
		return t + rest
	}
	return strings.Map(unicode.ToTitle, first) + rest
}

func capitalize(s string) string { return titled(s) }

func title(s string) string {
	var b strings.Builder
	for s != "" {
		at := strings.IndexFunc(s, isCased)
		if at < 0 {
			at = len(s)
		}
		b.WriteString(s[:at])
		s = s[at:]
		end := strings.IndexFunc(s, func(r rune) bool { return !isCased(r) })
		if end < 0 {
			end = len(s)
		}
		b.WriteString(titled(s[:end]))
		s = s[end:]
	}
	return b.String()
}

func swapcase(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case isUpper(r):
			b.WriteString(lower(string(r)))
		case isLower(r):
			b.WriteString(upper(string(r)))
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// every is a method that tells whether a text is not empty, and all of it is so.
func every(is func(rune) bool) function {
	return func(c *call) (starlark.Value, error) {
		if err := c.take(0); err != nil {
			return nil, err
		}
		s := c.self()
		if err := c.scan(8 * len(s)); err != nil {
			return nil, err
		}
		not := func(r rune) bool { return !is(r) }
		return starlark.Bool(s != "" && strings.IndexFunc(s, not) < 0), nil
	}
}

// cased is islower and isupper: some letters are so, and none of the other cases.
func cased(is func(rune) bool, others ...func(rune) bool) function {
	return func(c *call) (starlark.Value, error) {
		if err := c.take(0); err != nil {
			return nil, err
		}
		if err := c.scan(8 * len(c.self())); err != nil {
			return nil, err
		}
		some := false
		for _, r := range c.self() {
			for _, other := range others {
				if other(r) {
					return starlark.False, nil
				}
			}
			some = some || is(r)
		}
		return starlark.Bool(some), nil
	}
}

func stringIsASCII(c *call) (starlark.Value, error) {
	if err := c.take(0); err != nil {
		return nil, err
	}
	return starlark.Bool(isASCII(c.self())), c.scan(len(c.self()))
}

func stringIsPrintable(c *call) (starlark.Value, error) {
	if err := c.take(0); err != nil {
		return nil, err
	}
	not := func(r rune) bool { return !unicode.IsPrint(r) }
	return starlark.Bool(strings.IndexFunc(c.self(), not) < 0), c.scan(8 * len(c.self()))
}

func stringIsIdentifier(c *call) (starlark.Value, error) {
	if err := c.take(0); err != nil {
		return nil, err
	}
	for i, r := range c.self() {
		if r != '_' && !isAlpha(r) && !unicode.Is(unicode.Nl, r) &&
			(i == 0 || !isDecimal(r) && !unicode.In(r, unicode.Mn, unicode.Mc, unicode.Pc)) {
			return starlark.False, nil
		}
	}
	return starlark.Bool(c.self() != ""), c.scan(8 * len(c.self()))
}

func stringIsTitle(c *call) (starlark.Value, error) {
	if err := c.take(0); err != nil {
		return nil, err
	}
	if err := c.scan(8 * len(c.self())); err != nil {
		return nil, err
	}
	some, within := false, false
	for _, r := range c.self() {
		switch {
		case isUpper(r) || isTitle(r):
			if within {
				return starlark.False, nil
			}
			some, within = true, true
		case isLower(r):
			if !within {
				return starlark.False, nil
			}
			some = true
		default:
			within = false
		}
	}
	return starlark.Bool(some), nil
}
