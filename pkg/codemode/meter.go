package codemode

import (
	"fmt"
	"sync/atomic"

	"go.starlark.net/starlark"

	"github.com/openenv-go/openenv-go/pkg/codemode/internal/fault"
)

// A meter counts what a run takes and ends it. The thread's goroutine uses it; stop and ended may be called from any.
type meter struct {
	thread *starlark.Thread
	steps_ uint64 // at most
	memory int64
	levels int // of data in data
	frames int // of functions that are running
	cause  atomic.Pointer[error]
}
