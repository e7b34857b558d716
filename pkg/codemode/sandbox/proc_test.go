//go:build linux && (amd64 || arm64)

package sandbox_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// childrenOf are the processes that a process has started, dead ones that have not been waited for included.
func childrenOf(parent int) (pids []int) {
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

func children() []int { return childrenOf(os.Getpid()) }

// alive reports that a process is there and more than a zombie.
func alive(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, _ := strings.Cut(string(b), ") ")
	return err == nil && !strings.HasPrefix(rest, "Z")
}

// stop stops a process, and waits until each of its threads stands still.
func stop(pid int) {
	syscall.Kill(pid, syscall.SIGSTOP)
	for range 10_000 {
		files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
		if !slices.ContainsFunc(files, func(f string) bool {
			b, _ := os.ReadFile(f)
			return !strings.Contains(string(b), ") T ")
		}) {
			return
		}
	}
}

// resident is how much memory a child takes, in bytes; 0: it has gone, or is about to become a child and shows our memory.
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

// watch begins to look at the memory of children; the function that it returns ends that, and tells the most that all took
// together, and that one did.
func watch() func() (all, one int64) {
	stop := make(chan struct{})
	done := make(chan [2]int64)
	go func() {
		tick := time.NewTicker(2 * time.Millisecond)
		defer tick.Stop()
		var peak [2]int64
		for {
			var sum int64
			for _, pid := range children() {
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
