package session

import (
	"slices"
	"sync"
	"time"
)

// workerPatience is how long a worker waits for the next call.
const workerPatience = 5 * time.Second

// Workers are goroutines that run the tool calls of callers who wait. A call needs a deep stack, and a fresh goroutine grows
// one in steps, by copying, for each call: that is 6% of an HTTP tool call's CPU. A worker keeps its stack for the next. There
// are as many as calls have run at once within the patience.
type workers struct {
	mu    sync.Mutex
	idle  []worker // who has worked last is the last, and the next: those that are not needed lose patience
	ended bool
}

// A worker takes its next call here, from who has taken it off the idle ones. There is room for that call.
type worker chan func()

// run has f run at once, in a goroutine that is not the caller's.
func (w *workers) run(f func()) {
	w.mu.Lock()
	last := len(w.idle) - 1
	if last < 0 {
		w.mu.Unlock()
		go w.work(f)
		return
	}
	next := w.idle[last]
	w.idle = w.idle[:last]
	w.mu.Unlock()
	next <- f
}

func (w *workers) work(f func()) {
	me := make(worker, 1)
	patience := time.NewTimer(workerPatience)
	defer patience.Stop()
	for f != nil {
		f()
		patience.Reset(workerPatience)
		f = w.next(me, patience.C)
	}
}

// next waits for the next call. It is nil when there is none to come.
func (w *workers) next(me worker, patience <-chan time.Time) func() {
	w.mu.Lock()
	if w.ended {
		w.mu.Unlock()
		return nil
	}
	w.idle = append(w.idle, me)
	w.mu.Unlock()
	select {
	case f := <-me:
		return f
	case <-patience:
	}
	w.mu.Lock()
	at := slices.Index(w.idle, me)
	if at >= 0 {
		w.idle = slices.Delete(w.idle, at, at+1)
	}
	w.mu.Unlock()
	if at >= 0 {
		return nil
	}
	return <-me // somebody has just taken it off
}

// end has those leave that have nothing to do. It is idempotent.
func (w *workers) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
	for _, idle := range w.idle {
		idle <- nil
	}
	w.idle = nil
}
