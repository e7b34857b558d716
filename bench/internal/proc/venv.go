package proc

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// makeTimeout is how long making a virtual environment may take.
const makeTimeout = 10 * time.Minute

// without is what to do where there is no Python, or no package index.
const without = "-reference=false measures without it"

// Venv returns the Python of a virtual environment that holds what the first of the requirements files names; the others
// are those that it includes. It is made once for these files, in the user's cache directory.
func Venv(ctx context.Context, requirements ...string) (python string, err error) {
	hash := sha256.New()
	for _, file := range requirements {
		text, err := os.ReadFile(file)
		if err != nil {
			return "", err
		}
		hash.Write(text)
	}
	version, err := exec.CommandContext(ctx, "python3", "-c", "import sys; print(sys.version, sys.base_prefix)").Output()
	if err != nil {
		return "", fmt.Errorf("the reference needs Python 3.11 or newer: %w; "+without, err)
	}
	hash.Write(version)
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "openenv-go", fmt.Sprintf("bench-python-%x", hash.Sum(nil)[:8]))
	python = filepath.Join(dir, "bin", "python")
	if _, err := os.Stat(dir); err == nil {
		return python, nil
	}
	return python, makeVenv(ctx, dir, requirements[0])
}

// makeVenv builds beside dir and renames, so that dir is never half made.
func makeVenv(ctx context.Context, dir, requirements string) error {
	ctx, cancel := context.WithTimeout(ctx, makeTimeout)
	defer cancel()
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	build, err := os.MkdirTemp(filepath.Dir(dir), filepath.Base(dir)+".tmp-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(build)
	for _, args := range [][]string{
		{"python3", "-m", "venv", build},
		{filepath.Join(build, "bin", "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
			"--no-deps", "--only-binary=:all:", "--requirement", requirements},
	} {
		cmd := command(ctx, args[0], args[1:]...)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%v: %w; "+without+"\n%s", cmd, err, out)
		}
	}
	return os.Rename(build, dir)
}

// SizeOf is how much the files below a path have in them.
func SizeOf(path string) (total int64, err error) {
	err = filepath.WalkDir(path, func(_ string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if info, err := d.Info(); err == nil && info.Mode().IsRegular() {
			total += info.Size()
		}
		return nil
	})
	return total, err
}
