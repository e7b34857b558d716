package codemode

import (
	"fmt"
	"sync/atomic"

	"go.starlark.net/starlark"

	"github.com/openenv-go/openenv-go/pkg/codemode/internal/fault"
)

// A meter counts what a run takes, and ends it. It belongs to the goroutine of the thread, save stop and ended.
type meter struct {
	thread *starlark.Thread
	limits Limits
	cause  atomic.Pointer[error] // why the run is over; set once
}

func newMeter(l Limits) *meter {
	m := &meter{thread: new(starlark.Thread), limits: l}
	m.thread.SetMaxExecutionSteps(l.Steps)
	m.thread.OnMaxSteps = func(*starlark.Thread) { m.stop(m.tooManySteps()) }
	m.thread.Print = func(*starlark.Thread, string) {} // the library's print is ours
	fault.Install(m.thread, m)
	return m
}

// stop ends the run with err: the code fails at its next step, whatever caught the error until there. The first stop wins.
func (m *meter) stop(err error) error {
	if m.cause.CompareAndSwap(nil, &err) {
		m.thread.Cancel("stopped")
	}
	return m.ended()
}

// resume takes back a stop.
func (m *meter) resume() {
	m.cause.Store(nil)
	m.thread.Uncancel()
}

// ended is why the run is over; nil: it is not.
func (m *meter) ended() error {
	if err := m.cause.Load(); err != nil {
		return *err
	}
	return nil
}

func (m *meter) steps() uint64 { return min(m.thread.ExecutionSteps(), m.limits.Steps) }

// Charge implements fault.Meter.
func (m *meter) Charge(n int) error {
	if n > 0 {
		m.thread.Steps += uint64(n)
	}
	if m.thread.Steps >= m.limits.Steps {
		return m.stop(m.tooManySteps())
	}
	return m.ended()
}

// Room implements fault.Meter. What the run holds already is not known here, so that only a value too large by itself is
// refused.
func (m *meter) Room(n int) error {
	if n < 0 || int64(n) > m.limits.Memory {
		return m.stop(m.exceeded("memory", "one value would take more than the %s of memory there are: build less at a time", size(m.limits.Memory)))
	}
	return nil
}

// maxLevels keeps data within what the doors of a server pass on, which add some levels of their own.
const maxLevels = 100

// Depth implements fault.Meter.
func (m *meter) Depth() int { return min(m.limits.Nesting, maxLevels) }

// enter counts a call of the code's functions, and of built-in ones that call back.
func (m *meter) enter() error {
	if m.thread.CallStackDepth() <= m.limits.Nesting {
		return nil
	}
	n := 0
	for i := range m.thread.CallStackDepth() {
		switch f := m.thread.DebugFrame(i).Callable().(type) {
		case *starlark.Function:
			if !isHidden(f.Name()) {
				n++
			}
		case *starlark.Builtin:
			if f.Name() == tryCallName {
				n++
			}
		}
	}
	if n-1 > m.limits.Nesting { // the outermost is the code itself
		return m.stop(m.exceeded("nesting", "more than %s within calls: use a loop, with a list of what is left to do", counted(m.limits.Nesting, "call")))
	}
	return nil
}

func (m *meter) tooManySteps() error {
	return m.exceeded("steps", "the code took more than %s: do less in loops, or split the work over several runs", counted(m.limits.Steps, "step"))
}

func (m *meter) tooDeep() error {
	return m.stop(m.exceeded("nesting", "data is nested deeper than %s: flatten it", counted(m.Depth(), "level")))
}

func (m *meter) exceeded(name, format string, args ...any) *fault.Limit {
	return &fault.Limit{Name: name, Message: fmt.Sprintf(format, args...)}
}

// size spells a number of bytes as people do.
func size[N int | int64](n N) string {
	switch {
	case n >= 1<<20 && n%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 1<<10 && n%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return counted(n, "byte")
}

// counted is a number of things.
func counted[N int | int64 | uint64](n N, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
