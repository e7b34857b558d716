//go:build linux && (amd64 || arm64)

package sandbox_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// children are the processes whose parent is this one, dead ones that have not been waited for included.
func children(t testing.TB) []int {
	t.Helper()
	files, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil || len(files) == 0 {
		t.Fatal("/proc does not list children", err)
	}
	var pids []int
	for _, f := range files {
		b, _ := os.ReadFile(f) // a thread may end
		for _, s := range strings.Fields(string(b)) {
			pid, err := strconv.Atoi(s)
			if err != nil {
				t.Fatal(err)
			}
			pids = append(pids, pid)
		}
	}
	return pids
}

// resident is how much memory a process takes, in bytes; 0: it has gone.
func resident(pid int) int64 {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	f := strings.Fields(string(b))
	if len(f) < 2 {
		return 0
	}
	pages, _ := strconv.ParseInt(f[1], 10, 64)
	return pages * int64(os.Getpagesize())
}

// watch begins to look at the memory of all children together; the function that it returns ends that, and tells the peak.
func watch(t testing.TB) func() int64 {
	stop, peak := make(chan struct{}), make(chan int64)
	go func() {
		tick := time.NewTicker(2 * time.Millisecond)
		defer tick.Stop()
		var most int64
		for {
			var sum int64
			for _, pid := range children(t) {
				sum += resident(pid)
			}
			most = max(most, sum)
			select {
			case <-stop:
				peak <- most
				return
			case <-tick.C:
			}
		}
	}()
	return func() int64 {
		close(stop)
		return <-peak
	}
}
