package proc

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

const servers = "github.com/openenv-go/openenv-go/bench/servers/"

// Build builds one of the servers, such as floor, into dir. It works in any directory of this module.
func Build(ctx context.Context, dir, name string) (program string, err error) {
	program = filepath.Join(dir, name)
	cmd := command(ctx, "go", "build", "-trimpath", "-o", program, servers+name)
	cmd.Env = append(os.Environ(), "GOTMPDIR="+dir) // go build leaves its files where it is interrupted; dir is removed
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%v: %w\n%s", cmd, err, out)
	}
	return program, nil
}

// tidying is how long a command that is interrupted may take to remove what it has made.
const tidying = 5 * time.Second

// command is one that is interrupted when ctx ends, with all that it has started, so that it can tidy up.
func command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
	cmd.WaitDelay = tidying
	return cmd
}
