package dialect

import "slices"

// rounds bounds the search for whole numbers: what a chain of variables longer than that comes to is not found.
const rounds = 8

// findWhole tells which variables only ever hold integers, and no booleans: what all their assignments show. On those
// Starlark's own operators do as Python's, and are many times faster.
func (a *analysis) findWhole() {
	var all []*binding
	for _, u := range a.uses {
		if b := u.name.of; u.write && b != nil {
			if b.values == nil {
				all = append(all, b)
				b.whole = !b.param && !b.shadows
			}
			b.values = append(b.values, u.value)
		}
	}
	for range rounds {
		changed := false
		for _, b := range all {
			if !b.whole {
				continue
			}
			for _, x := range b.values {
				if !isWhole(x) {
					b.whole, changed = false, true
					break
				}
			}
		}
		if !changed {
			return
		}
	}
	for _, b := range all {
		b.whole = false
	}
}

// isWhole tells whether an expression can only be an integer that is no boolean.
func isWhole(x expr) bool {
	switch x := x.(type) {
	case *literal:
		return isInteger(x)
	case *nameExpr:
		return x.of != nil && x.of.whole
	case *unary:
		return x.op != "not" && isWhole(x.x)
	case *binary:
		switch x.op {
		case "+", "-", "*", "//", "%":
			return isWhole(x.x) && isWhole(x.y)
		}
	case *walrus:
		return isWhole(x.value)
	case *conditional:
		return isWhole(x.then) && isWhole(x.other)
	case *counted:
		return isWhole(x.target) && isWhole(x.value)
	case *call:
		return isCallOf(x, "len")
	case *element:
		if x.first {
			return isCallOf(x.of, "enumerate")
		}
		return isCallOf(x.of, "range")
	}
	return false
}

// A counted is what an augmented assignment gives its target. An element is what a loop gives its target.
type (
	counted struct{ *augmented }
	element struct {
		place
		of    expr
		first bool // of a pair that is the element
	}
)

// memberOf is what can be said of member i of a value that several targets get.
func memberOf(value expr, i int, targets []expr) expr {
	switch v := value.(type) {
	case *display:
		if v.open != '{' && len(v.items) == len(targets) && !slices.ContainsFunc(v.items, isStarred) && !slices.ContainsFunc(targets, isStarred) {
			return v.items[i]
		}
	case *element:
		if i == 0 && !v.first {
			return &element{of: v.of, first: true}
		}
	}
	return nil
}

func isInteger(x *literal) bool {
	switch x.value.(type) {
	case string, float64:
		return false
	}
	return true
}

// isCallOf tells whether an expression calls a built-in function of that name.
func isCallOf(x expr, name string) bool {
	c, ok := x.(*call)
	if !ok {
		return false
	}
	fn, ok := c.fn.(*nameExpr)
	return ok && fn.of == nil && fn.name == name
}

// mayFail tells whether what is called may be no function. A function that def made, or lambda, is one, and so are built-ins,
// while their names have no other value.
func mayFail(fn expr) bool {
	n, ok := fn.(*nameExpr)
	if !ok {
		b, builtin := fn.(*builtinExpr)
		return !builtin || notFunctions[b.name]
	}
	if n.of == nil {
		return notFunctions[n.name]
	}
	if n.of.param || n.of.shadows {
		return true
	}
	return slices.ContainsFunc(n.of.values, func(x expr) bool {
		switch x.(type) {
		case *def, *lambda:
			return false
		}
		return true
	})
}

// notFunctions are the built-in names that have other values.
var notFunctions = map[string]bool{"None": true, "True": true, "False": true, "json": true, "math": true, "re": true, "collections": true}
