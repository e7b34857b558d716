package library

import (
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.starlark.net/starlark"

	"github.com/openenv-go/openenv-go/pkg/codemode/internal/fault"
)

// maxDigits is how many decimal digits int reads, as in Python: reading takes more than their number.
const maxDigits = 4300

func builtinInt(c *call) (starlark.Value, error) {
	var x, base starlark.Value
	if err := c.bind("x?", &x, "base?", &base); err != nil {
		return nil, err
	}
	if x == nil {
		return starlark.MakeInt(0), nil
	}
	if s, ok := x.(starlark.String); ok {
		b, err := c.optional(base, "base", 10)
		if err != nil {
			return nil, err
		}
		return c.parseInt(string(s), b)
	}
	if base != nil {
		return nil, fault.New("TypeError", "int: only text is read with a base, not %s", typeName(x))
	}
	switch x := plain(x).(type) {
	case starlark.Int:
		return x, nil
	case starlark.Float:
		return truncate(float64(x))
	case starlark.NoneType:
		return nil, fault.New("TypeError", "int: None is no number").Hinted("the value may be missing: int(x or 0)")
	}
	return nil, fault.New("TypeError", "int: want text or a number, not %s", typeName(x))
}

// truncate is the integer part of a float.
func truncate(f float64) (starlark.Value, error) {
	switch {
	case math.IsNaN(f):
		return nil, fault.New("ValueError", "nan is no integer")
	case math.IsInf(f, 0):
		return nil, fault.New("OverflowError", "infinity is no integer")
	}
	i, err := starlark.NumberToInt(starlark.Float(math.Trunc(f)))
	if err != nil {
		return nil, fault.New("OverflowError", "%s", err)
	}
	return i, nil
}

func (c *call) parseInt(s string, base int) (starlark.Value, error) {
	if base != 0 && (base < 2 || base > 36) {
		return nil, fault.New("ValueError", "int: the base must be 0 or from 2 to 36, not %d", base)
	}
	invalid := func() error {
		return fault.New("ValueError", "int: %s is no integer in base %d", Repr(starlark.String(s)), base)
	}
	if err := c.scan(len(s)); err != nil {
		return nil, err
	}
	text := asciiDigits(trimSpace(s))
	negative := strings.HasPrefix(text, "-")
	if negative || strings.HasPrefix(text, "+") {
		text = text[1:]
	}
	digits, radix := withoutPrefix(text, base)
	digits, ok := withoutUnderscores(digits)
	if !ok || radix == 0 {
		return nil, invalid()
	}
	if radix&(radix-1) != 0 && len(digits) > maxDigits {
		return nil, fault.New("ValueError", "int: %d digits are more than the %d that are read", len(digits), maxDigits)
	}
	if err := c.integer(len(digits) * 6); err != nil {
		return nil, err
	}
	i, ok := new(big.Int).SetString(digits, radix)
	if !ok {
		return nil, invalid()
	}
	if negative {
		i.Neg(i)
	}
	return starlark.MakeBigInt(i), nil
}

// withoutPrefix takes 0x, 0o or 0b off where the base allows it. The base is 0 where there is no integer.
func withoutPrefix(s string, base int) (string, int) {
	if len(s) > 1 && s[0] == '0' {
		radix := map[byte]int{'x': 16, 'o': 8, 'b': 2}[s[1]|0x20]
		if radix != 0 && (base == 0 || base == radix) {
			return strings.TrimPrefix(s[2:], "_"), radix
		}
		if base == 0 && strings.Trim(s, "0_") != "" {
			return s, 0
		}
	}
	if base == 0 {
		return s, 10
	}
	return s, base
}

// withoutUnderscores takes out underscores between digits. There must be digits, and nothing else.
func withoutUnderscores(s string) (string, bool) {
	if s == "" || s[0] == '_' || s[len(s)-1] == '_' || strings.Contains(s, "__") {
		return "", false
	}
	for i := range len(s) {
		c := s[i]
		if c != '_' && (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z') {
			return "", false
		}
	}
	return strings.ReplaceAll(s, "_", ""), true
}

// asciiDigits writes the decimal digits of all scripts as 0 to 9.
func asciiDigits(s string) string {
	if isASCII(s) {
		return s
	}
	return strings.Map(func(r rune) rune {
		if d, ok := digitValue(r); ok {
			return '0' + rune(d)
		}
		return r
	}, s)
}

// digitValue is the value of a decimal digit. In Unicode they stand in runs of ten, from 0.
func digitValue(r rune) (int, bool) {
	if r < utf8.RuneSelf {
		return int(r - '0'), '0' <= r && r <= '9'
	}
	for _, t := range unicode.Nd.R16 {
		if rune(t.Lo) <= r && r <= rune(t.Hi) {
			return int(r-rune(t.Lo)) % 10, true
		}
	}
	for _, t := range unicode.Nd.R32 {
		if rune(t.Lo) <= r && r <= rune(t.Hi) {
			return int(r-rune(t.Lo)) % 10, true
		}
	}
	return 0, false
}

func builtinFloat(c *call) (starlark.Value, error) {
	x := starlark.Value(starlark.Float(0))
	if err := c.take(0, &x); err != nil {
		return nil, err
	}
	switch x := plain(x).(type) {
	case starlark.String:
		if err := c.scan(len(x)); err != nil {
			return nil, err
		}
		f, ok := parseFloat(string(x))
		if !ok {
			return nil, fault.New("ValueError", "float: %s is no number", Repr(x))
		}
		return starlark.Float(f), nil
	case starlark.Int, starlark.Float:
		f, err := toFloat(x)
		return starlark.Float(f), err
	case starlark.NoneType:
		return nil, fault.New("TypeError", "float: None is no number").Hinted("the value may be missing: float(x or 0)")
	}
	return nil, fault.New("TypeError", "float: want text or a number, not %s", typeName(x))
}

// parseFloat reads a float as Python does: no hexadecimals, underscores between digits.
func parseFloat(s string) (float64, bool) {
	s = asciiDigits(trimSpace(s))
	if strings.ContainsAny(s, "xXpP") {
		return 0, false
	}
	for i := range len(s) {
		if s[i] == '_' && (i == 0 || i == len(s)-1 || !isDigit(s[i-1]) || !isDigit(s[i+1])) {
			return 0, false
		}
	}
	if strings.EqualFold(s, "+nan") || strings.EqualFold(s, "-nan") {
		return math.NaN(), true
	}
	f, err := strconv.ParseFloat(strings.ReplaceAll(s, "_", ""), 64)
	if err != nil && math.IsInf(f, 0) {
		return f, true // out of range
	}
	return f, err == nil
}

func isDigit(b byte) bool { return '0' <= b && b <= '9' }

func builtinRound(c *call) (starlark.Value, error) {
	var x, nd starlark.Value
	if err := c.bind("number", &x, "ndigits?", &nd); err != nil {
		return nil, err
	}
	digits, err := c.optional(nd, "ndigits", 0)
	if err != nil {
		return nil, err
	}
	whole := nd == nil || nd == starlark.None
	switch x := plain(x).(type) {
	case starlark.Int:
		if digits >= 0 {
			return x, nil
		}
		return c.roundInt(x, -digits)
	case starlark.Float:
		if whole {
			return truncate(math.RoundToEven(float64(x)))
		}
		return roundFloat(float64(x), digits)
	case starlark.NoneType:
		return nil, fault.New("TypeError", "round: None is no number").Hinted("the value may be missing: round(x or 0)")
	}
	return nil, fault.New("TypeError", "round: want a number, not %s", typeName(x))
}

// roundFloat rounds the decimal expansion, halves to even, as Python does.
func roundFloat(f float64, digits int) (starlark.Value, error) {
	switch {
	case math.IsNaN(f), math.IsInf(f, 0), digits > 323:
		return starlark.Float(f), nil
	case digits < -308:
		return starlark.Float(math.Copysign(0, f)), nil
	case digits < 0:
		return roundTens(f, -digits)
	}
	r, err := strconv.ParseFloat(strconv.FormatFloat(f, 'f', digits, 64), 64)
	if err != nil {
		return nil, fault.New("OverflowError", "round: the number is too large")
	}
	return starlark.Float(r), nil
}

func roundTens(f float64, digits int) (starlark.Value, error) {
	unit := new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(digits)), nil))
	n := nearestEven(new(big.Rat).Quo(new(big.Rat).SetFloat64(f), unit))
	r, _ := new(big.Rat).Mul(new(big.Rat).SetInt(n), unit).Float64()
	if math.IsInf(r, 0) {
		return nil, fault.New("OverflowError", "round: the number is too large")
	}
	if r == 0 {
		r = math.Copysign(0, f)
	}
	return starlark.Float(r), nil
}

// nearestEven is the nearest integer, of two the even one.
func nearestEven(r *big.Rat) *big.Int {
	twice := new(big.Int).Lsh(r.Denom(), 1)
	num := new(big.Int).Add(new(big.Int).Lsh(r.Num(), 1), r.Denom())
	n, rest := new(big.Int).DivMod(num, twice, new(big.Int))
	if rest.Sign() == 0 && n.Bit(0) == 1 {
		n.Sub(n, big.NewInt(1))
	}
	return n
}

func (c *call) roundInt(x starlark.Int, digits int) (starlark.Value, error) {
	n := bits(x)
	if digits > n {
		return starlark.MakeInt(0), nil
	}
	if err := c.heavy(n / 16); err != nil {
		return nil, err
	}
	unit := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(digits)), nil)
	q := nearestEven(new(big.Rat).SetFrac(x.BigInt(), unit))
	return starlark.MakeBigInt(q.Mul(q, unit)), nil
}

// inBase is what bin, oct and hex give.
func inBase(prefix string, base int) function {
	return func(c *call) (starlark.Value, error) {
		var x starlark.Value
		if err := c.take(1, &x); err != nil {
			return nil, err
		}
		i, ok := plain(x).(starlark.Int)
		if !ok {
			return nil, fault.New("TypeError", "%s: want an integer, not %s", c.name, typeName(x))
		}
		if err := c.text(bits(i)); err != nil {
			return nil, err
		}
		digits := i.BigInt().Text(base)
		if rest, negative := strings.CutPrefix(digits, "-"); negative {
			return starlark.String("-" + prefix + rest), nil
		}
		return starlark.String(prefix + digits), nil
	}
}

func builtinHash(c *call) (starlark.Value, error) {
	var x starlark.Value
	if err := c.take(1, &x); err != nil {
		return nil, err
	}
	if err := c.hashable(x); err != nil {
		return nil, err
	}
	if s, ok := x.(starlark.String); ok {
		if err := c.scan(len(s)); err != nil {
			return nil, err
		}
		// Starlark's own hash of text differs from process to process.
		h := uint64(14695981039346656037)
		for i := range len(s) {
			h = (h ^ uint64(s[i])) * 1099511628211
		}
		return starlark.MakeInt64(int64(h)), nil
	}
	if t, ok := x.(starlark.Tuple); ok {
		return c.hashTuple(t)
	}
	h, err := x.Hash()
	return starlark.MakeInt64(int64(h)), c.typeError(err)
}

func (c *call) hashTuple(t starlark.Tuple) (starlark.Value, error) {
	h := int64(17)
	for _, e := range t {
		part := *c
		part.args = starlark.Tuple{e}
		v, err := builtinHash(&part)
		if err != nil {
			return nil, err
		}
		n, _ := v.(starlark.Int).Int64()
		h = h*1000003 ^ n
	}
	return starlark.MakeInt64(h), nil
}
