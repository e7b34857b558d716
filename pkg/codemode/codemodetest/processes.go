package codemodetest

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Children are the processes that this one has started, dead ones that have not been waited for included. Linux alone tells.
func Children() []int { return ChildrenOf(os.Getpid()) }

// ChildrenOf is [Children] of another process.
func ChildrenOf(parent int) (pids []int) {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", parent))
	for _, f := range files {
		b, _ := os.ReadFile(f) // a thread may end
		for s := range strings.FieldsSeq(string(b)) {
			pid, _ := strconv.Atoi(s)
			pids = append(pids, pid)
		}
	}
	return pids
}

// resident is how much memory a process that runs code takes, in bytes; 0: it has gone, or is about to become one and shows
// our memory.
func resident(pid int) int64 {
	if name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); string(name) != "code\x00" {
		return 0
	}
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	f := strings.Fields(string(b))
	if len(f) < 2 {
		return 0
	}
	pages, _ := strconv.ParseInt(f[1], 10, 64)
	return pages * int64(os.Getpagesize())
}

// Watch begins to look at the memory of the children that run code; the function that it returns ends that, and tells the
// most bytes that all took together, and that one did.
func Watch() func() (all, one int64) {
	stop := make(chan struct{})
	done := make(chan [2]int64)
	go func() {
		tick := time.NewTicker(2 * time.Millisecond)
		defer tick.Stop()
		var peak [2]int64
		for {
			var sum int64
			for _, pid := range Children() {
				n := resident(pid)
				sum += n
				peak[1] = max(peak[1], n)
			}
			peak[0] = max(peak[0], sum)
			select {
			case <-stop:
				done <- peak
				return
			case <-tick.C:
			}
		}
	}()
	return func() (all, one int64) {
		close(stop)
		peak := <-done
		return peak[0], peak[1]
	}
}
