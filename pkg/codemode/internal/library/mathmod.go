package library

import (
	"math"
	"math/big"

	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"
	"go.starlark.net/syntax"

	"github.com/openenv-go/openenv-go/pkg/codemode/internal/fault"
)

func (l *library) math() *starlarkstruct.Module {
	m := starlark.StringDict{
		"e": starlark.Float(math.E), "pi": starlark.Float(math.Pi), "tau": starlark.Float(2 * math.Pi),
		"inf": starlark.Float(math.Inf(1)), "nan": starlark.Float(math.NaN()),
	}
	for name, f := range map[string]func(float64) float64{
		"acos": math.Acos, "acosh": math.Acosh, "asin": math.Asin, "asinh": math.Asinh, "atan": math.Atan, "atanh": math.Atanh,
		"cbrt": math.Cbrt, "cos": math.Cos, "cosh": math.Cosh, "erf": math.Erf, "erfc": math.Erfc, "exp": math.Exp, "exp2": math.Exp2,
		"expm1": math.Expm1, "fabs": math.Abs, "gamma": gamma, "lgamma": lgamma, "log1p": math.Log1p, "sin": math.Sin,
		"sinh": math.Sinh, "sqrt": math.Sqrt, "tan": math.Tan, "tanh": math.Tanh,
		"degrees": func(x float64) float64 { return x * (180 / math.Pi) },
		"radians": func(x float64) float64 { return x * (math.Pi / 180) },
	} {
		m[name] = l.builtin("math."+name, func(c *call) (starlark.Value, error) { return c.real(f) })
	}
	for name, f := range map[string]func(x, y float64) float64{
		"atan2": math.Atan2, "copysign": math.Copysign, "fmod": math.Mod, "mod": math.Mod, "pow": power, "remainder": math.Remainder,
		"nextafter": math.Nextafter,
	} {
		m[name] = l.builtin("math."+name, func(c *call) (starlark.Value, error) { return c.reals(f) })
	}
	for name, f := range map[string]function{
		"ceil": rounding(math.Ceil), "floor": rounding(math.Floor), "trunc": rounding(math.Trunc), "round": builtinRound,
		"log": mathLog, "log2": mathLogOf(2), "log10": mathLogOf(10), "isnan": classify(math.IsNaN),
		"isinf":    classify(func(f float64) bool { return math.IsInf(f, 0) }),
		"isfinite": classify(func(f float64) bool { return f-f == 0 }), "isclose": mathIsClose, "fsum": mathFsum, "prod": mathProd,
		"hypot": mathHypot, "dist": mathDist, "modf": mathModf, "frexp": mathFrexp, "ldexp": mathLdexp, "gcd": mathGCD, "lcm": mathLCM,
		"factorial": mathFactorial, "comb": mathComb, "perm": mathPerm, "isqrt": mathIsqrt, "sumprod": mathSumProd,
	} {
		m[name] = l.builtin("math."+name, f)
	}
	return &starlarkstruct.Module{Name: "math", Members: m}
}

// gamma is not defined for integers that are not positive.
func gamma(x float64) float64 {
	if x <= 0 && x == math.Floor(x) {
		return math.NaN()
	}
	return math.Gamma(x)
}

func lgamma(x float64) float64 {
	if x <= 0 && x == math.Floor(x) && !math.IsInf(x, 0) {
		return math.NaN()
	}
	y, _ := math.Lgamma(x)
	return y
}

// numbers are arguments of a function of floats.
func (c *call) numbers(n int) ([]float64, error) {
	if len(c.kwargs) > 0 || len(c.args) != n {
		return nil, fault.New("TypeError", "%s: want %d arguments, not %d", c.name, n, len(c.args)+len(c.kwargs))
	}
	xs := make([]float64, n)
	for i, v := range c.args {
		x, err := c.number(v)
		if err != nil {
			return nil, err
		}
		xs[i] = x
	}
	return xs, nil
}

func (c *call) number(v starlark.Value) (float64, error) {
	switch plain(v).(type) {
	case starlark.Int, starlark.Float:
		return toFloat(v)
	}
	e := fault.New("TypeError", "%s: want a number, not %s", c.name, typeName(v))
	if _, text := v.(starlark.String); text {
		return 0, e.Hinted("make a number of the text first: float(x)")
	}
	return 0, e
}

// checked refuses what is no number, or too large, unless an argument was so.
func (c *call) checked(y float64, xs ...float64) (starlark.Value, error) {
	finite := true
	for _, x := range xs {
		if math.IsNaN(x) {
			return starlark.Float(y), nil
		}
		finite = finite && !math.IsInf(x, 0)
	}
	if math.IsNaN(y) {
		return nil, fault.New("ValueError", "%s: math domain error: there is no result for %s", c.name, floatText(xs[0]))
	}
	if math.IsInf(y, 0) && finite {
		switch c.name {
		case "math.degrees":
			return starlark.Float(y), nil
		case "math.atanh", "math.log1p":
			return nil, fault.New("ValueError", "%s: math domain error: there is no result for %s", c.name, floatText(xs[0]))
		case "math.pow":
			if xs[0] == 0 {
				return nil, fault.New("ValueError", "%s: math domain error: 0 has no negative power", c.name)
			}
		}
		return nil, fault.New("OverflowError", "%s: the result is too large", c.name)
	}
	return starlark.Float(y), nil
}

func (c *call) real(f func(float64) float64) (starlark.Value, error) {
	xs, err := c.numbers(1)
	if err != nil {
		return nil, err
	}
	return c.checked(f(xs[0]), xs...)
}

func (c *call) reals(f func(x, y float64) float64) (starlark.Value, error) {
	xs, err := c.numbers(2)
	if err != nil {
		return nil, err
	}
	return c.checked(f(xs[0], xs[1]), xs...)
}

// rounding is floor, ceil and trunc, which give integers.
func rounding(f func(float64) float64) function {
	return func(c *call) (starlark.Value, error) {
		var x starlark.Value
		if err := c.take(1, &x); err != nil {
			return nil, err
		}
		if i, ok := plain(x).(starlark.Int); ok {
			return i, nil
		}
		y, err := c.number(x)
		if err != nil {
			return nil, err
		}
		return truncate(f(y))
	}
}

func classify(is func(float64) bool) function {
	return func(c *call) (starlark.Value, error) {
		xs, err := c.numbers(1)
		if err != nil {
			return nil, err
		}
		return starlark.Bool(is(xs[0])), nil
	}
}

// logOf is the natural logarithm of a positive number, of large integers too.
func (c *call) logOf(v starlark.Value, ln func(float64) float64) (float64, error) {
	if i, ok := plain(v).(starlark.Int); ok && i.Sign() > 0 && bits(i) > 1000 {
		k := bits(i) - 64
		top, err := toFloat(i.Rsh(uint(k)))
		return ln(top) + float64(k)*ln(2), err
	}
	x, err := c.number(v)
	if err != nil {
		return 0, err
	}
	if x <= 0 {
		return 0, fault.New("ValueError", "%s: math domain error: there is no logarithm of %s", c.name, Repr(v))
	}
	return ln(x), nil
}

func mathLog(c *call) (starlark.Value, error) {
	var x, base starlark.Value
	if err := c.take(1, &x, &base); err != nil {
		return nil, err
	}
	y, err := c.logOf(x, math.Log)
	if err != nil || base == nil {
		return starlark.Float(y), err
	}
	b, err := c.logOf(base, math.Log)
	if err == nil && b == 0 {
		err = byZero()
	}
	return starlark.Float(y / b), err
}

func mathLogOf(base int) function {
	ln := math.Log10
	if base == 2 {
		ln = math.Log2
	}
	return func(c *call) (starlark.Value, error) {
		var x starlark.Value
		if err := c.take(1, &x); err != nil {
			return nil, err
		}
		y, err := c.logOf(x, ln)
		return starlark.Float(y), err
	}
}

func mathIsClose(c *call) (starlark.Value, error) {
	var a, b starlark.Value
	var rel, abs starlark.Value = starlark.Float(1e-9), starlark.Float(0)
	if err := c.bind("a", &a, "b", &b, "rel_tol?", &rel, "abs_tol?", &abs); err != nil {
		return nil, err
	}
	part := *c
	part.args, part.kwargs = starlark.Tuple{a, b, rel, abs}, nil
	x, err := part.numbers(4)
	if err != nil {
		return nil, err
	}
	if x[2] < 0 || x[3] < 0 {
		return nil, fault.New("ValueError", "math.isclose: a tolerance is negative")
	}
	if x[0] == x[1] {
		return starlark.True, nil
	}
	d := math.Abs(x[0] - x[1])
	if math.IsInf(d, 0) {
		return starlark.False, nil
	}
	return starlark.Bool(d <= x[2]*math.Abs(x[0]) || d <= x[2]*math.Abs(x[1]) || d <= x[3]), nil
}

// mathFsum adds floats without loss, and rounds once.
func mathFsum(c *call) (starlark.Value, error) {
	var x starlark.Value
	if err := c.take(1, &x); err != nil {
		return nil, err
	}
	exact, special := new(big.Float).SetPrec(2200), 0.0
	err := c.each(x, func(v starlark.Value) error {
		f, err := c.number(v)
		if err != nil {
			return err
		}
		if f-f != 0 {
			special += f
			return nil
		}
		exact.Add(exact, new(big.Float).SetFloat64(f))
		return c.step(3)
	})
	if err != nil || special != 0 {
		return starlark.Float(special), err
	}
	f, _ := exact.Float64()
	if math.IsInf(f, 0) {
		return nil, fault.New("OverflowError", "math.fsum: the sum is too large")
	}
	return starlark.Float(f), nil
}

func mathProd(c *call) (starlark.Value, error) {
	var x starlark.Value
	product := starlark.Value(starlark.MakeInt(1))
	if err := c.bind("iterable", &x, "start?", &product); err != nil {
		return nil, err
	}
	err := c.each(x, func(v starlark.Value) (err error) {
		product, err = c.binary(syntax.STAR, product, v)
		return err
	})
	return product, err
}

func mathSumProd(c *call) (starlark.Value, error) {
	var x, y starlark.Value
	if err := c.take(2, &x, &y); err != nil {
		return nil, err
	}
	a, err := c.collect(x)
	if err != nil {
		return nil, err
	}
	b, err := c.collect(y)
	if err != nil {
		return nil, err
	}
	if len(a) != len(b) {
		return nil, fault.New("ValueError", "math.sumprod: the arguments have different lengths")
	}
	total := starlark.Value(starlark.MakeInt(0))
	for i := range a {
		p, err := c.binary(syntax.STAR, a[i], b[i])
		if err != nil {
			return nil, err
		}
		if total, err = c.binary(syntax.PLUS, total, p); err != nil {
			return nil, err
		}
	}
	return total, nil
}

func mathHypot(c *call) (starlark.Value, error) {
	xs, err := c.numbers(len(c.args))
	if err != nil {
		return nil, err
	}
	return c.norm(xs)
}

func (c *call) norm(xs []float64) (starlark.Value, error) {
	h := 0.0
	for _, x := range xs {
		if err := c.step(1); err != nil {
			return nil, err
		}
		h = math.Hypot(h, x)
	}
	return c.checked(h, append(xs, 0)...)
}

func mathDist(c *call) (starlark.Value, error) {
	var p, q starlark.Value
	if err := c.take(2, &p, &q); err != nil {
		return nil, err
	}
	a, err := c.collect(p)
	if err != nil {
		return nil, err
	}
	b, err := c.collect(q)
	if err != nil {
		return nil, err
	}
	if len(a) != len(b) {
		return nil, fault.New("ValueError", "math.dist: the points have different dimensions")
	}
	ds := make([]float64, len(a))
	for i := range a {
		x, err := c.number(a[i])
		if err != nil {
			return nil, err
		}
		y, err := c.number(b[i])
		if err != nil {
			return nil, err
		}
		ds[i] = x - y
	}
	return c.norm(ds)
}

func mathModf(c *call) (starlark.Value, error) {
	xs, err := c.numbers(1)
	if err != nil {
		return nil, err
	}
	whole, fraction := math.Modf(xs[0])
	if math.IsInf(xs[0], 0) {
		fraction = math.Copysign(0, xs[0])
	}
	return starlark.Tuple{starlark.Float(math.Copysign(fraction, xs[0])), starlark.Float(whole)}, nil
}

func mathFrexp(c *call) (starlark.Value, error) {
	xs, err := c.numbers(1)
	if err != nil {
		return nil, err
	}
	fraction, exponent := math.Frexp(xs[0])
	return starlark.Tuple{starlark.Float(fraction), starlark.MakeInt(exponent)}, nil
}

func mathLdexp(c *call) (starlark.Value, error) {
	var x, e starlark.Value
	if err := c.take(2, &x, &e); err != nil {
		return nil, err
	}
	f, err := c.number(x)
	if err != nil {
		return nil, err
	}
	n, err := c.index(e, "the exponent")
	if err != nil {
		return nil, err
	}
	return c.checked(math.Ldexp(f, max(-5000, min(n, 5000))), f)
}
