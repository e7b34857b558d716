package dialect

import (
	"cmp"
	"slices"
	"strings"
)

// names are what code may use beside its own, and what to say of others.
type names struct {
	known map[string]bool
	o     Options
	code  *code
	first *use // unknown, in the order of the source

	inside map[string]string // what functions have names that they bind, and except
}

func newNames(c *code, o Options) *names {
	n := &names{known: make(map[string]bool, len(o.Known)), o: o, code: c, inside: map[string]string{}}
	for _, name := range o.Known {
		n.known[name] = true
	}
	return n
}

// unknown notes a name that nothing binds.
func (n *names) unknown(u use) {
	if n.first == nil || u.name.before(n.first.name.place) {
		n.first = &u
	}
}

// report refuses the first unknown name.
func (n *names) report() {
	if n.first == nil {
		return
	}
	name := n.first.name
	if n.first.write {
		name.failHint("assign to it in a function around this one, or write global", "nonlocal: no function around has %s", name.name)
	}
	name.failHint(n.hint(n.first), "undefined: %s", name.name)
}

func (n *names) hint(u *use) string {
	name := u.name.name
	if h := n.published(u.name); h != "" {
		return h
	}
	for _, hints := range []map[string]string{n.o.Refused, refused, modules} {
		if h, ok := hints[name]; ok {
			return h
		}
	}
	hint := ""
	if where := n.inside[name]; where != "" {
		return "it is a variable of " + where + " only: return it from there, or set it outside"
	} else if near := Nearest(name, n.visible(u.in)); near != nil {
		hint = "did you mean " + Listed(near, "or") + "?"
	} else if strings.ToUpper(name) == name {
		hint = "set it first, or put text in quotes"
	} else {
		hint = "set it first"
	}
	if strings.HasPrefix(n.rest(u.name), name+"(") {
		hint = strings.TrimPrefix(hint+" list_tools() lists the tools", "set it first ")
	}
	return hint
}

// rest is the line of the source from a name on.
func (n *names) rest(at *nameExpr) string {
	line := []rune(n.code.lines[at.line-1])
	return string(line[min(int(at.col)-1, len(line)):])
}

// published tells the function of a tool whose published name, which is no name of Python, stands in the code.
func (n *names) published(at *nameExpr) string {
	rest := plain(n.rest(at))
	best := ""
	for name := range n.o.Functions {
		if strings.HasPrefix(rest, plain(name)) && len(name) > len(best) && len(name) > len(at.name) {
			best = name
		}
	}
	if best == "" {
		return ""
	}
	return "the function of the tool " + best + " is " + n.o.Functions[best]
}

// plain is text with _ for what may part the words of a tool's name.
func plain(text string) string {
	return strings.NewReplacer("-", "_", ".", "_", "/", "_", ":", "_").Replace(text)
}

// visible are the names that could stand in a scope.
func (n *names) visible(s *scope) []string {
	all := map[string]bool{}
	for name := range n.known {
		all[name] = true
	}
	for ; s != nil; s = s.parent {
		for name := range s.names {
			all[name] = true
		}
	}
	var out []string
	for name := range all {
		if !strings.HasPrefix(name, "$") {
			out = append(out, name)
		}
	}
	return out
}

// Nearest are up to three names that are not much different from name, the nearest first.
func Nearest(name string, among []string) []string {
	type candidate struct {
		name     string
		distance int
	}
	var found []candidate
	for _, c := range among {
		if d := distance(strings.ToLower(name), strings.ToLower(c)); d <= max(len(name)/2, 1) && d < len(name) {
			found = append(found, candidate{c, d})
		}
	}
	slices.SortFunc(found, func(a, b candidate) int { return cmp.Or(a.distance-b.distance, strings.Compare(a.name, b.name)) })
	var out []string
	for i, c := range found {
		if i < 3 && c.distance <= found[0].distance+1 {
			out = append(out, c.name)
		}
	}
	return out
}

// distance is how many letters must be put in, left out or changed to make b of a.
func distance(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return len(a) + len(b)
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			d := diagonal
			if a[i] != b[j] {
				d = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], d
		}
	}
	return row[len(b)]
}

// Listed joins words as a sentence does.
func Listed(words []string, last string) string {
	switch n := len(words); n {
	case 0:
		return "none"
	case 1:
		return words[0]
	default:
		return strings.Join(words[:n-1], ", ") + " " + last + " " + words[n-1]
	}
}
