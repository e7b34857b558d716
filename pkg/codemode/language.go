package codemode

import (
	sjson "go.starlark.net/lib/json"
	"go.starlark.net/lib/math"
	"go.starlark.net/starlark"
)

func universe() starlark.StringDict {
	u := starlark.StringDict{"json": sjson.Module, "math": math.Module}
	for n, v := range starlark.Universe {
		u[n] = v
	}
	return u
}

// text is str() of a value.
func text(v starlark.Value) string {
	if s, ok := starlark.AsString(v); ok {
		return s
	}
	return v.String()
}

// repr is a value as it is written.
func repr(v starlark.Value) string { return v.String() }

// text is str() of a value, within what the run may hold.
func (r *run) text(v starlark.Value) (string, error) { return text(v), nil }
