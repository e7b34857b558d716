//go:build linux && (amd64 || arm64)

package sandbox

import "os/exec"

// Shadow is what the race detector makes of a byte.
const Shadow = shadow

// Spoil makes a pool start other programs than it should. It must be called before its first run.
func Spoil(p *Pool, command func() *exec.Cmd) { p.command = command }
