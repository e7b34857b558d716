//go:build !unix

package mount

import "os/exec"

// ownGroup does nothing: there are no process groups, so what a server has started is left to it.
func ownGroup(*exec.Cmd) {}

// signalGroup kills the process. It cannot be asked.
func signalGroup(cmd *exec.Cmd, _ bool) { _ = cmd.Process.Kill() }
