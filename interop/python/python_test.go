package python_test

import (
	"testing"
	"time"

	"github.com/openenv-go/openenv-go/interop/internal/kit"
)

const pytestTimeout = 3 * time.Minute

func TestStockClients(t *testing.T) {
	kit.Need(t)
	kit.DependOnSources(t)
	python := kit.Venv(t, "requirements.txt")
	program := kit.Build(t, "./examples/echo")

	for _, test := range []struct {
		name  string
		flags []string
		files []string
	}{
		{"simulation", nil, []string{"test_clients.py", "test_http.py"}},
		{"production", []string{"-mode", "production"}, []string{"test_production.py"}},
		{"one session", []string{"-max-sessions", "1"}, []string{"test_one_session.py"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			server := kit.Start(t, program, test.flags...)
			kit.Pytest(t, pytestTimeout, python, []string{"OPENENV_URL=" + server.URL}, test.files...)
		})
	}
}
