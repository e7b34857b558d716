package python_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

const (
	venvTimeout = 5 * time.Minute
	staleAfter  = time.Hour // well past venvTimeout
)

// virtualEnv returns the Python of a virtual environment that holds requirements.txt. It is made once per requirements
// and Python, in the user's cache directory.
func virtualEnv(t *testing.T) (python string) {
	requirements, err := os.ReadFile("requirements.txt")
	if err != nil {
		t.Fatal(err)
	}
	version, err := exec.Command("python3", "-c", "import sys; print(sys.version, sys.base_prefix)").Output()
	if err != nil {
		unavailable(t, "no python3: %v", err)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		unavailable(t, "no cache directory: %v", err)
	}

	hash := sha256.Sum256(append(requirements, version...))
	dir := filepath.Join(cache, "openenv-go", fmt.Sprintf("interop-python-%x", hash[:8]))
	python = filepath.Join(dir, "bin", "python")
	if _, err := os.Stat(python); err == nil {
		return python
	}
	began := time.Now()
	if err := makeVirtualEnv(t.Context(), dir); err != nil {
		unavailable(t, "making a virtual environment: %v", err)
	}
	t.Logf("made %s in %v", dir, time.Since(began).Round(time.Second))
	return python
}

// makeVirtualEnv makes dir, or leaves nothing there: it builds beside dir and renames, so that dir is never half made
// and of two processes one wins. The commands in bin/ name the directory they were built in; "python -m" works anywhere.
func makeVirtualEnv(ctx context.Context, dir string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	removeStale(dir + ".tmp-*")
	build, err := os.MkdirTemp(filepath.Dir(dir), filepath.Base(dir)+".tmp-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(build)

	ctx, cancel := context.WithTimeout(ctx, venvTimeout)
	defer cancel()
	for _, args := range [][]string{
		{"python3", "-m", "venv", build},
		// Wheels only: nothing to compile. No dependencies: requirements.txt says what is left out on purpose.
		{filepath.Join(build, "bin", "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
			"--no-deps", "--only-binary=:all:", "--requirement", "requirements.txt"},
	} {
		cmd := exec.CommandContext(ctx, args[0], args[1:]...)
		cmd.WaitDelay = time.Second
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%v: %w\n%s", cmd, err, out)
		}
	}

	err = os.Rename(build, dir)
	if _, statErr := os.Stat(dir); statErr == nil {
		return nil // ours, or that of another process which was faster
	}
	return err
}

// removeStale removes what killed processes left behind.
func removeStale(pattern string) {
	left, _ := filepath.Glob(pattern)
	for _, dir := range left {
		if info, err := os.Stat(dir); err == nil && time.Since(info.ModTime()) > staleAfter {
			os.RemoveAll(dir)
		}
	}
}
