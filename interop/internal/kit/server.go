package kit

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
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
	startTimeout = 30 * time.Second // a server prints its addresses
	stopTimeout  = 15 * time.Second // a server ends after SIGTERM
	askTimeout   = 10 * time.Second
)

// Build builds a command of this module, such as ./examples/echo, with the race detector where the test has it.
func Build(t *testing.T, command string) (program string) {
	t.Helper()
	program = filepath.Join(t.TempDir(), filepath.Base(command))
	args := []string{"build", "-o", program}
	if raceEnabled() {
		args = append(args, "-race")
	}
	build := exec.CommandContext(t.Context(), "go", append(args, command)...)
	build.Dir = root(t)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", build, err, out)
	}
	return program
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

// A Server is a running server's addresses: http://127.0.0.1:PORT.
type Server struct {
	URL     string
	Control string // where /sessions is
}

// Start starts a server, with a control listener beside, on ports of their own choice. At the end of the test it must stop
// cleanly on SIGTERM.
func Start(t *testing.T, program string, flags ...string) Server {
	t.Helper()
	// Cancelling sends SIGTERM; WaitDelay later Wait kills.
	ctx, stop := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, program, append([]string{"-addr", "127.0.0.1:0", "-control-addr", "127.0.0.1:0"}, flags...)...)
	cmd.Env = Environ()
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = stopTimeout
	stdout := &addressWriter{found: make(chan Server, 1)}
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
		if strings.Contains(stderr.String(), "DATA RACE") {
			t.Error("the race detector has found something")
		}
		if t.Failed() {
			t.Logf("server's stdout:\n%s\nserver's stderr:\n%s", &stdout.all, &stderr)
		}
	})

	select {
	case s := <-stdout.found:
		return s
	case err := <-exited:
		exited <- err // for the cleanup
		t.Fatalf("the server ended before it printed its addresses: %v", err)
	case <-time.After(startTimeout):
		t.Fatalf("the server printed no address within %v", startTimeout)
	}
	return Server{}
}

var (
	publicPattern  = regexp.MustCompile(`is listening on (http://127\.0\.0\.1:\d+)`)
	controlPattern = regexp.MustCompile(`(http://127\.0\.0\.1:\d+)/sessions`)
)

// addressWriter keeps all that a server prints and sends the addresses in it to found.
type addressWriter struct {
	all   bytes.Buffer
	once  sync.Once
	found chan Server // has room for one
}

func (w *addressWriter) Write(p []byte) (int, error) {
	w.all.Write(p)
	// Only whole lines, lest a port be cut short.
	lines := w.all.Bytes()[:bytes.LastIndexByte(w.all.Bytes(), '\n')+1]
	public, control := publicPattern.FindSubmatch(lines), controlPattern.FindSubmatch(lines)
	if public != nil && control != nil {
		w.once.Do(func() { w.found <- Server{string(public[1]), string(control[1])} })
	}
	return len(p), nil
}

// CheckEmpty fails the test if the clients have left sessions behind. Ends that are under way are waited for.
func (s Server) CheckEmpty(t *testing.T) {
	t.Helper()
	client := &http.Client{Timeout: askTimeout}
	deadline := time.Now().Add(askTimeout)
	for {
		var list struct {
			Active   int             `json:"active_sessions"`
			Sessions json.RawMessage `json:"sessions"`
		}
		res, err := client.Get(s.Control + "/sessions")
		if err != nil {
			t.Error(err)
			return
		}
		err = json.NewDecoder(res.Body).Decode(&list)
		res.Body.Close()
		switch {
		case err != nil:
			t.Error(err)
			return
		case list.Active == 0:
			return
		case time.Now().After(deadline):
			t.Errorf("%d sessions are left: %s", list.Active, list.Sessions)
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
}
