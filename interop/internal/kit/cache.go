package kit

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
	makeTimeout = 5 * time.Minute
	staleAfter  = time.Hour // well past makeTimeout
)

// Venv returns the Python of a virtual environment that holds what a requirements file names. It is made once per
// requirements and Python, in the user's cache directory.
func Venv(t *testing.T, requirements string) (python string) {
	t.Helper()
	wanted, err := os.ReadFile(requirements)
	if err != nil {
		t.Fatal(err)
	}
	version, err := exec.Command("python3", "-c", "import sys; print(sys.version, sys.base_prefix)").Output()
	if err != nil {
		Unavailable(t, "no python3: %v", err)
	}
	requirements, err = filepath.Abs(requirements)
	if err != nil {
		t.Fatal(err)
	}
	dir := cached(t, "interop-python", append(wanted, version...), func(ctx context.Context, build string) error {
		// Wheels only: nothing to compile. No dependencies: the file says what is left out on purpose. The commands in bin/
		// name the directory they were built in; "python -m" works anywhere.
		return runAll(ctx, build, [][]string{
			{"python3", "-m", "venv", build},
			{filepath.Join(build, "bin", "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
				"--no-deps", "--only-binary=:all:", "--requirement", requirements},
		})
	})
	return filepath.Join(dir, "bin", "python")
}

// NodeModules returns a node_modules directory with what the package-lock.json of a directory names, made once per lock
// and Node.
func NodeModules(t *testing.T, source string) string {
	t.Helper()
	key, err := exec.Command("node", "--version").Output()
	if err != nil {
		Unavailable(t, "no node: %v", err)
	}
	if _, err := exec.LookPath("npm"); err != nil {
		Unavailable(t, "no npm: %v", err)
	}
	var files [][]byte
	names := []string{"package.json", "package-lock.json", ".npmrc"}
	for _, name := range names {
		b, err := os.ReadFile(filepath.Join(source, name))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, b)
		key = append(key, b...)
	}
	dir := cached(t, "interop-node", key, func(ctx context.Context, build string) error {
		for i, name := range names {
			if err := os.WriteFile(filepath.Join(build, name), files[i], 0o600); err != nil {
				return err
			}
		}
		return runAll(ctx, build, [][]string{{"npm", "ci", "--ignore-scripts", "--include=optional", "--no-audit", "--no-fund", "--loglevel=error"}})
	})
	return filepath.Join(dir, "node_modules")
}

// cached returns the directory of the user's cache that make has filled for this key, once for all processes.
func cached(t *testing.T, name string, key []byte, fill func(ctx context.Context, dir string) error) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		Unavailable(t, "no cache directory: %v", err)
	}
	hash := sha256.Sum256(key)
	dir := filepath.Join(cache, "openenv-go", fmt.Sprintf("%s-%x", name, hash[:8]))
	if _, err := os.Stat(dir); err == nil {
		return dir
	}
	began := time.Now()
	if err := fillBeside(t.Context(), dir, fill); err != nil {
		Unavailable(t, "making %s: %v", filepath.Base(dir), err)
	}
	t.Logf("made %s in %v", filepath.Base(dir), time.Since(began).Round(time.Second))
	return dir
}

// fillBeside makes dir, or leaves nothing there: it builds beside dir and renames, so that dir is never half made and of
// two processes one wins.
func fillBeside(ctx context.Context, dir string, fill func(ctx context.Context, dir string) error) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	removeStale(dir + ".tmp-*")
	build, err := os.MkdirTemp(filepath.Dir(dir), filepath.Base(dir)+".tmp-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(build)
	ctx, cancel := context.WithTimeout(ctx, makeTimeout)
	defer cancel()
	if err := fill(ctx, build); err != nil {
		return err
	}
	err = os.Rename(build, dir)
	if _, statErr := os.Stat(dir); statErr == nil {
		return nil // ours, or that of another process which was faster
	}
	return err
}

func runAll(ctx context.Context, dir string, commands [][]string) error {
	for _, args := range commands {
		cmd := exec.CommandContext(ctx, args[0], args[1:]...)
		cmd.Dir = dir
		cmd.WaitDelay = time.Second
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%v: %w\n%s", cmd, err, out)
		}
	}
	return nil
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
