package codemode

import (
	"strings"
	"sync"

	"go.starlark.net/starlark"

	"github.com/openenv-go/openenv-go/pkg/codemode/internal/library"
)

// universe is what all code finds. Nothing changes it.
var universe = sync.OnceValue(library.Universe)

// literalOf is how a value is written in code, within the thread's limits.
func literalOf(t *starlark.Thread, v starlark.Value) (string, error) {
	s, err := library.Str(t, starlark.Tuple{v})
	return strings.TrimSuffix(strings.TrimPrefix(s, "("), ",)"), err
}
