//go:build linux && (amd64 || arm64)

package sandbox_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

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
