//go:build !(darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd)

package tools

import "os"

// locks reports that files can be locked.
const locks = false

// lock does nothing: the standard library has no locks here, so that each recorder has a file of its own is left to its
// user.
func lock(*os.File) error { return nil }
