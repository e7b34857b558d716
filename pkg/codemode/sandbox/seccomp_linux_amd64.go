package sandbox

import "golang.org/x/sys/unix"

const arch = unix.AUDIT_ARCH_X86_64

var archCalls = []uint32{unix.SYS_ARCH_PRCTL, unix.SYS_EPOLL_WAIT}
