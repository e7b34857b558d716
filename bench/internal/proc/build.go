package proc

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
)

const servers = "github.com/openenv-go/openenv-go/bench/servers/"

// Build builds one of the servers, such as floor, into dir. It works in any directory of this module.
func Build(ctx context.Context, dir, name string) (program string, err error) {
	program = filepath.Join(dir, name)
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", program, servers+name)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%v: %w\n%s", cmd, err, out)
	}
	return program, nil
}
