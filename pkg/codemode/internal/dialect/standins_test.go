package dialect_test

import (
	"errors"
	"fmt"
	"strings"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

// What follows stands in for the hidden built-ins: as little as shows what lowered code does.

type raised struct {
	class string
	value starlark.Value
}

func (r *raised) Error() string { return r.class }

type stopped struct{ value starlark.Value }

func (s *stopped) Error() string { return "stopped" }

type cell struct {
	name  string
	value starlark.Value
}

func (c *cell) String() string                         { return "cell" }
func (c *cell) Type() string                           { return "cell" }
func (c *cell) Freeze()                                {}
func (c *cell) Truth() starlark.Bool                   { return true }
func (c *cell) Hash() (uint32, error)                  { return 0, nil }
func (c *cell) Index(int) starlark.Value               { return c.value }
func (c *cell) Len() int                               { return 1 }
func (c *cell) SetIndex(_ int, v starlark.Value) error { c.value = v; return nil }

type signal struct {
	word  string
	value starlark.Value
}

func (s *signal) String() string        { return s.word }
func (s *signal) Type() string          { return "signal" }
func (s *signal) Freeze()               {}
func (s *signal) Truth() starlark.Bool  { return true }
func (s *signal) Hash() (uint32, error) { return 0, nil }

type builtin func(th *starlark.Thread, args starlark.Tuple) (starlark.Value, error)

func standins() starlark.StringDict {
	env := starlark.StringDict{"$BREAK": &signal{word: "break"}, "$CONTINUE": &signal{word: "continue"}}
	add := func(name string, f builtin) {
		env[name] = starlark.NewBuiltin(name, func(th *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
			return f(th, args)
		})
	}
	for name, op := range map[string]syntax.Token{
		"$add": syntax.PLUS, "$iadd": syntax.PLUS, "$sub": syntax.MINUS, "$mul": syntax.STAR, "$div": syntax.SLASH, "$floordiv": syntax.SLASHSLASH,
		"$mod": syntax.PERCENT, "$and": syntax.AMP, "$or": syntax.PIPE, "$ior": syntax.PIPE, "$xor": syntax.CIRCUMFLEX, "$lshift": syntax.LTLT,
		"$rshift": syntax.GTGT, "$in": syntax.IN, "$notin": syntax.NOT_IN,
	} {
		add(name, func(_ *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
			if list, ok := a[0].(*starlark.List); ok && name == "$iadd" {
				for _, v := range items(a[1]) {
					_ = list.Append(v)
				}
				return list, nil
			}
			return starlark.Binary(op, a[0], a[1])
		})
	}
	for name, op := range map[string]syntax.Token{
		"$eq": syntax.EQL, "$ne": syntax.NEQ, "$lt": syntax.LT, "$gt": syntax.GT, "$le": syntax.LE, "$ge": syntax.GE,
	} {
		add(name, func(_ *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
			yes, err := starlark.Compare(op, a[0], a[1])
			return starlark.Bool(yes), err
		})
	}
	for name, op := range map[string]syntax.Token{"$neg": syntax.MINUS, "$pos": syntax.PLUS, "$invert": syntax.TILDE} {
		add(name, func(_ *starlark.Thread, a starlark.Tuple) (starlark.Value, error) { return starlark.Unary(op, a[0]) })
	}
	for _, name := range []string{"$callee", "$generator"} {
		add(name, func(_ *starlark.Thread, a starlark.Tuple) (starlark.Value, error) { return a[0], nil })
	}
	add("$key", func(_ *starlark.Thread, a starlark.Tuple) (starlark.Value, error) { return a[0], nil })
	data(add)
	control(add)
	for _, class := range []string{"Exception", "ValueError", "KeyError", "AssertionError"} {
		add(class, func(_ *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
			return starlark.Tuple{starlark.String(class), append(a, starlark.String(""))[0]}, nil
		})
	}
	add("sum", func(_ *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
		total := starlark.Value(starlark.MakeInt(0))
		for _, v := range items(a[0]) {
			total, _ = starlark.Binary(syntax.PLUS, total, v)
		}
		return total, nil
	})
	return env
}

func items(v starlark.Value) (out []starlark.Value) {
	if s, ok := v.(starlark.String); ok {
		for _, r := range string(s) {
			out = append(out, starlark.String(r))
		}
		return out
	}
	for x := range starlark.Elements(v.(starlark.Iterable)) {
		out = append(out, x)
	}
	return out
}

func number(v starlark.Value) int {
	n, err := starlark.AsInt32(v)
	if err != nil {
		panic(err)
	}
	return n
}

func data(add func(string, builtin)) {
	for _, name := range []string{"$attr", "$method"} {
		add(name, func(_ *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
			return a[0].(starlark.HasAttrs).Attr(string(a[1].(starlark.String)))
		})
	}
	add("$index", func(_ *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
		if d, ok := a[0].(*starlark.Dict); ok {
			v, found, err := d.Get(a[1])
			if !found {
				return nil, &raised{"KeyError", a[1]}
			}
			return v, err
		}
		return a[0].(starlark.Indexable).Index(number(a[1])), nil
	})
	add("$slice", func(_ *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
		return starlark.String(fmt.Sprint(a[1:])), nil
	})
	add("$setindex", func(_ *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
		if d, ok := a[1].(*starlark.Dict); ok {
			return starlark.None, d.SetKey(a[2], a[0])
		}
		return starlark.None, a[1].(starlark.HasSetIndex).SetIndex(number(a[2]), a[0])
	})
	add("$del", func(_ *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
		_, _, err := a[0].(*starlark.Dict).Delete(a[1])
		return starlark.None, err
	})
	add("$pow", func(_ *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
		n := 1
		for range number(a[1]) {
			n *= number(a[0])
		}
		return starlark.MakeInt(n), nil
	})
	add("$is", func(_ *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
		return starlark.Bool(a[0] == a[1]), nil
	})
	add("$iter", func(_ *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
		return starlark.NewList(items(a[0])), nil
	})
	add("$fstring", func(_ *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
		var b strings.Builder
		for _, p := range a {
			b.WriteString(string(p.(starlark.String)))
		}
		return starlark.String(b.String()), nil
	})
	add("$format", func(_ *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
		text, isText := starlark.AsString(a[0])
		if !isText || a[1] == starlark.String("r") {
			text = a[0].String()
		}
		if spec := string(a[2].(starlark.String)); spec != "" {
			text += "<" + spec + ">"
		}
		return starlark.String(text), nil
	})
	add("$concat", func(_ *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
		var all []starlark.Value
		for _, l := range a {
			all = append(all, items(l)...)
		}
		return starlark.NewList(all), nil
	})
	add("$set", func(_ *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
		s := starlark.NewSet(0)
		for _, v := range items(a[0]) {
			if err := s.Insert(v); err != nil {
				return nil, err
			}
		}
		return s, nil
	})
	add("$dict", merged)
	add("$keywords", merged)
	add("$unpack", func(_ *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
		all, before, after := items(a[0]), number(a[1]), number(a[2])
		out := append(starlark.Tuple(nil), all[:before]...)
		out = append(out, starlark.NewList(append([]starlark.Value(nil), all[before:len(all)-after]...)))
		return append(out, all[len(all)-after:]...), nil
	})
}

func merged(_ *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
	d := starlark.NewDict(0)
	for _, from := range a {
		for _, kv := range from.(*starlark.Dict).Items() {
			if err := d.SetKey(kv[0], kv[1]); err != nil {
				return nil, err
			}
		}
	}
	return d, nil
}

func control(add func(string, builtin)) {
	add("$enter", func(*starlark.Thread, starlark.Tuple) (starlark.Value, error) { return starlark.True, nil })
	add("$cell", func(_ *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
		return &cell{name: a[0].String()}, nil
	})
	add("$get", func(_ *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
		if c := a[0].(*cell); c.value != nil {
			return c.value, nil
		}
		return nil, &raised{"NameError", starlark.None}
	})
	add("$store", func(_ *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
		a[0].(*cell).value = a[1]
		return a[1], nil
	})
	add("$unset", func(_ *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
		a[0].(*cell).value = nil
		return starlark.None, nil
	})
	add("$stop", func(_ *starlark.Thread, a starlark.Tuple) (starlark.Value, error) { return nil, &stopped{a[0]} })
	add("$raise", func(_ *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
		if len(a) == 0 {
			return nil, &raised{"again", starlark.None}
		}
		if e, ok := a[0].(starlark.Tuple); ok {
			return nil, &raised{string(e[0].(starlark.String)), e[1]}
		}
		return nil, &raised{a[0].(*starlark.Builtin).Name(), starlark.None}
	})
	add("$returned", func(_ *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
		return &signal{"return", a[0]}, nil
	})
	add("$isreturn", func(_ *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
		s, ok := a[0].(*signal)
		return starlark.Bool(ok && s.word == "return"), nil
	})
	add("$value", func(_ *starlark.Thread, a starlark.Tuple) (starlark.Value, error) { return a[0].(*signal).value, nil })
	add("$try", try)
}

func try(th *starlark.Thread, a starlark.Tuple) (v starlark.Value, err error) {
	v, err = starlark.Call(th, a[0], nil, nil)
	var r *raised
	switch {
	case errors.As(err, &r):
		for _, h := range a[1].(starlark.Tuple) {
			pair := h.(starlark.Tuple)
			if catches(pair[0], r.class) {
				v, err = starlark.Call(th, pair[1], starlark.Tuple{r.value}, nil)
				break
			}
		}
	case err == nil && v == starlark.None && a[2] != starlark.None:
		v, err = starlark.Call(th, a[2], nil, nil)
	}
	if a[3] != starlark.None {
		last, lastErr := starlark.Call(th, a[3], nil, nil)
		if lastErr != nil || last != starlark.None {
			return last, lastErr
		}
	}
	return v, err
}

func catches(classes starlark.Value, class string) bool {
	switch c := classes.(type) {
	case starlark.Tuple:
		for _, one := range c {
			if catches(one, class) {
				return true
			}
		}
		return false
	case *starlark.Builtin:
		return c.Name() == class || c.Name() == "Exception"
	}
	return true
}
