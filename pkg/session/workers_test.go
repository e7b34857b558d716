package session

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

type jobFunc func()

func (f jobFunc) run() bool { f(); return true }

// After a burst there are as many workers as are needed, and after the last call none.
func TestWorkersLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const burst = 100
		var w workers
		idle := func() int {
			synctest.Wait()
			w.mu.Lock()
			defer w.mu.Unlock()
			return len(w.idle)
		}
		var running sync.WaitGroup
		for range burst {
			running.Add(1)
			w.run(jobFunc(func() { time.Sleep(time.Second); running.Done() }))
		}
		running.Wait()
		if n := idle(); n != burst {
			t.Errorf("%d workers wait after %d calls at once", n, burst)
		}
		for range 100 { // for twice the patience
			w.run(jobFunc(func() {}))
			time.Sleep(workerPatience / 50)
		}
		if n := idle(); n != 1 {
			t.Errorf("%d workers wait, where one is needed", n)
		}
		time.Sleep(2 * workerPatience)
		if n := idle(); n != 0 {
			t.Errorf("%d workers wait for ever", n)
		}
		var ran sync.WaitGroup
		ran.Add(2)
		w.run(jobFunc(func() { w.run(jobFunc(ran.Done)); ran.Done() })) // one runs another
		ran.Wait()
		w.end()
		w.end()
		ran.Add(1)
		w.run(jobFunc(ran.Done)) // late calls run too
		ran.Wait()
	})
}
