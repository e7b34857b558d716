package library

import (
	"math"
	"math/big"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/openenv-go/openenv-go/pkg/codemode/internal/fault"
)

// whole is an argument that must be an integer.
func (c *call) whole(v starlark.Value) (starlark.Int, error) {
	if i, ok := plain(v).(starlark.Int); ok {
		return i, nil
	}
	return starlark.Int{}, fault.New("TypeError", "%s: want an integer, not %s", c.name, typeName(v)).Hinted("write int(…)")
}

func mathGCD(c *call) (starlark.Value, error) {
	return c.foldInts(starlark.MakeInt(0), func(a, b *big.Int) (*big.Int, error) {
		return new(big.Int).GCD(nil, nil, a, b), nil
	})
}

func mathLCM(c *call) (starlark.Value, error) {
	return c.foldInts(starlark.MakeInt(1), func(a, b *big.Int) (*big.Int, error) {
		if a.Sign() == 0 || b.Sign() == 0 {
			return new(big.Int), nil
		}
		if err := c.integer(a.BitLen() + b.BitLen()); err != nil {
			return nil, err
		}
		g := new(big.Int).GCD(nil, nil, a, b)
		return g.Mul(a, new(big.Int).Div(b, g)), nil
	})
}

func (c *call) foldInts(start starlark.Int, f func(a, b *big.Int) (*big.Int, error)) (starlark.Value, error) {
	if len(c.kwargs) > 0 {
		return nil, c.take(0)
	}
	acc := start.BigInt()
	for _, v := range c.args {
		i, err := c.whole(v)
		if err != nil {
			return nil, err
		}
		b := i.BigInt()
		words := max(acc.BitLen(), b.BitLen()) / 64
		if err := c.step(1 + times(words, words)); err != nil {
			return nil, err
		}
		if acc, err = f(acc, b.Abs(b)); err != nil {
			return nil, err
		}
	}
	return starlark.MakeBigInt(acc), nil
}

// small is an argument that must be an integer from 0.
func (c *call) small(v starlark.Value) (int, error) {
	i, err := c.whole(v)
	if err != nil {
		return 0, err
	}
	n, _ := asIndex(i)
	if n < 0 {
		return 0, fault.New("ValueError", "%s: %s is negative", c.name, Repr(v))
	}
	return n, nil
}

func mathFactorial(c *call) (starlark.Value, error) {
	var x starlark.Value
	if err := c.take(1, &x); err != nil {
		return nil, err
	}
	n, err := c.small(x)
	if err != nil {
		return nil, err
	}
	return c.ascending(1, n)
}

// ascending is the product of the integers from lo to hi.
func (c *call) ascending(lo, hi int) (starlark.Value, error) {
	size := times(hi-lo+1, 1+int(math.Log2(float64(max(hi, 1)))))
	if err := c.integer(size); err != nil {
		return nil, err
	}
	if err := c.heavy(size / 16); err != nil {
		return nil, err
	}
	if hi < lo {
		return starlark.MakeInt(1), nil
	}
	return starlark.MakeBigInt(new(big.Int).MulRange(int64(lo), int64(hi))), nil
}

func mathPerm(c *call) (starlark.Value, error) {
	var x, y starlark.Value
	if err := c.take(1, &x, &y); err != nil {
		return nil, err
	}
	n, err := c.small(x)
	if err != nil {
		return nil, err
	}
	k := n
	if y != nil && y != starlark.None {
		if k, err = c.small(y); err != nil {
			return nil, err
		}
	}
	if k > n {
		return starlark.MakeInt(0), nil
	}
	return c.ascending(n-k+1, n)
}

func mathComb(c *call) (starlark.Value, error) {
	var x, y starlark.Value
	if err := c.take(2, &x, &y); err != nil {
		return nil, err
	}
	n, err := c.small(x)
	if err != nil {
		return nil, err
	}
	k, err := c.small(y)
	if err != nil {
		return nil, err
	}
	if k > n {
		return starlark.MakeInt(0), nil
	}
	k = min(k, n-k)
	top, err := c.ascending(n-k+1, n)
	if err != nil {
		return nil, err
	}
	bottom, err := c.ascending(1, k)
	if err != nil {
		return nil, err
	}
	return c.binary(syntax.SLASHSLASH, top, bottom)
}

func mathIsqrt(c *call) (starlark.Value, error) {
	var x starlark.Value
	if err := c.take(1, &x); err != nil {
		return nil, err
	}
	i, err := c.whole(x)
	if err != nil {
		return nil, err
	}
	if i.Sign() < 0 {
		return nil, fault.New("ValueError", "math.isqrt: %s is negative", Repr(x))
	}
	if err := c.heavy(8 * bits(i) / 64); err != nil {
		return nil, err
	}
	return starlark.MakeBigInt(new(big.Int).Sqrt(i.BigInt())), nil
}
