package codemode

import (
	"slices"
	"strings"
	"unicode"
)

// keywords are those of Python and of Starlark.
var keywords = []string{
	"False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue", "def", "del", "elif", "else", "except",
	"finally", "for", "from", "global", "if", "import", "in", "is", "lambda", "load", "nonlocal", "not", "or", "pass", "raise", "return", "try",
	"while", "with", "yield",
}

// FunctionNames are the names by which code calls the tools, in their order: a tool's own with _ for each character that no
// identifier has, and _ at its end where it is a keyword or the name of a built-in function. It is "" where two tools would
// have one name; call_tool reaches those.
func FunctionNames(tools []Tool) []string {
	taken := (&run{}).builtins()
	all := universe()
	names := make([]string, len(tools))
	count := map[string]int{}
	for i, t := range tools {
		n := identifier(t.Name)
		if _, helper := taken[n]; helper || all.Has(n) || classes.Has(n) {
			n += "_"
		}
		names[i] = n
		count[n]++
	}
	for i, n := range names {
		if count[n] > 1 {
			names[i] = ""
		}
	}
	return names
}

// identifier makes a name one that code can spell.
func identifier(name string) string {
	name = strings.Map(func(c rune) rune {
		if c == '_' || unicode.IsLetter(c) || unicode.IsDigit(c) {
			return c
		}
		return '_'
	}, name)
	if name == "" || unicode.IsDigit([]rune(name)[0]) {
		name = "_" + name
	}
	if slices.Contains(keywords, name) {
		name += "_"
	}
	return name
}

func isIdentifier(name string) bool { return name == identifier(name) }

// nearest are up to three of the names that are most like one, the nearest first.
func nearest(name string, among []string) []string {
	type scored struct {
		name string
		off  int
	}
	var near []scored
	for _, n := range among {
		d := distance(strings.ToLower(name), strings.ToLower(n))
		if d <= max(len(name), len(n))/2 || strings.Contains(n, name) || strings.Contains(name, n) {
			near = append(near, scored{n, d})
		}
	}
	slices.SortStableFunc(near, func(a, b scored) int { return a.off - b.off })
	var names []string
	for _, s := range near[:min(3, len(near))] {
		names = append(names, s.name)
	}
	return names
}

// distance is how many letters must be changed, put in or left out to make one word of another.
func distance(a, b string) int {
	if len(a) > maxName || len(b) > maxName {
		return maxName
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := before
			if a[i] != b[j] {
				cost++
			}
			before = row[j+1]
			row[j+1] = min(cost, row[j+1]+1, row[j]+1)
		}
	}
	return row[len(b)]
}
