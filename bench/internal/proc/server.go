package proc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"sync"
	"syscall"
	"time"

	"github.com/openenv-go/openenv-go/bench/internal/host"
)

const (
	startTimeout = 60 * time.Second // Python imports much
	stopTimeout  = 20 * time.Second
	askTimeout   = 30 * time.Second
)

// A Server is a running server. Its methods may be called concurrently, save Stop.
type Server struct {
	Name    string
	Addr    string        // host:port
	StartUp time.Duration // from its start until it answered GET /health
	PID     int

	cmd    *exec.Cmd
	output *output // what it prints
	log    *os.File
	debug  string // address of its debug listener: http://host:port, or ""
	exited chan struct{}
}

// Start starts a server, which must print http://127.0.0.1:PORT, and waits until it answers. env is added to this
// process's environment.
func Start(ctx context.Context, name string, env []string, args ...string) (*Server, error) {
	s := &Server{Name: name, output: newOutput(), exited: make(chan struct{})}
	var err error
	if s.log, err = unnamedFile(); err != nil {
		return nil, err
	}
	s.cmd = exec.Command(args[0], args[1:]...)
	s.cmd.Env = append(append(os.Environ(), host.DebugVariable+"=1"), env...)
	s.cmd.Stdout, s.cmd.Stderr = s.output, s.log                         // a file costs the server what it costs in production, and this process nothing
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // it must not outlive a harness that is killed
	begin := time.Now()
	if err := s.cmd.Start(); err != nil {
		s.log.Close()
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	s.PID = s.cmd.Process.Pid
	go func() {
		s.cmd.Wait()
		close(s.exited)
	}()
	if err := s.await(ctx); err != nil {
		text := s.Output()
		s.Stop()
		return nil, fmt.Errorf("%s: %w; it wrote:\n%s", name, err, text)
	}
	s.StartUp = time.Since(begin)
	return s, nil
}

func (s *Server) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	select {
	case s.Addr = <-s.output.addr:
	case <-s.exited:
		return errors.New("it ended before it was ready")
	case <-ctx.Done():
		return errors.New("it did not say where it listens")
	}
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.Addr+"/health", nil)
		if err != nil {
			return err
		}
		res, err := http.DefaultClient.Do(req)
		if err == nil {
			io.Copy(io.Discard, res.Body)
			res.Body.Close()
			if res.StatusCode == http.StatusOK {
				break
			}
		}
		select {
		case <-time.After(2 * time.Millisecond):
		case <-s.exited:
			return errors.New("it ended before it answered")
		case <-ctx.Done():
			return fmt.Errorf("it does not answer: %w", ctx.Err())
		}
	}
	s.debug = s.output.debugAddr()
	return nil
}

// unnamedFile is a file that goes when it is closed.
func unnamedFile() (*os.File, error) {
	f, err := os.CreateTemp("", "openenv-bench-log-*")
	if err == nil {
		err = os.Remove(f.Name())
	}
	return f, err
}

// Stop ends the server and waits until it has ended.
func (s *Server) Stop() {
	defer s.log.Close()
	s.cmd.Process.Signal(syscall.SIGINT)
	select {
	case <-s.exited:
	case <-time.After(stopTimeout):
		s.cmd.Process.Kill()
		<-s.exited
	}
}

// keptLog is how much of a server's log is shown.
const keptLog = 2 << 10

// Output is what the server has printed, and the end of its log.
func (s *Server) Output() string {
	text := []byte(s.output.String())
	if info, err := s.log.Stat(); err == nil {
		end := make([]byte, min(info.Size(), keptLog))
		n, _ := s.log.ReadAt(end, info.Size()-int64(len(end)))
		text = append(text, end[:n]...)
	}
	return string(text)
}

// Figures asks a Go server's runtime; ok is false for others. With collect it collects garbage first.
func (s *Server) Figures(ctx context.Context, collect bool) (f host.Figures, ok bool, err error) {
	if s.debug == "" {
		return f, false, nil
	}
	path := "/figures"
	if collect {
		path = "/gc"
	}
	err = s.ask(ctx, path, func(body io.Reader) error { return json.NewDecoder(body).Decode(&f) })
	return f, err == nil, err
}

// Profiles says whether a profile can be taken of it: it is one of the Go programs.
func (s *Server) Profiles() bool { return s.debug != "" }

// Profile writes a CPU profile of the next d to w.
func (s *Server) Profile(ctx context.Context, d time.Duration, w io.Writer) error {
	if s.debug == "" {
		return fmt.Errorf("%s has no debug listener", s.Name)
	}
	return s.ask(ctx, fmt.Sprintf("/debug/pprof/profile?seconds=%d", max(1, int(d.Seconds()))), func(body io.Reader) error {
		_, err := io.Copy(w, body)
		return err
	})
}

func (s *Server) ask(ctx context.Context, path string, use func(io.Reader) error) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.debug+path, nil)
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", req.URL, res.Status)
	}
	return use(res.Body)
}

var (
	addrPattern  = regexp.MustCompile(`listening on http://(127\.0\.0\.1:\d+)`)
	debugPattern = regexp.MustCompile(`debug listener: (http://127\.0\.0\.1:\d+)\n`)
)

// output takes what a server prints, and finds the addresses in it.
type output struct {
	addr chan string // has room for one

	mu    sync.Mutex
	text  []byte // until they are found
	found bool
	debug string
}

func newOutput() *output { return &output{addr: make(chan string, 1)} }

// Write looks for the addresses until they are there.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.found {
		return len(p), nil
	}
	o.text = append(o.text, p...)
	lines := o.text[:bytes.LastIndexByte(o.text, '\n')+1]
	if m := debugPattern.FindSubmatch(lines); m != nil {
		o.debug = string(m[1])
	}
	if m := addrPattern.FindSubmatch(lines); m != nil {
		o.found = true
		o.addr <- string(m[1])
	}
	return len(p), nil
}

func (o *output) debugAddr() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.debug
}

// String is what it printed until then.
func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return string(o.text)
}
