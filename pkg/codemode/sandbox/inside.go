//go:build linux && (amd64 || arm64)

package sandbox

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/openenv-go/openenv-go/pkg/codemode"
	"github.com/openenv-go/openenv-go/pkg/codemode/internal/fault"
)

const (
	supported  = true
	marker     = "OPENENV_CODE_PROCESS"
	generation = "1" // of the frames
)

// environment is all that a child has: its mark, and settings that Go's runtime and the C library read before any code of
// ours runs. One processor also keeps the runtime from watching the files that say how many there are; one arena keeps the C
// library, where there is one, from reserving memory for each thread.
var environment = []string{marker + "=" + generation, "GOMAXPROCS=1", "MALLOC_ARENA_MAX=1"}

// command is how a child is started: as what runs now, whatever its path holds by then, in a group of its own, so that a
// terminal's signals do not reach it.
func command() *exec.Cmd {
	return &exec.Cmd{
		Path: "/proc/self/exe", Args: []string{"code"}, Env: environment, Dir: "/", SysProcAttr: &syscall.SysProcAttr{Setpgid: true},
	}
}

// init makes a child of a process that has the mark. It looks at nothing else, so a program that links this package starts as
// fast as before.
func init() {
	mark, marked := syscall.Getenv(marker)
	if !marked {
		return
	}
	if mark != generation || !piped() {
		// Going on as a server would make servers of children whose pool has gone.
		fmt.Fprintf(os.Stderr, "%s is set, but no pool has started this process: unset it\n", marker)
		os.Exit(2)
	}
	// The goroutine of init is bound to its thread, which would make each hand-over a switch of threads.
	go inside()
	select {}
}

// piped reports that the standard files are pipes, as a pool's are.
func piped() bool {
	for fd := range 3 {
		var s unix.Stat_t
		if unix.Fstat(fd, &s) != nil || s.Mode&unix.S_IFMT != unix.S_IFIFO {
			return false
		}
	}
	return true
}

// A host is the inside of a child.
type host struct {
	out      *os.File
	requests chan request
	guard    *guard
	tools    []codemode.Tool
}

func inside() {
	h := &host{requests: make(chan request), out: unblocked(1)}
	in := bufio.NewReaderSize(unblocked(0), 16<<10)
	r, err := readRequest(in)
	if err != nil || r.Hello == nil {
		fmt.Fprintf(os.Stderr, "%s is set, but no pool greets: unset it\n", marker)
		os.Exit(2)
	}
	if err := closeOthers(); err != nil {
		h.fail(err)
	}
	h.guard = newGuard(r.Hello.Memory)
	warmUp()
	// All threads and files that the runtime wants exist before it is bounded.
	go h.listen(in)
	go h.guard.watch()
	h.guard.rehearse()
	resident, err := confine(r.Hello.Memory)
	if err != nil {
		h.fail(err)
	}
	h.reply(reply{Ready: &ready{Resident: resident}})
	for r := range h.requests {
		if r.Job == nil {
			os.Exit(1)
		}
		h.work(r.Job)
	}
}

// unblocked is a standard file that the runtime waits for by its poller: with one processor, and a thread that waits in the
// kernel, hand-overs would take ten times as long.
func unblocked(fd int) *os.File {
	_ = syscall.SetNonblock(fd, true) // else it is only slower
	return os.NewFile(uintptr(fd), "pipe")
}

func readRequest(r io.Reader) (q request, err error) {
	b, err := readFrame(r, 1<<31-1) // the pool is trusted
	if err == nil {
		err = json.Unmarshal(b, &q)
	}
	return q, err
}

// listen owns the input, so that its end, which is that of the pool's process, is seen while code runs.
func (h *host) listen(in io.Reader) {
	for {
		r, err := readRequest(in)
		if err != nil {
			os.Exit(0)
		}
		h.requests <- r
	}
}

func (h *host) reply(r reply) {
	if writeFrame(h.out, r) != nil {
		os.Exit(0) // nobody reads
	}
}

// fail tells why there can be no child, and ends it.
func (h *host) fail(err error) {
	h.reply(reply{Fault: err.Error()})
	os.Exit(1)
}

// work runs a job.
func (h *host) work(j *job) {
	h.reply(reply{Began: true})
	if j.NewTools {
		h.tools = j.Tools
	}
	ctx := h.guard.begin(j.Limits)
	o := codemode.Run(ctx, codemode.Job{Code: j.Code, Tools: h.tools, Limits: j.Limits}, h.call)
	h.finish(o, j.Limits)
	h.guard.done()
}

// finish sends an outcome, which may be longer than the pool takes only by what goes round the code's own text.
func (h *host) finish(o codemode.Outcome, l codemode.Limits) {
	b, err := frame(reply{Outcome: &o})
	if err != nil || len(b)-head > replyBound(l) {
		o = codemode.Outcome{Result: json.RawMessage("null"), Calls: o.Calls, Steps: o.Steps, Error: &codemode.Error{
			Kind: codemode.Limited, Limit: "output", Message: "the outcome is too long to be passed on: return less",
		}}
		b, err = frame(reply{Outcome: &o})
	}
	if err == nil {
		_, err = h.out.Write(b)
	}
	if err != nil {
		os.Exit(0)
	}
}

// call has the pool make a call.
func (h *host) call(ctx context.Context, tool string, args json.RawMessage) (codemode.Answer, error) {
	h.reply(reply{Call: &call{Tool: tool, Args: args}})
	select {
	case r := <-h.requests:
		switch {
		case r.Answer != nil:
			return *r.Answer, nil
		case r.Stop != nil && r.Stop.Limit != "":
			return codemode.Answer{}, &fault.Limit{Name: r.Stop.Limit, Message: r.Stop.Message}
		case r.Stop != nil:
			return codemode.Answer{}, errors.New(r.Stop.Message)
		}
		os.Exit(1)
		panic("unreachable")
	case <-ctx.Done():
		return codemode.Answer{}, context.Cause(ctx)
	}
}

// warmUp makes lazy state exist: of the interpreter, of JSON, of the runtime.
func warmUp() {
	o := codemode.Run(context.Background(), codemode.Job{Code: "def f(x):\n  return [x]\n[f(1), str(1.5)]"}, nil)
	_ = writeFrame(io.Discard, reply{Outcome: &o})
	runtime.GC()
}

// closeOthers closes what the pool's process left open for its children by mistake, and what the runtime watches the number of
// processors by. Its poller is kept.
func closeOthers() error {
	const dir = "/proc/self/fd/"
	files, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("there is no /proc to read the open files of a process from: %w", err)
	}
	for _, f := range files {
		fd, err := strconv.Atoi(f.Name())
		is, gone := os.Readlink(dir + f.Name())
		if err != nil || gone != nil || fd <= 2 || is == "anon_inode:[eventpoll]" || is == "anon_inode:[eventfd]" {
			continue
		}
		_ = unix.Close(fd) // the list's own is closed already
	}
	return nil
}

// niceness has the scheduler prefer the server: a third of a processor is code's where both want it.
const niceness = 5

// confine bounds the process for good, and tells what it takes without code.
func confine(memory int64) (resident int64, err error) {
	debug.SetTraceback("none")
	debug.SetMaxStack(32 << 20)
	// The group is this process alone; of a process by its own number, only one thread would be meant.
	if err := unix.Setpriority(unix.PRIO_PGRP, 0, niceness); err != nil {
		return 0, fmt.Errorf("this system does not let a process be nice: %w", err)
	}
	size, err := sizeNow()
	if err != nil {
		return 0, err
	}
	for _, l := range []struct {
		name  string
		what  int
		limit uint64
	}{
		{"address space", unix.RLIMIT_AS, size.all + addressRoom(memory)},
		{"data", unix.RLIMIT_DATA, size.data + dataRoom(memory)},
		{"core files", unix.RLIMIT_CORE, 0},
		{"file sizes", unix.RLIMIT_FSIZE, 0},
		{"open files", unix.RLIMIT_NOFILE, 0},
	} {
		if err := unix.Setrlimit(l.what, &unix.Rlimit{Cur: l.limit, Max: l.limit}); err != nil {
			return 0, fmt.Errorf("this system does not bound a process's %s: %w", l.name, err)
		}
	}
	if err := lock(); err != nil {
		return 0, fmt.Errorf("this system does not filter a process's system calls (seccomp): %w", err)
	}
	return int64(size.resident), nil
}

// A size is how many bytes of a process are mapped as data, mapped at all, and in memory.
type size struct{ data, all, resident uint64 }

func sizeNow() (s size, err error) {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return s, fmt.Errorf("there is no /proc to read the size of a process from: %w", err)
	}
	s = size{field(b, "VmData:"), field(b, "VmSize:"), field(b, "VmRSS:")}
	if s.data == 0 || s.all == 0 {
		return s, errors.New("/proc/self/status does not say how large the process is")
	}
	return s, nil
}

// field is a size in a file of /proc, in bytes; 0: it is not there.
func field(status []byte, name string) uint64 {
	_, rest, _ := strings.Cut(string(status), "\n"+name)
	line, _, _ := strings.Cut(rest, "\n")
	n, err := strconv.ParseUint(strings.TrimSpace(strings.TrimSuffix(line, "kB")), 10, 64)
	if err != nil {
		return 0
	}
	return n << 10
}
