package dialect

// A scope is where names are bound: the file, a function, a lambda, a comprehension, or an except with a name.
type scope struct {
	parent   *scope
	kind     scopeKind
	frame    *frame
	names    map[string]*binding
	order    []*binding
	declared map[string]string // global or nonlocal, by name
}

type scopeKind int

const (
	fileScope scopeKind = iota
	defScope
	lambdaScope
	comprehensionScope
	exceptScope
)

// A frame is a function of the lowered code, or its top level. A variable that more than its own frame writes is a cell.
type frame struct{ _ byte } // not empty, so that each has an address of its own

// A binding is a variable of the code.
type binding struct {
	name     string
	variable string // what the lowered code calls it
	own      *scope
	param    bool
	cell     bool
	shadows  bool   // a built-in of that name, which code may read before
	values   []expr // what is assigned to it; nil: anything
	whole    bool   // it holds nothing but integers
}

// A use is a name in the code, and where it stands.
type use struct {
	name  *nameExpr
	in    *scope
	frame *frame
	write bool
	cell  bool // it is written in a way that takes a cell
	value expr // what is written; nil: anything
}

// An analysis finds out whose each name is.
type analysis struct {
	names *names
	file  *scope
	in    *scope
	frame *frame
	uses  []use
	above []use // names declared global: what is meant may stand behind another of that name
	depth int
}

// analyse binds the names of a tree, and refuses unknown ones. It returns the scope of the file; others hang in the tree.
func analyse(tree []stmt, n *names) *scope {
	a := &analysis{names: n, frame: new(frame)}
	a.file = newScope(nil, fileScope, a.frame)
	a.in = a.file
	a.stmts(tree)
	a.resolve()
	return a.file
}

func newScope(parent *scope, k scopeKind, f *frame) *scope {
	return &scope{parent: parent, kind: k, frame: f, names: map[string]*binding{}, declared: map[string]string{}}
}

// within runs f in a new scope.
func (a *analysis) within(k scopeKind, f *frame, body func()) *scope {
	in, outside := a.in, a.frame
	a.in, a.frame = newScope(in, k, f), f
	own := a.in
	body()
	a.in, a.frame = in, outside
	return own
}

// part walks a block that is to be a function of its own, in the scope that it is in.
func (a *analysis) part(body []stmt) {
	outside := a.frame
	a.frame = new(frame)
	a.stmts(body)
	a.frame = outside
}

// bind returns the variable of a name in a scope, made if it is not there.
func (a *analysis) bind(s *scope, name string) *binding {
	b := s.names[name]
	if b == nil {
		b = &binding{name: name, variable: name, own: s}
		if s.kind == fileScope && a.names.known[name] {
			b.variable, b.shadows = Aside(name), true
		}
		s.names[name] = b
		s.order = append(s.order, b)
	}
	return b
}

// write notes that a name is assigned to where a is.
// The value is what can be said of it; nil: nothing.
func (a *analysis) write(n *nameExpr, cell bool, value expr) {
	s := a.in
	for s.kind == exceptScope && s.names[n.name] == nil {
		s = s.parent
	}
	switch s.declared[n.name] {
	case "":
		a.bind(s, n.name)
	case "global":
		a.bind(a.file, n.name)
	}
	a.uses = append(a.uses, use{n, a.in, a.frame, true, cell, value})
}

func (a *analysis) read(n *nameExpr) {
	a.uses = append(a.uses, use{n, a.in, a.frame, false, false, nil})
}

// walrus notes an assignment in an expression, which goes to the function around comprehensions.
func (a *analysis) walrus(w *walrus) {
	in := a.in
	defer func() { a.in = in }()
	for a.in.kind == comprehensionScope {
		if a.in.names[w.target.name] != nil {
			w.failHint("use another name", ":= cannot assign to %s, over which the comprehension runs", w.target.name)
		}
		a.in = a.in.parent
	}
	if a.in.kind == lambdaScope {
		w.failHint("write a function with def", "no := in a lambda")
	}
	a.write(w.target, true, w.value)
}

// outer notes global and nonlocal.
func (a *analysis) outer(s *outer) {
	in := a.in
	for in.kind == exceptScope {
		in = in.parent
	}
	for _, n := range s.names {
		switch {
		case in.kind == fileScope && s.word == "nonlocal":
			s.failHint("leave it out", "nonlocal at top level")
		case in.kind == fileScope:
			continue
		case in.names[n.name] != nil:
			n.failHint("write it first in the function", "%s is used before it is declared %s", n.name, s.word)
		}
		in.declared[n.name] = s.word
		if s.word == "global" {
			a.bind(a.file, n.name)
			a.above = append(a.above, use{name: n, in: in})
			continue
		}
		a.uses = append(a.uses, use{n, in, a.frame, true, false, nil})
	}
}

// Aside is what a global is called whose own name means something else to Starlark: a built-in, or a variable of a function
// that stands between it and its use.
func Aside(name string) string { return name + " " }

// stepAside renames globals that functions declare inside others which have variables of that name.
func (a *analysis) stepAside() {
	for _, u := range a.above {
		for s := u.in.parent; s != a.file; s = s.parent {
			if s.names[u.name.name] != nil {
				a.file.names[u.name.name].variable = Aside(u.name.name)
			}
		}
	}
}

// resolve binds all uses, now that all names are known, and tells which variables are cells.
func (a *analysis) resolve() {
	a.stepAside()
	for _, u := range a.uses {
		b := a.lookup(u.in, u.name.name)
		switch {
		case b == nil:
			if u.write || !a.names.known[u.name.name] {
				a.names.unknown(u)
			}
			continue
		case u.write && (u.cell || u.frame != b.own.frame):
			b.cell = true
		}
		u.name.of = b
	}
	a.names.report()
	a.findWhole()
}

// lookup finds a variable by name from a scope outwards.
func (a *analysis) lookup(s *scope, name string) *binding {
	for ; s != nil; s = s.parent {
		switch s.declared[name] {
		case "global":
			return a.file.names[name]
		case "nonlocal":
			return a.nonlocal(s.parent, name)
		}
		if b := s.names[name]; b != nil {
			return b
		}
	}
	return nil
}

// nonlocal finds a variable of the functions around.
func (a *analysis) nonlocal(s *scope, name string) *binding {
	for ; s != nil && s.kind != fileScope; s = s.parent {
		if s.declared[name] == "global" {
			return nil
		}
		if b := s.names[name]; b != nil && s.declared[name] == "" {
			return b
		}
	}
	return nil
}
