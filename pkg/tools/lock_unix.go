//go:build darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd

package tools

import (
	"errors"
	"os"
	"syscall"
)

// locks reports that files can be locked.
const locks = true

// lock keeps other recorders from a file until it is closed, or reports that one has it. A file system that knows no locks
// is no reason not to record.
func lock(f *os.File) error {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, syscall.EWOULDBLOCK):
			return errTaken
		case !errors.Is(err, syscall.EINTR):
			return nil
		}
	}
}
