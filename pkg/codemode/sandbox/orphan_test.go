//go:build linux && (amd64 || arm64)

package sandbox_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/openenv-go/openenv-go/pkg/codemode"
	"github.com/openenv-go/openenv-go/pkg/codemode/codemodetest"
	"github.com/openenv-go/openenv-go/pkg/codemode/sandbox"
)

const orphanVariable = "SANDBOX_TEST_ORPHAN"

// orphan is a process with a pool whose child is in an endless loop. It says so, and waits for its own end.
func orphan() {
	p, err := sandbox.New(sandbox.Options{Processes: 1})
	if err != nil {
		panic(err)
	}
	job := codemode.Job{Code: "echo(v=1)\nwhile True:\n    pass", Tools: tools, Limits: codemode.Limits{Time: time.Minute, Steps: 1 << 60}}
	p.Run(context.Background(), job, func(context.Context, string, json.RawMessage) (codemode.Answer, error) {
		fmt.Println("it runs")
		return codemode.Answer{}, nil
	})
}

// TestDeathOfTheServer: a child in an endless loop goes when its pool's process is killed.
func TestDeathOfTheServer(t *testing.T) {
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), orphanVariable+"=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	pids := codemodetest.ChildrenOf(cmd.Process.Pid)
	cmd.Process.Kill()
	cmd.Wait()
	if err != nil || len(pids) == 0 {
		t.Fatalf("it said %q, %v", line, err)
	}
	deadline := time.Now().Add(10 * time.Second)
	for _, pid := range pids {
		for alive(pid) {
			if time.Now().After(deadline) {
				t.Fatalf("process %d is still there", pid)
			}
			time.Sleep(5 * time.Millisecond) // somebody else's process cannot be waited for
		}
	}
}
