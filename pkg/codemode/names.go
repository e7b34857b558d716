package codemode

import (
	"strings"
	"unicode"

	"github.com/openenv-go/openenv-go/pkg/codemode/internal/dialect"
)

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
	if dialect.IsKeyword(name) || name == "load" { // which is Starlark's
		name += "_"
	}
	return name
}

func isIdentifier(name string) bool { return name == identifier(name) }

// meant asks whether a name that is not there stands for one that is.
func meant(name string, among []string) string {
	if near := dialect.Nearest(name, among); len(near) > 0 {
		return " (did you mean " + dialect.Listed(near, "or") + "?)"
	}
	return ""
}
