package schemathesis_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/openenv-go/openenv-go/interop/internal/kit"
)

const (
	limit    = 5 * time.Minute // far beyond what a run takes: half a minute
	liveIDs  = 100             // sessions, and clients that have initialised, for requests to name
	sessions = 10000           // none is refused for want of a slot, which would be a 503
)

func TestDocumentHolds(t *testing.T) {
	kit.Need(t)
	kit.DependOnSources(t)
	python := kit.Venv(t, "requirements.txt")
	program := kit.Build(t, "./examples/echo")

	for _, mode := range []string{"simulation", "production"} {
		for _, listener := range []string{"public", "control"} {
			t.Run(mode+"/"+listener, func(t *testing.T) {
				server := kit.Start(t, program, "-mode", mode, "-max-sessions", fmt.Sprint(sessions), "-grace", "0")
				url := map[string]string{"public": server.URL, "control": server.Control}[listener]
				dir := prepare(t, url)
				kit.Run(t, limit, dir, nil, python, "-m", "openapi_spec_validator", "openapi.json")
				// With -m, not the command: that names the directory it was built in. -B: no bytecode beside the sources.
				args := []string{"-B", "-m", "schemathesis.cli", "run", url + "/openapi.json", "--no-color"}
				if n := os.Getenv("SCHEMATHESIS_EXAMPLES"); n != "" {
					args = append(args, "--max-examples", n)
				}
				kit.Run(t, limit, dir, nil, python, args...)
				if status, _, body := call(t, http.MethodGet, url+"/health", ""); status != http.StatusOK {
					t.Errorf("the server is not well afterwards: %d %s", status, body)
				}
			})
		}
	}
}

// prepare makes the directory that schemathesis runs in and leaves its files in.
func prepare(t *testing.T, url string) (dir string) {
	dir = t.TempDir()
	write := func(name string, data []byte) {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"schemathesis.toml", "hooks.py"} {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		write(name, data)
	}
	_, _, document := call(t, http.MethodGet, url+"/openapi.json", "")
	write("openapi.json", document)
	var open, agents []string
	for range liveIDs {
		open = append(open, fmt.Sprintf("%q\n", newSession(t, url)))
		agents = append(agents, fmt.Sprintf("%q\n", newAgent(t, url)))
	}
	write("sessions.txt", []byte(strings.Join(open, "")))
	write("agents.txt", []byte(strings.Join(agents, "")))
	return dir
}

func newSession(t *testing.T, url string) (id string) {
	_, _, body := call(t, http.MethodPost, url+"/mcp", `{"jsonrpc":"2.0","id":1,"method":"openenv/session/create"}`)
	var answer struct {
		Result struct {
			SessionID string `json:"session_id"`
		} `json:"result"`
	}
	if err := json.Unmarshal(body, &answer); err != nil || answer.Result.SessionID == "" {
		t.Fatalf("no session: %s", body)
	}
	return answer.Result.SessionID
}

// newAgent initialises as an MCP client.
func newAgent(t *testing.T, url string) (id string) {
	_, header, body := call(t, http.MethodPost, url+"/mcp", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":
		{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`)
	if id = header.Get("Mcp-Session-Id"); id == "" {
		t.Fatalf("not initialised: %s", body)
	}
	call(t, http.MethodPost, url+"/mcp", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, "Mcp-Session-Id", id)
	return id
}

func call(t *testing.T, method, url, body string, header ...string) (status int, got http.Header, answer []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, bytes.NewReader([]byte(body)))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if answer, err = io.ReadAll(res.Body); err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, res.Header, answer
}
