package python_test

import (
	"testing"
	"time"

	"github.com/openenv-go/openenv-go/interop/internal/kit"
)

const pytestTimeout = 2 * time.Minute

// One server process serves both versions, one after the other.
func TestPythonSDK(t *testing.T) {
	kit.Need(t)
	kit.DependOnSources(t)
	server := kit.Start(t, kit.Build(t, "./interop/mcp/server"))
	cutter := kit.NewCutter(t, server)
	for _, sdk := range []struct {
		name, requirements string
		files              []string
	}{
		{"mcp 2", "requirements.txt", []string{"test_clients.py", "test_trainer.py"}},
		// The stock OpenEnv clients need version 1, and are there too. It comes last, since another package makes the same
		// virtual environment meanwhile.
		{"mcp 1", "../../python/requirements.txt", []string{"test_clients.py", "test_trainer.py", "test_openenv_trainer.py"}},
	} {
		t.Run(sdk.name, func(t *testing.T) {
			kit.Pytest(t, pytestTimeout, kit.Venv(t, sdk.requirements), []string{
				"OPENENV_URL=" + server.URL, "OPENENV_CONTROL=" + server.Control,
				"OPENENV_CUTTER=" + cutter.URL, "OPENENV_CUTTER_CONTROL=" + cutter.Control,
			}, sdk.files...)
			server.CheckEmpty(t)
		})
	}
}
