package conformance_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const (
	startTimeout = 30 * time.Second // the server prints its address
	stopTimeout  = 15 * time.Second // the server ends after SIGINT
	askTimeout   = 10 * time.Second
)

// moduleRoot is where the module begins, seen from the directory that go test runs this package in.
const moduleRoot = "../.."

// dependOnSources reads the module's directories, so that go test's result cache sees a change in any of their files.
// It can't know by itself that this test builds a server.
func dependOnSources(t *testing.T) {
	err := filepath.WalkDir(moduleRoot, func(path string, entry fs.DirEntry, err error) error {
		if entry != nil && entry.IsDir() && entry.Name() == ".git" {
			return filepath.SkipDir
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// buildEverything builds the example server, with the race detector where this test has it.
func buildEverything(t *testing.T) string {
	server := filepath.Join(t.TempDir(), "everything")
	args := []string{"build", "-o", server}
	if raceEnabled() {
		args = append(args, "-race")
	}
	build := exec.CommandContext(t.Context(), "go", append(args, "./examples/everything")...)
	build.Dir = moduleRoot
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", build, err, out)
	}
	return server
}

func raceEnabled() bool {
	info, _ := debug.ReadBuildInfo()
	for _, setting := range info.Settings {
		if setting.Key == "-race" {
			return setting.Value == "true"
		}
	}
	return false
}

// startServer starts the server on a port of its own choice and returns its base URL. At the end of the test it must stop
// cleanly on SIGINT, which leaves sessions no time to go on.
func startServer(t *testing.T, server string) string {
	// Cancelling sends SIGINT; WaitDelay later Wait kills.
	ctx, stop := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, server, "-addr", "127.0.0.1:0")
	cmd.Env = environ()
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) }
	cmd.WaitDelay = stopTimeout
	stdout := &addressWriter{found: make(chan string, 1)}
	var stderr bytes.Buffer // not read before Wait has returned
	cmd.Stdout, cmd.Stderr = stdout, &stderr
	if err := cmd.Start(); err != nil {
		stop()
		t.Fatal(err)
	}

	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }()
	t.Cleanup(func() {
		stop()
		err := <-exited
		if code := cmd.ProcessState.ExitCode(); code != 0 {
			t.Errorf("the server ended with exit code %d (%v) on SIGINT; want 0", code, err)
		}
		if t.Failed() {
			t.Logf("server's stdout:\n%s\nserver's stderr:\n%s", &stdout.all, &stderr)
		}
	})

	select {
	case url := <-stdout.found:
		return url
	case err := <-exited:
		exited <- err // for the cleanup
		t.Fatalf("the server ended before it printed its address: %v", err)
	case <-time.After(startTimeout):
		t.Fatalf("the server printed no address within %v", startTimeout)
	}
	return ""
}

var addressPattern = regexp.MustCompile(`http://127\.0\.0\.1:\d+`)

// addressWriter keeps all that a server prints and sends the first address in it to found.
type addressWriter struct {
	all   bytes.Buffer
	once  sync.Once
	found chan string // has room for one
}

func (w *addressWriter) Write(p []byte) (int, error) {
	w.all.Write(p)
	// Only whole lines, lest a port be cut short.
	lines := w.all.Bytes()[:bytes.LastIndexByte(w.all.Bytes(), '\n')+1]
	if url := addressPattern.Find(lines); url != nil {
		w.once.Do(func() { w.found <- string(url) })
	}
	return len(p), nil
}

// environ is this process's environment with extra variables, less those that steer an OpenEnv server.
func environ(extra ...string) []string {
	var env []string
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "OPENENV_") {
			env = append(env, variable)
		}
	}
	return append(env, extra...)
}

// post sends one JSON-RPC request and returns what came back.
func post(t *testing.T, address, method string, params any, header http.Header) (body []byte, status int) {
	t.Helper()
	text, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), askTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	for name, values := range header {
		req.Header[name] = values
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	direct := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}} // no proxy
	res, err := direct.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if body, err = io.ReadAll(res.Body); err != nil {
		t.Fatal(err)
	}
	return body, res.StatusCode
}
