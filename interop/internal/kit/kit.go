package kit

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Need skips the test unless OPENENV_INTEROP asks for it.
func Need(t *testing.T) {
	t.Helper()
	if os.Getenv("OPENENV_INTEROP") == "" {
		t.Skip("to run other projects' clients: OPENENV_INTEROP=1 go test ./interop/...")
	}
}

// Unavailable ends the test for want of something that this machine lacks: as a skip, or as a failure where
// OPENENV_INTEROP=require says that it must not go unseen.
func Unavailable(t *testing.T, format string, args ...any) {
	t.Helper()
	if os.Getenv("OPENENV_INTEROP") == "require" {
		t.Fatalf(format, args...)
	}
	t.Skipf(format, args...)
}

// root is where the module begins.
func root(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd() // go test runs a package in its own directory
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			t.Fatal("there is no go.mod above this test")
		}
		dir = parent
	}
}

// DependOnSources reads the module's directories, so that go test's result cache sees a change in any of their files. It
// can't know by itself that a test builds a server and runs other languages' files.
func DependOnSources(t *testing.T) {
	t.Helper()
	err := filepath.WalkDir(root(t), func(path string, entry fs.DirEntry, err error) error {
		if entry != nil && entry.IsDir() && entry.Name() == ".git" {
			return filepath.SkipDir
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Environ is this process's environment with extra variables, less those that steer an OpenEnv server or client. Nothing
// that a client asks of a loopback address goes by a proxy.
func Environ(extra ...string) []string {
	var env []string
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "OPENENV_") {
			env = append(env, variable)
		}
	}
	return append(env, append(extra, "NO_PROXY=127.0.0.1", "no_proxy=127.0.0.1")...)
}

// Run runs a client's test program in dir, for so long at most, with extra variables. Its output is in the test's log.
func Run(t *testing.T, limit time.Duration, dir string, extra []string, name string, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = Environ(extra...)
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%s: %v\n%s", strings.Join(args, " "), errors.Join(err, ctx.Err()), out)
		return
	}
	t.Logf("%s", out)
}

// Pytest runs test files of the package's directory with a Python that has pytest.
func Pytest(t *testing.T, limit time.Duration, python string, extra []string, args ...string) {
	t.Helper()
	// No cache and no bytecode: a test leaves nothing in the source tree. A hang shows its stacks.
	args = append([]string{"-B", "-m", "pytest", "-p", "no:cacheprovider", "-o", "faulthandler_timeout=60", "-ra"}, args...)
	Run(t, limit, "", extra, python, args...)
}
