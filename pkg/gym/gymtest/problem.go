package gymtest

import (
	"strings"

	"github.com/google/go-cmp/cmp"
)

// A problem is one thing that is wrong with the environment.
type problem struct {
	key  string // the same for one fault seen by two checks; "": seen by one only
	text string // what is wrong and what to do, for the author
}

// difference is a diff of what should have been the same.
func difference(a, b any) string {
	return indent(strings.TrimSpace(cmp.Diff(a, b)))
}

// indent sets text off from the sentences around it. cmp.Diff writes some spaces as others, at random, so that nobody
// reads it by machine; here people read it, and tests look for words.
func indent(text string) string {
	text = strings.ReplaceAll(text, "\u00a0", " ")
	return "    " + strings.ReplaceAll(text, "\n", "\n    ")
}
