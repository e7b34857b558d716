package typescript_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/openenv-go/openenv-go/interop/internal/kit"
)

const nodeTimeout = 2 * time.Minute

func TestTypeScriptSDK(t *testing.T) {
	kit.Need(t)
	kit.DependOnSources(t)
	modules := kit.NodeModules(t, ".")
	server := kit.Start(t, kit.Build(t, "./interop/mcp/server"))
	cutter := kit.NewCutter(t, server)

	// Node looks for packages beside the file that imports them, and the source tree is to stay as it is.
	dir := t.TempDir()
	if err := os.Symlink(modules, filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"server.mjs", "clients.mjs"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	kit.Run(t, nodeTimeout, dir, []string{
		"OPENENV_URL=" + server.URL, "OPENENV_CONTROL=" + server.Control,
		"OPENENV_CUTTER=" + cutter.URL, "OPENENV_CUTTER_CONTROL=" + cutter.Control,
	}, "node", "--test-reporter=spec", "clients.mjs")
	server.CheckEmpty(t)
}
