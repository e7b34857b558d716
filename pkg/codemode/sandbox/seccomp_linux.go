//go:build amd64 || arm64

package sandbox

import (
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// calls are the system calls of Go's runtime, the C library's threads and the race detector, on files that are open. Not
// among them are those that have rules of their own: clone, clone3, tgkill, mmap and mprotect.
var calls = append([]uint32{
	unix.SYS_READ, unix.SYS_WRITE, unix.SYS_CLOSE, unix.SYS_FSTAT,
	unix.SYS_EXIT, unix.SYS_EXIT_GROUP, unix.SYS_RESTART_SYSCALL,
	unix.SYS_FUTEX, unix.SYS_NANOSLEEP, unix.SYS_CLOCK_NANOSLEEP, unix.SYS_SCHED_YIELD,
	unix.SYS_CLOCK_GETTIME, unix.SYS_GETTIMEOFDAY,
	unix.SYS_MUNMAP, unix.SYS_MADVISE, unix.SYS_BRK, unix.SYS_MINCORE,
	unix.SYS_RT_SIGACTION, unix.SYS_RT_SIGPROCMASK, unix.SYS_RT_SIGRETURN, unix.SYS_SIGALTSTACK,
	unix.SYS_GETPID, unix.SYS_GETTID, unix.SYS_SCHED_GETAFFINITY,
	unix.SYS_SET_ROBUST_LIST, unix.SYS_RSEQ, unix.SYS_SET_TID_ADDRESS,
	unix.SYS_EPOLL_PWAIT, unix.SYS_EPOLL_CTL,
}, archCalls...)

// Offsets in what a filter sees of a call; each argument has eight bytes, the lower half first.
const (
	atNumber = 0
	atArch   = 4
	atArgs   = 16
)

const (
	allow  = 0x7fff0000
	refuse = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	absent = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
)

func load(at uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: at}
}

// unless skips n instructions if what was loaded is not k; a set bit of k, if op is BPF_JSET.
func unless(op uint16, k uint32, n uint8) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | op | unix.BPF_K, K: k, Jf: n}
}

func ret(verdict uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: verdict}
}

// argument gives one verdict on calls whose argument passes the test, and another on the rest.
func argument(number uint32, arg uint32, op uint16, k, verdict, otherwise uint32) []unix.SockFilter {
	return []unix.SockFilter{
		unless(unix.BPF_JEQ, number, 4), load(atArgs + 8*arg), unless(op, k, 1), ret(verdict), ret(otherwise),
	}
}

// filter is the program that judges system calls: what is not allowed fails, and the code that asked gets an error.
func filter() []unix.SockFilter {
	f := []unix.SockFilter{
		load(atArch),
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: arch, Jt: 1},
		ret(unix.SECCOMP_RET_KILL_PROCESS), // another machine's numbers
		load(atNumber),
	}
	for _, nr := range calls {
		f = append(f, unless(unix.BPF_JEQ, nr, 1), ret(allow))
	}
	// Threads, and no processes. The C library falls back on clone, whose flags can be seen.
	f = append(f, argument(unix.SYS_CLONE, 0, unix.BPF_JSET, unix.CLONE_THREAD, allow, refuse)...)
	f = append(f, unless(unix.BPF_JEQ, unix.SYS_CLONE3, 1), ret(absent))
	// Signals to itself: the runtime preempts with them.
	f = append(f, argument(unix.SYS_TGKILL, 0, unix.BPF_JEQ, uint32(os.Getpid()), allow, refuse)...)
	// Memory, and none that can be run.
	f = append(f, argument(unix.SYS_MMAP, 2, unix.BPF_JSET, unix.PROT_EXEC, refuse, allow)...)
	f = append(f, argument(unix.SYS_MPROTECT, 2, unix.BPF_JSET, unix.PROT_EXEC, refuse, allow)...)
	return append(f, ret(refuse))
}

// lock puts all threads under the filter, for good.
func lock() error {
	f := filter()
	p := unix.SockFprog{Len: uint16(len(f)), Filter: &f[0]}
	runtime.LockOSThread() // both calls must come from one thread
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	thread, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&p)))
	if errno != 0 {
		return errno
	}
	if thread != 0 { // one that could not be put under it
		return unix.EAGAIN
	}
	return nil
}
