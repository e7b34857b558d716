package session

import (
	"slices"
	"sync"
	"time"
)

// workerPatience is for how long a worker must not have been needed before it leaves.
const workerPatience = 5 * time.Second

// Workers are goroutines that run the tool calls of callers who wait. A call needs a deep stack, and a fresh goroutine grows
// one in steps, by copying, for each call: that is 6% of an HTTP tool call's CPU. A worker keeps its stack for the next.
type workers struct {
	mu     sync.Mutex
	idle   []worker    // who has worked last is the last, and the next
	spare  int         // how many of them, the first ones, nobody has needed since the last review
	review *time.Timer // dismisses the spare ones; nil: none is due
	ended  bool
}

// A job is a call that is ready to run.
type job interface{ run() (here bool) }

// A worker takes its next job here, from who has taken it off the idle ones. There is room for that job. nil ends it.
type worker chan job

// run has j run at once, in a goroutine that is not the caller's.
func (w *workers) run(j job) {
	w.mu.Lock()
	last := len(w.idle) - 1
	if last < 0 {
		w.mu.Unlock()
		go w.work(j)
		return
	}
	next := w.idle[last]
	w.idle = w.idle[:last]
	w.spare = min(w.spare, last)
	w.mu.Unlock()
	next <- j
}

func (w *workers) work(j job) {
	me := make(worker, 1)
	for ; j != nil; j = <-me {
		j.run()
		if !w.rest(me) {
			return
		}
	}
}

// rest has a worker wait for its next job. It is false where there is none to come.
func (w *workers) rest(me worker) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		return false
	}
	w.idle = append(w.idle, me)
	if w.review == nil {
		w.spare = len(w.idle)
		w.review = time.AfterFunc(workerPatience, w.dismiss)
	}
	return true
}

// dismiss has those leave that nobody has needed since it was here last.
func (w *workers) dismiss() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, idle := range w.idle[:w.spare] {
		idle <- nil
	}
	w.idle = slices.Delete(w.idle, 0, w.spare)
	w.spare = len(w.idle)
	if w.review = nil; w.spare > 0 {
		w.review = time.AfterFunc(workerPatience, w.dismiss)
	}
}

// end has those leave that have nothing to do. It is idempotent.
func (w *workers) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
	if w.review != nil {
		w.review.Stop()
	}
	for _, idle := range w.idle {
		idle <- nil
	}
	w.idle, w.spare = nil, 0
}
