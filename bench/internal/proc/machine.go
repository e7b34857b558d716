package proc

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// A Machine describes where something was measured.
type Machine struct {
	CPU    string
	Cores  int
	Memory int64 // bytes
	Kernel string
	Go     string
	Files  uint64 // hard limit of open files of a process
	Load   string // load averages at the start, over 1, 5 and 15 minutes
}

// ThisMachine describes this one. What cannot be read is empty.
func ThisMachine() Machine {
	m := Machine{Cores: runtime.NumCPU(), Go: runtime.Version(), CPU: field("/proc/cpuinfo", "model name")}
	var kb int64
	fmt.Sscan(field("/proc/meminfo", "MemTotal"), &kb)
	m.Memory = kb << 10
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		release, _, _ := strings.Cut(text(u.Release[:]), "-")
		m.Kernel = text(u.Sysname[:]) + " " + release + " " + text(u.Machine[:])
	}
	var l unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &l) == nil {
		m.Files = l.Max
	}
	if load, err := os.ReadFile("/proc/loadavg"); err == nil {
		m.Load = strings.Join(strings.Fields(string(load))[:3], ", ")
	}
	return m
}

// field is the first value of that name in a file of lines "name: value".
func field(file, name string) string {
	b, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(b)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

func text(b []byte) string {
	b, _, _ = bytes.Cut(b, []byte{0})
	return string(b)
}
