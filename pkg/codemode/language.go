package codemode

import (
	"strings"
	"sync"

	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"

	"github.com/openenv-go/openenv-go/pkg/codemode/internal/library"
)

// universe is what all code finds. Nothing changes it.
var universe = sync.OnceValue(func() starlark.StringDict {
	u := library.Universe()
	for module, errs := range map[string]map[string]string{
		"json": {"JSONDecodeError": "JSONDecodeError"},
		"re":   {"error": "PatternError", "PatternError": "PatternError"},
	} {
		for name, c := range errs {
			u[module].(*starlarkstruct.Module).Members[name] = classes[c]
		}
	}
	return u
})

// literalOf is how a value is written in code, within the thread's limits.
func literalOf(t *starlark.Thread, v starlark.Value) (string, error) {
	s, err := library.Str(t, starlark.Tuple{v})
	return strings.TrimSuffix(strings.TrimPrefix(s, "("), ",)"), err
}
