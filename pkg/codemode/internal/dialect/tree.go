package dialect

// An expr is an expression of Python. Its place is its first character.
type expr interface{ at() place }

type (
	nameExpr struct {
		place
		name string
		of   *binding // nil: a built-in, once the scopes are known
	}
	builtinExpr struct { // None, True, False, and what the parser itself refers to
		place
		name string
	}
	literal struct {
		place
		value any // string, int64, *big.Int or float64
	}
	fstring struct {
		place
		parts []part
	}
	display struct { // ( [ or {
		place
		open  byte
		items []expr
	}
	dictDisplay struct {
		place
		keys, values []expr // a key that is nil: **value
	}
	unary struct {
		place
		op string
		x  expr
	}
	binary struct { // and, or included
		place
		op   string
		opAt place
		x, y expr
	}
	comparison struct {
		place
		first expr
		rest  []compared
	}
	compared struct {
		op   string // with is, is not, in, not in
		opAt place
		x    expr
	}
	conditional struct {
		place
		test, then, other expr
	}
	lambda struct {
		place
		params []param
		body   expr
	}
	comprehension struct { // (, [ or {, with a key or without
		place
		open       byte
		key, value expr
		clauses    []clause
	}
	clause struct {
		place
		target expr // nil: if
		x      expr
	}
	call struct {
		place
		fn     expr
		nameAt place
		args   []arg
	}
	arg struct {
		place
		name  string // "": by position
		stars int
		value expr
	}
	attribute struct {
		place
		x      expr
		name   string
		nameAt place
	}
	index struct {
		place
		x, i   expr
		lbrack place
	}
	slice struct { // only as the i of an index
		place
		lo, hi, step expr
	}
	starred struct {
		place
		x expr
	}
	walrus struct {
		place
		target *nameExpr
		value  expr
	}
)

// A param is a parameter of a function. A bare * has no name.
type param struct {
	place
	name  *nameExpr
	stars int
	value expr // its default
}

// A stmt is a statement of Python.
type stmt interface{ at() place }

type (
	exprStmt struct {
		place
		x expr
	}
	assign struct {
		place
		targets []expr
		value   expr
	}
	augmented struct {
		place
		target expr
		op     string // without =
		opAt   place
		value  expr
	}
	branch struct { // pass, break or continue
		place
		word string
	}
	returnStmt struct {
		place
		value expr
	}
	raiseStmt struct {
		place
		x expr
	}
	delStmt struct {
		place
		targets []expr
	}
	ifStmt struct {
		place
		arms  []arm
		other []stmt
	}
	arm struct {
		place
		test expr
		body []stmt
	}
	loop struct {
		place
		target expr // nil: while
		x      expr
		body   []stmt
		other  []stmt
	}
	def struct {
		place
		name   *nameExpr
		params []param
		body   []stmt
		own    *scope
	}
	try struct {
		place
		body            []stmt
		handlers        []handler
		other, finally  []stmt
		otherAt, lastAt place
	}
	handler struct {
		place
		classes expr
		name    *nameExpr
		body    []stmt
		own     *scope
	}
	outer struct { // global or nonlocal
		place
		word  string
		names []*nameExpr
	}
)
