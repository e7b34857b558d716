package library

import (
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.starlark.net/starlark"

	"github.com/openenv-go/openenv-go/pkg/codemode/internal/fault"
)

func (c *call) formatInt(i starlark.Int, p spec, what string) (string, error) {
	if p.precision >= 0 {
		return "", fault.New("ValueError", "format: there is no precision for an integer").Hinted("write .%df", p.precision)
	}
	if p.verb == 'c' {
		return c.formatRune(i, p)
	}
	base, prefix, group := 10, "", 3
	switch p.verb {
	case 0, 'd':
	case 'n':
		if p.grouping != 0 {
			return "", fault.New("ValueError", "format: there is no %c with n", p.grouping)
		}
	case 'b':
		base, prefix, group = 2, "0b", 4
	case 'o':
		base, prefix, group = 8, "0o", 4
	case 'x', 'X':
		base, prefix, group = 16, "0"+string(p.verb), 4
	default:
		return "", unknownVerb(p.verb, what)
	}
	if base != 10 && p.grouping == ',' {
		return "", fault.New("ValueError", "format: there is no , with %c: write _", p.verb)
	}
	if p.noMinus0 {
		return "", fault.New("ValueError", "format: z is for floats")
	}
	digits, err := c.digitsIn(i, base)
	if err != nil {
		return "", err
	}
	digits, negative := strings.CutPrefix(digits, "-")
	if p.verb == 'X' {
		digits = strings.ToUpper(digits)
	}
	if !p.alternate {
		prefix = ""
	}
	return c.formatDigits(signOf(negative, p), prefix, digits, "", p, group)
}

func (c *call) digitsIn(i starlark.Int, base int) (string, error) {
	if base == 10 {
		return c.digits(i)
	}
	if err := c.text(bits(i)); err != nil {
		return "", err
	}
	return i.BigInt().Text(base), nil
}

func (c *call) formatRune(i starlark.Int, p spec) (string, error) {
	if p.sign != 0 || p.grouping != 0 || p.alternate {
		return "", fault.New("ValueError", "format: there is no sign, # or grouping with c")
	}
	n, _ := asIndex(i)
	if n < 0 || n > utf8.MaxRune || !utf8.ValidRune(rune(n)) {
		return "", fault.New("OverflowError", "format: %s is no code point", Repr(i))
	}
	return c.aligned(string(rune(n)), p, '<')
}

func (c *call) formatFloat(f float64, p spec) (string, error) {
	text := floatDigits(math.Abs(f), p)
	if text == "" {
		return "", unknownVerb(p.verb, "float")
	}
	if p.grouping != 0 && p.verb == 'n' {
		return "", fault.New("ValueError", "format: there is no %c with n", p.grouping)
	}
	negative := math.Signbit(f) && !math.IsNaN(f)
	if negative && p.noMinus0 && strings.Trim(mantissa(text), "0.") == "" {
		negative = false
	}
	end := strings.IndexFunc(text, func(r rune) bool { return r < '0' || r > '9' })
	if end < 0 {
		end = len(text)
	}
	if end == 0 { // inf and nan
		p.grouping = 0
	}
	return c.formatDigits(signOf(negative, p), "", text[:end], text[end:], p, 3)
}

func mantissa(s string) string {
	if at := strings.IndexAny(s, "eE%"); at >= 0 {
		return s[:at]
	}
	return s
}

// floatDigits is a float that is not negative, as its type of format wants it; "" where floats have no such type.
func floatDigits(f float64, p spec) string {
	precision := p.precision
	if precision < 0 {
		precision = 6
	}
	if math.IsNaN(f) || math.IsInf(f, 0) {
		if !strings.ContainsRune("\x00eEfFgGn%", rune(p.verb)) {
			return ""
		}
		text := map[bool]string{true: "nan", false: "inf"}[math.IsNaN(f)]
		switch p.verb {
		case 'E', 'F', 'G':
			return strings.ToUpper(text)
		case '%':
			return text + "%"
		}
		return text
	}
	switch p.verb {
	case 0:
		if p.precision < 0 {
			return pointed(shortest(f), p.alternate)
		}
		return general(f, precision, p.alternate, 1)
	case 'e', 'E':
		return pointed(strconv.FormatFloat(f, p.verb, precision, 64), p.alternate)
	case 'f', 'F':
		return pointed(strconv.FormatFloat(f, 'f', precision, 64), p.alternate)
	case '%':
		return pointed(hundredfold(f, precision), p.alternate) + "%"
	case 'g', 'n':
		return general(f, precision, p.alternate, 0)
	case 'G':
		return strings.ToUpper(general(f, precision, p.alternate, 0))
	}
	return ""
}

// hundredfold is f per cent. The product may be too large for a float.
func hundredfold(f float64, precision int) string {
	if p := f * 100; !math.IsInf(p, 0) {
		return strconv.FormatFloat(p, 'f', precision, 64)
	}
	return "inf"
}

// shortest is the text of a float of no type, which has a point or an exponent.
func shortest(f float64) string { return floatText(f) }

// pointed puts a point after the digits where # wants one.
func pointed(s string, alternate bool) string {
	if !alternate || strings.Contains(s, ".") {
		return s
	}
	if at := strings.IndexAny(s, "eE"); at >= 0 {
		return s[:at] + "." + s[at:]
	}
	return s + "."
}

// general is the format g: so many digits, and an exponent where there is no room for them. A format of no type has spare digits:
// one, so that there is a digit after the point.
func general(f float64, precision int, alternate bool, spare int) string {
	precision = max(precision, 1)
	e := strconv.FormatFloat(f, 'e', precision-1, 64)
	at := strings.LastIndexByte(e, 'e')
	exponent, _ := strconv.Atoi(e[at+1:])
	if exponent < -4 || exponent >= precision-spare {
		m := e[:at]
		if !alternate {
			m = withoutZeros(m)
		}
		return pointed(m+e[at:], alternate)
	}
	s := strconv.FormatFloat(f, 'f', precision-1-exponent, 64)
	if alternate {
		return pointed(s, true)
	}
	s = withoutZeros(s)
	if spare > 0 && !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

// withoutZeros takes zeros off the end of a fraction.
func withoutZeros(s string) string {
	if !strings.Contains(s, ".") {
		return s
	}
	return strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
}

// ratio is a float as a ratio of integers.
func ratio(f float64) (*big.Rat, bool) {
	r := new(big.Rat).SetFloat64(f)
	return r, r != nil
}
