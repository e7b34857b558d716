package library

import (
	"math"
	"math/big"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/openenv-go/openenv-go/pkg/codemode/internal/fault"
)

// integer asks for an integer of so many bits. As what is done with one takes more than its length, it asks for more room than it
// fills: whoever has 64 MiB has integers of up to a MiB.
func (c *call) integer(bits int) error { return c.meter.Room(times(bits, 8)) }

// toFloat is a number as a float.
func toFloat(v starlark.Value) (float64, error) {
	switch v := plain(v).(type) {
	case starlark.Float:
		return float64(v), nil
	case starlark.Int:
		f := float64(v.Float())
		if math.IsInf(f, 0) {
			return 0, fault.New("OverflowError", "the integer is too large for a float").Hinted("divide integers with //")
		}
		return f, nil
	}
	return 0, fault.New("TypeError", "want a number, not %s", typeName(v))
}

// arithmetic is x op y where x is a number.
func (c *call) arithmetic(op syntax.Token, x, y starlark.Value) (starlark.Value, error) {
	a, b := plain(x), plain(y)
	if op == syntax.AMP || op == syntax.PIPE || op == syntax.CIRCUMFLEX {
		if p, ok := x.(starlark.Bool); ok {
			if q, ok := y.(starlark.Bool); ok {
				return logic(op, bool(p), bool(q)), nil
			}
		}
	}
	switch b := b.(type) {
	case starlark.Int:
		if a, ok := a.(starlark.Int); ok {
			return c.integers(op, a, b)
		}
	case starlark.Float:
	case starlark.String:
		if _, whole := a.(starlark.Int); whole && op == syntax.STAR {
			return c.repeatText(b, a)
		}
		return nil, unsupported(op, x, y)
	case *starlark.List, starlark.Tuple:
		if k, whole := asIndex(a); whole && op == syntax.STAR {
			return c.repeatRow(y, k)
		}
		return nil, unsupported(op, x, y)
	default:
		return nil, unsupported(op, x, y)
	}
	switch op {
	case syntax.PLUS, syntax.MINUS, syntax.STAR, syntax.SLASH, syntax.SLASHSLASH, syntax.PERCENT, syntax.STARSTAR:
	default:
		return nil, unsupported(op, x, y)
	}
	f, err := toFloat(a)
	if err != nil {
		return nil, err
	}
	g, err := toFloat(b)
	if err != nil {
		return nil, err
	}
	return floats(op, f, g)
}

func logic(op syntax.Token, p, q bool) starlark.Bool {
	switch op {
	case syntax.AMP:
		return starlark.Bool(p && q)
	case syntax.PIPE:
		return starlark.Bool(p || q)
	}
	return starlark.Bool(p != q)
}

func byZero() error { return fault.New("ZeroDivisionError", "division by zero") }

func floats(op syntax.Token, f, g float64) (starlark.Value, error) {
	switch op {
	case syntax.PLUS:
		return starlark.Float(f + g), nil
	case syntax.MINUS:
		return starlark.Float(f - g), nil
	case syntax.STAR:
		return starlark.Float(f * g), nil
	case syntax.STARSTAR:
		return floatPower(f, g)
	}
	if g == 0 {
		return nil, byZero()
	}
	if op == syntax.SLASH {
		return starlark.Float(f / g), nil
	}
	quotient, rest := floatDivmod(f, g)
	if op == syntax.PERCENT {
		return starlark.Float(rest), nil
	}
	return starlark.Float(quotient), nil
}

// floatDivmod is f//g and f%g. The rest has the sign of g, and the quotient is that of f less the rest, as f/g rounds.
func floatDivmod(f, g float64) (quotient, rest float64) {
	rest = math.Mod(f, g)
	div := (f - rest) / g
	if rest == 0 {
		rest = math.Copysign(0, g)
	} else if (g < 0) != (rest < 0) {
		rest += g
		div--
	}
	if div == 0 {
		return math.Copysign(0, f/g), rest
	}
	quotient = math.Floor(div)
	if div-quotient > 0.5 {
		quotient++
	}
	return quotient, rest
}

func floatPower(f, g float64) (starlark.Value, error) {
	if f == 0 && g < 0 {
		return nil, fault.New("ZeroDivisionError", "0.0 cannot be raised to a negative power")
	}
	r := power(f, g)
	if math.IsNaN(r) && !math.IsNaN(f) && !math.IsNaN(g) {
		return nil, fault.New("ValueError", "a root of a negative number: there are no complex numbers")
	}
	if math.IsInf(r, 0) && !math.IsInf(f, 0) && !math.IsInf(g, 0) {
		return nil, fault.New("OverflowError", "the power is too large for a float")
	}
	return starlark.Float(r), nil
}

// power is f to the power of g, rounded once. (Go's own is off by a few units in the last place, which shows.)
func power(f, g float64) float64 {
	rough := math.Pow(f, g)
	if f-f != 0 || g-g != 0 || rough-rough != 0 || rough == 0 || f == 0 || math.Abs(g) > 1<<60 {
		return rough
	}
	const precision = 192
	float := func(x float64) *big.Float { return new(big.Float).SetPrec(precision).SetFloat64(x) }
	whole, fraction := math.Modf(math.Abs(g))
	result, square := float(1), float(f)
	for n := uint64(whole); n > 0; n >>= 1 {
		if n&1 != 0 {
			result.Mul(result, square)
		}
		square.Mul(square, square)
	}
	if fraction > 0 { // f is positive, or rough were no number
		for root := float(f); fraction > 0; {
			root.Sqrt(root)
			if fraction *= 2; fraction >= 1 {
				result.Mul(result, root)
				fraction--
			}
		}
	}
	if g < 0 {
		result.Quo(float(1), result)
	}
	if r, _ := result.Float64(); r-r == 0 {
		return r
	}
	return rough
}

func (c *call) integers(op syntax.Token, a, b starlark.Int) (starlark.Value, error) {
	n, m := bits(a), bits(b)
	switch op {
	case syntax.STARSTAR:
		return c.power(a, b)
	case syntax.SLASH:
		return quotient(a, b)
	case syntax.LTLT, syntax.GTGT:
		return c.shift(op, a, b)
	case syntax.SLASHSLASH, syntax.PERCENT:
		if b.Sign() == 0 {
			return nil, byZero()
		}
	case syntax.STAR:
		n, m = n+m, n+m
	}
	if n > 64 || m > 64 {
		if err := c.integer(max(n, m) + 1); err != nil {
			return nil, err
		}
		if err := c.heavy(max(n, m) / 64); err != nil {
			return nil, err
		}
	}
	v, err := starlark.Binary(op, a, b)
	return v, c.typeError(err)
}

// quotient is a/b, rounded once.
func quotient(a, b starlark.Int) (starlark.Value, error) {
	if b.Sign() == 0 {
		return nil, byZero()
	}
	const exact = 1 << 53
	if x, ok := a.Int64(); ok && -exact <= x && x <= exact {
		if y, ok := b.Int64(); ok && -exact <= y && y <= exact {
			return starlark.Float(float64(x) / float64(y)), nil
		}
	}
	f, _ := new(big.Rat).SetFrac(a.BigInt(), b.BigInt()).Float64()
	if math.IsInf(f, 0) {
		return nil, fault.New("OverflowError", "the quotient is too large for a float").Hinted("divide integers with //")
	}
	return starlark.Float(f), nil
}

func (c *call) shift(op syntax.Token, a, b starlark.Int) (starlark.Value, error) {
	if b.Sign() < 0 {
		return nil, fault.New("ValueError", "negative shift count")
	}
	k, _ := asIndex(b)
	n := bits(a)
	if op == syntax.GTGT {
		return a.Rsh(uint(min(k, n+1))), c.scan(n)
	}
	if a.Sign() == 0 {
		return a, nil
	}
	k = min(k, 1<<50)
	if err := c.integer(n + k); err != nil {
		return nil, err
	}
	return a.Lsh(uint(k)), c.scan(n + k)
}

func (c *call) power(a, b starlark.Int) (starlark.Value, error) {
	if b.Sign() < 0 {
		f, err := toFloat(a)
		if err != nil {
			return nil, err
		}
		g, err := toFloat(b)
		if err != nil {
			return nil, err
		}
		return floatPower(f, g)
	}
	base := a.BigInt()
	n := base.BitLen()
	if n <= 1 { // 0, 1 or -1
		if b.Sign() == 0 || n == 1 && (base.Sign() > 0 || b.BigInt().Bit(0) == 0) {
			return starlark.MakeInt(1), nil
		}
		return a, nil
	}
	k, _ := asIndex(b)
	n = times(n, k)
	if err := c.integer(n); err != nil {
		return nil, err
	}
	if err := c.heavy(n / 64); err != nil {
		return nil, err
	}
	return starlark.MakeBigInt(new(big.Int).Exp(base, b.BigInt(), nil)), nil
}

func builtinPow(c *call) (starlark.Value, error) {
	var x, y, mod starlark.Value
	if err := c.bind("base", &x, "exp", &y, "mod?", &mod); err != nil {
		return nil, err
	}
	if mod == nil || mod == starlark.None {
		return c.binary(syntax.STARSTAR, x, y)
	}
	a, ok1 := plain(x).(starlark.Int)
	b, ok2 := plain(y).(starlark.Int)
	m, ok3 := plain(mod).(starlark.Int)
	if !ok1 || !ok2 || !ok3 {
		return nil, fault.New("TypeError", "pow: with a modulus all arguments must be integers")
	}
	if m.Sign() == 0 {
		return nil, fault.New("ValueError", "pow: the modulus cannot be 0")
	}
	words := max(bits(a), bits(m)) / 64
	if err := c.step(times(bits(b), 1+words*words/8)); err != nil {
		return nil, err
	}
	if err := c.settle(); err != nil {
		return nil, err
	}
	r := new(big.Int).Exp(a.BigInt(), b.BigInt(), new(big.Int).Abs(m.BigInt()))
	if r == nil {
		return nil, fault.New("ValueError", "pow: the base has no inverse for the modulus")
	}
	if r.Sign() != 0 && m.Sign() < 0 {
		r.Add(r, m.BigInt())
	}
	return starlark.MakeBigInt(r), nil
}

func builtinDivmod(c *call) (starlark.Value, error) {
	var x, y starlark.Value
	if err := c.take(2, &x, &y); err != nil {
		return nil, err
	}
	switch plain(x).(type) {
	case starlark.Int, starlark.Float:
	default:
		return nil, fault.New("TypeError", "divmod: want two numbers, not %s and %s", typeName(x), typeName(y))
	}
	quotient, err := c.binary(syntax.SLASHSLASH, x, y)
	if err != nil {
		return nil, err
	}
	rest, err := c.binary(syntax.PERCENT, x, y)
	return starlark.Tuple{quotient, rest}, err
}

func builtinAbs(c *call) (starlark.Value, error) {
	var x starlark.Value
	if err := c.take(1, &x); err != nil {
		return nil, err
	}
	switch x := plain(x).(type) {
	case starlark.Float:
		return starlark.Float(math.Abs(float64(x))), nil
	case starlark.Int:
		if x.Sign() < 0 {
			return starlark.MakeInt(0).Sub(x), c.scan(bits(x) / 8)
		}
		return x, nil
	}
	return nil, fault.New("TypeError", "abs: want a number, not %s", typeName(x))
}
