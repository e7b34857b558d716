package conformance_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/openenv-go/openenv-go/interop/internal/kit"
)

// oldestNode is the first major version of Node.js that runs all that the lock file pins.
const oldestNode = 22

// A suite is what npm has installed, and what runs it.
type suite struct {
	node    string
	modules string // the directory node_modules
}

// install returns the suite as package-lock.json pins it.
func install(t *testing.T) suite {
	modules := kit.NodeModules(t, ".")
	return suite{findNode(t, modules), modules}
}

// findNode returns the Node.js among the modules, or the machine's own where the registry has none for it.
func findNode(t *testing.T, modules string) string {
	arch := runtime.GOARCH
	if arch == "amd64" {
		arch = "x64"
	}
	node := filepath.Join(modules, "node-"+runtime.GOOS+"-"+arch, "bin", "node")
	if _, err := os.Stat(node); err != nil {
		node = "node"
	}
	version, err := exec.CommandContext(t.Context(), node, "--version").Output()
	if err != nil {
		kit.Unavailable(t, "no Node.js: %v", err)
	}
	major, _, _ := strings.Cut(strings.TrimPrefix(string(version), "v"), ".")
	if n, err := strconv.Atoi(major); err != nil || n < oldestNode {
		kit.Unavailable(t, "%s is version %s; want %d at least", node, strings.TrimSpace(string(version)), oldestNode)
	}
	return node
}
