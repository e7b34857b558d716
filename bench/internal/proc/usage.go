package proc

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// CPU is what a process has used of it, user and system, to the nanosecond.
func CPU(pid int) (time.Duration, error) {
	const sched = 2 // CPUCLOCK_SCHED of the kernel's posix-timers.h: the clock of all threads of a process
	var ts unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|sched), &ts); err != nil {
		return 0, fmt.Errorf("the CPU clock of process %d: %w", pid, err)
	}
	return time.Duration(ts.Nano()), nil
}

// A Status is what /proc says of a process.
type Status struct {
	RSS     int64 // resident memory in bytes
	Threads int64
}

// StatusOf reads /proc/PID/status.
func StatusOf(pid int) (s Status, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return s, err
	}
	for sc := bufio.NewScanner(bytes.NewReader(text)); sc.Scan(); {
		name, value, _ := strings.Cut(sc.Text(), ":")
		number, _, _ := strings.Cut(strings.TrimSpace(value), " ")
		n, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			continue
		}
		switch name {
		case "VmRSS":
			s.RSS = n << 10
		case "Threads":
			s.Threads = n
		}
	}
	if s.RSS == 0 {
		return s, fmt.Errorf("/proc/%d/status has no VmRSS: has the process ended?", pid)
	}
	return s, nil
}

// reservedFiles is what a process needs beside its connections.
const reservedFiles = 200

// RaiseFiles raises this process's limit of open files as far as it may, which the processes that it starts inherit, and
// returns how many connections fit in one process, at most as many as wanted.
func RaiseFiles(wanted int) (connections int, err error) {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l); err != nil {
		return 0, err
	}
	need := uint64(wanted + reservedFiles)
	raised := l
	raised.Cur, raised.Max = max(l.Cur, need), max(l.Max, need)
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &raised); err != nil { // only root may raise the hard limit
		raised = unix.Rlimit{Cur: l.Max, Max: l.Max}
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &raised); err != nil {
			return 0, err
		}
	}
	return min(wanted, int(raised.Cur)-reservedFiles), nil
}
