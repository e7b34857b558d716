package conformance_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
)

const (
	installTimeout = 5 * time.Minute
	staleAfter     = time.Hour // well past installTimeout
)

// oldestNode is the first major version of Node.js that runs all that the lock file pins.
const oldestNode = 22

// A suite is what npm has installed, and what runs it.
type suite struct {
	node    string
	modules string // the directory node_modules
}

// install returns the suite as package-lock.json pins it. It is installed once per lock file and machine, in the user's
// cache directory.
func install(t *testing.T) suite {
	hash := sha256.New()
	for _, name := range inputs {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(hash, "%s %d\n%s", name, len(text), text)
	}
	fmt.Fprint(hash, runtime.GOOS, runtime.GOARCH)
	cache, err := os.UserCacheDir()
	if err != nil {
		unavailable(t, "no cache directory: %v", err)
	}
	dir := filepath.Join(cache, "openenv-go", fmt.Sprintf("interop-conformance-%x", hash.Sum(nil)[:8]))
	s := suite{modules: filepath.Join(dir, "node_modules")}
	if _, err := os.Stat(dir); err != nil {
		began := time.Now()
		if err := makeModules(t.Context(), dir); err != nil {
			unavailable(t, "installing the suite: %v", err)
		}
		t.Logf("made %s in %v", dir, time.Since(began).Round(time.Second))
	}
	s.node = findNode(t, s.modules)
	return s
}

// inputs are the files that npm installs by.
var inputs = []string{"package.json", "package-lock.json", ".npmrc"}

// makeModules makes dir, or leaves nothing there: npm works beside dir, and a rename puts its work in place, so that dir is
// never half made and of two processes one wins.
func makeModules(ctx context.Context, dir string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	removeStale(dir + ".tmp-*")
	build, err := os.MkdirTemp(filepath.Dir(dir), filepath.Base(dir)+".tmp-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(build)
	for _, name := range inputs {
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(build, name), text, 0o644); err != nil {
			return err
		}
	}

	ctx, cancel := context.WithTimeout(ctx, installTimeout)
	defer cancel()
	// Exactly what the lock file says, by its hashes, and none of the packages' own scripts.
	cmd := exec.CommandContext(ctx, "npm", "ci", "--ignore-scripts", "--include=optional", "--no-audit", "--no-fund", "--loglevel=error")
	cmd.Dir = build
	cmd.WaitDelay = time.Second
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%v: %w\n%s", cmd, err, out)
	}

	err = os.Rename(build, dir)
	if _, statErr := os.Stat(dir); statErr == nil {
		return nil // ours, or that of another process which was faster
	}
	return err
}

// findNode returns the Node.js among the modules, or the machine's own where the registry has none for it.
func findNode(t *testing.T, modules string) string {
	arch := runtime.GOARCH
	if arch == "amd64" {
		arch = "x64"
	}
	node := filepath.Join(modules, "node-"+runtime.GOOS+"-"+arch, "bin", "node")
	if _, err := os.Stat(node); err != nil {
		node = "node"
	}
	version, err := exec.CommandContext(t.Context(), node, "--version").Output()
	if err != nil {
		unavailable(t, "no Node.js: %v", err)
	}
	major, _, _ := strings.Cut(strings.TrimPrefix(string(version), "v"), ".")
	if n, err := strconv.Atoi(major); err != nil || n < oldestNode {
		unavailable(t, "%s is version %s; want %d at least", node, strings.TrimSpace(string(version)), oldestNode)
	}
	return node
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

// unavailable ends the test for want of something that this machine lacks: as a skip, or as a failure where
// OPENENV_INTEROP=require says that it must not go unseen.
func unavailable(t *testing.T, format string, args ...any) {
	t.Helper()
	if os.Getenv("OPENENV_INTEROP") == "require" {
		t.Fatalf(format, args...)
	}
	t.Skipf(format, args...)
}
