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

	const token = "control-token-of-the-tests"
	for _, test := range []struct {
		name    string
		flags   []string
		control bool   // by the control listener
		token   string // that the clients send
		files   []string
	}{
		{name: "simulation", files: []string{"test_clients.py", "test_http.py"}},
		{name: "production", flags: []string{"-mode", "production"}, files: []string{"test_production.py"}},
		{name: "production by the control listener", flags: []string{"-mode", "production"}, control: true, files: []string{"test_clients.py"}},
		{name: "production with a control token", flags: []string{"-mode", "production", "-control-token", token}, token: token, files: []string{"test_clients.py"}},
		{name: "one session", flags: []string{"-max-sessions", "1"}, files: []string{"test_one_session.py"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			server := kit.Start(t, program, test.flags...)
			if test.control {
				server.URL = server.Control
			}
			env := []string{"OPENENV_URL=" + server.URL}
			if test.token != "" {
				env = append(env, "OPENENV_TOKEN="+test.token)
			}
			kit.Pytest(t, pytestTimeout, python, env, test.files...)
		})
	}
}
