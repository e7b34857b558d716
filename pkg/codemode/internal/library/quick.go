package library

import (
	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

// operator is a hidden builtin of two operands. What loops do most often, reckoning with small integers and comparing plain values,
// takes a short way: it needs neither room nor charge beyond the call's own.
func (l *library) operator(op syntax.Token, f function) *starlark.Builtin {
	slow := l.builtin(op.String(), f)
	return starlark.NewBuiltin(op.String(), func(t *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		if v := quick(op, args[0], args[1]); v != nil {
			return v, nil
		}
		return slow.CallInternal(t, args, kwargs)
	})
}

// quick is x op y where that is quickly said, or else nil.
func quick(op syntax.Token, x, y starlark.Value) starlark.Value {
	switch a := x.(type) {
	case starlark.Int:
		if b, ok := y.(starlark.Int); ok {
			return quickInts(op, a, b)
		}
	case starlark.String:
		b, ok := y.(starlark.String)
		if !ok {
			return nil
		}
		switch op {
		case syntax.EQL:
			return starlark.Bool(a == b)
		case syntax.NEQ:
			return starlark.Bool(a != b)
		}
	}
	return nil
}

func quickInts(op syntax.Token, a, b starlark.Int) starlark.Value {
	i, small := a.Int64()
	j, small2 := b.Int64()
	const most = 1 << 31
	if !small || !small2 || i >= most || i <= -most || j >= most || j <= -most {
		return nil
	}
	switch op {
	case syntax.PLUS:
		return starlark.MakeInt64(i + j)
	case syntax.MINUS:
		return starlark.MakeInt64(i - j)
	case syntax.STAR:
		return starlark.MakeInt64(i * j)
	case syntax.EQL:
		return starlark.Bool(i == j)
	case syntax.NEQ:
		return starlark.Bool(i != j)
	case syntax.LT:
		return starlark.Bool(i < j)
	case syntax.LE:
		return starlark.Bool(i <= j)
	case syntax.GT:
		return starlark.Bool(i > j)
	case syntax.GE:
		return starlark.Bool(i >= j)
	case syntax.SLASHSLASH, syntax.PERCENT:
		if i >= 0 && j > 0 {
			if op == syntax.PERCENT {
				return starlark.MakeInt64(i % j)
			}
			return starlark.MakeInt64(i / j)
		}
	}
	return nil
}
