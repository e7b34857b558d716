package python_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
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
	startTimeout  = 30 * time.Second // the server prints its address
	stopTimeout   = 15 * time.Second // the server ends after SIGTERM
	pytestTimeout = 3 * time.Minute
)

// moduleRoot is where the module begins, seen from the directory that go test runs this package in.
const moduleRoot = "../.."

func TestStockClients(t *testing.T) {
	if os.Getenv("OPENENV_INTEROP") == "" {
		t.Skip("to run the stock Python clients: OPENENV_INTEROP=1 go test ./interop/...")
	}
	dependOnSources(t)
	python := virtualEnv(t)
	server := buildEcho(t)

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
			url := startServer(t, server, test.flags...)
			runPytest(t, python, url, test.files...)
		})
	}
}

// unavailable ends the test for want of something that this machine lacks: as a skip, or as a failure where
// OPENENV_INTEROP=require says that it must not go unseen.
func unavailable(t *testing.T, format string, args ...any) {
	t.Helper()
	if os.Getenv("OPENENV_INTEROP") == "require" {
		t.Fatalf(format, args...)
	}
	t.Skipf(format, args...)
}

// dependOnSources reads the module's directories, so that go test's result cache sees a change in any of their files.
// It can't know by itself that this test builds a server and runs Python files.
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

// buildEcho builds the example server, with the race detector where this test has it.
func buildEcho(t *testing.T) string {
	server := filepath.Join(t.TempDir(), "echo")
	args := []string{"build", "-o", server}
	if raceEnabled() {
		args = append(args, "-race")
	}
	build := exec.CommandContext(t.Context(), "go", append(args, "./examples/echo")...)
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

// startServer starts the server on a port of its own choice and returns its base URL. At the end of the test it must
// stop cleanly on SIGTERM.
func startServer(t *testing.T, server string, flags ...string) string {
	// Cancelling sends SIGTERM; WaitDelay later Wait kills.
	ctx, stop := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, server, append([]string{"-addr", "127.0.0.1:0"}, flags...)...)
	cmd.Env = environ()
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
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
			t.Errorf("the server ended with exit code %d (%v) on SIGTERM; want 0", code, err)
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

// runPytest runs test files of this directory against the server at url.
func runPytest(t *testing.T, python, url string, files ...string) {
	ctx, cancel := context.WithTimeout(t.Context(), pytestTimeout)
	defer cancel()
	// No cache and no bytecode: a test leaves nothing in the source tree. A hang shows its stacks.
	args := []string{"-B", "-m", "pytest", "-p", "no:cacheprovider", "-o", "faulthandler_timeout=60", "-ra"}
	cmd := exec.CommandContext(ctx, python, append(args, files...)...)
	cmd.Env = environ("OPENENV_URL="+url, "NO_PROXY=127.0.0.1", "no_proxy=127.0.0.1")
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = errors.Join(err, ctx.Err())
		t.Errorf("pytest %s: %v\n%s", strings.Join(files, " "), err, out)
		return
	}
	t.Logf("%s", out)
}

// environ is this process's environment with extra variables, less those that steer an OpenEnv server or client.
func environ(extra ...string) []string {
	var env []string
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "OPENENV_") {
			env = append(env, variable)
		}
	}
	return append(env, extra...)
}
