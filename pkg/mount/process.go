package mount

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/openenv-go/openenv-go/pkg/gym"
)

const (
	// defaultGrace keeps an end with two pauses within the time that a server allows for the end of a session.
	defaultGrace = 2 * time.Second
	// drainLimit bounds the reading of what a process wrote before it ended, where others still hold its pipes open.
	drainLimit = 500 * time.Millisecond
	// reapLimit is how long a killed process may take to go: the kernel may hold it.
	reapLimit = 5 * time.Second
)

// A Process is an MCP server that is started for each connection, and spoken to over its standard input and output. What
// it writes to its standard error goes to the log. It has a process group of its own, which goes with it.
type Process struct {
	Name  string        // a path, or a name to look up in PATH
	Args  []string      // without the name
	Dir   string        // where it runs; "": where the environment runs
	Env   []string      // variables ("key=value") beside those of the environment's process
	Grace time.Duration // pause between the close of its input and SIGTERM, and again before SIGKILL; 0: 2 s
}

// Command is the [Process] of a command line.
func Command(name string, args ...string) Process { return Process{Name: name, Args: args} }

// Connect starts the process. See [gym.Connector].
func (c Process) Connect(ctx context.Context, log *slog.Logger) (gym.Upstream, error) {
	run, err := c.start(log)
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", c.Name, err)
	}
	up, err := greet(ctx, newPeer(run, judgePipe, run.log), run.kill, nil)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.Name, err)
	}
	return up, nil
}

// judgePipe: a line that was not written whole is no request to its reader, and who does not read is no server.
func judgePipe(error) (unsent, fatal bool) { return true, true }

// A process is one that runs, as a connection. Its input is closed first when it ends, and its group is killed last, so
// nothing that it has started outlives it.
type process struct {
	*lines
	cmd           *exec.Cmd
	grace         time.Duration
	log           *slog.Logger
	stdin, stdout *os.File
	exited        chan struct{} // closed when it has been waited for; how stands then
	how           string
	stderrRead    chan struct{} // closed when its standard error has ended

	closing sync.Once
	closed  chan struct{} // closed when Close is done
}

func (c Process) start(log *slog.Logger) (_ *process, err error) {
	var opened []*os.File
	pipe := func() (r, w *os.File) {
		if err == nil {
			if r, w, err = os.Pipe(); err == nil {
				opened = append(opened, r, w)
			}
		}
		return r, w
	}
	childIn, stdin := pipe()
	stdout, childOut := pipe()
	stderr, childErr := pipe()
	cmd := exec.Command(c.Name, c.Args...)
	if err == nil {
		// Files, not writers: with writers, waiting for the process would wait for all who hold its pipes.
		cmd.Stdin, cmd.Stdout, cmd.Stderr = childIn, childOut, childErr
		cmd.Dir, cmd.Env = c.Dir, append(cmd.Environ(), c.Env...)
		ownGroup(cmd)
		err = cmd.Start()
	}
	if err != nil {
		for _, f := range opened {
			f.Close()
		}
		return nil, err
	}
	for _, f := range []*os.File{childIn, childOut, childErr} {
		f.Close()
	}
	log = log.With("pid", cmd.Process.Pid)
	p := &process{
		lines: newLines(stdout, stdin, log), cmd: cmd, grace: c.Grace, log: log, stdin: stdin, stdout: stdout,
		exited: make(chan struct{}), stderrRead: make(chan struct{}), closed: make(chan struct{}),
	}
	if p.grace <= 0 {
		p.grace = defaultGrace
	}
	go func() {
		defer close(p.stderrRead)
		defer stderr.Close()
		newDiary(log, "stderr").copy(stderr)
	}()
	go p.reap(stderr)
	return p, nil
}

// reap waits for the process, so that it is no zombie, and ends what it leaves behind: a pipe that a grandchild holds would
// hide its end from the reader.
func (p *process) reap(stderr *os.File) {
	err := p.cmd.Wait()
	signalGroup(p.cmd, true)
	if p.how = "exit status 0"; err != nil {
		p.how = err.Error()
	}
	limit := time.Now().Add(drainLimit)
	_ = p.stdout.SetReadDeadline(limit)
	_ = stderr.SetReadDeadline(limit)
	close(p.exited)
}

// Read returns the next message. The end of the process is told by how it ended.
func (p *process) Read(ctx context.Context) (jsonrpc.Message, error) {
	m, err := p.lines.Read(ctx)
	if errors.Is(err, io.EOF) || errors.Is(err, os.ErrDeadlineExceeded) {
		if err = errors.New("it closed its standard output"); p.gone(drainLimit) {
			err = errors.New("its process has ended: " + p.how)
		}
	}
	return m, err
}

// Close ends the process: its input is closed, then it is asked, then it is killed. It returns when it has gone.
func (p *process) Close() error {
	p.closing.Do(func() {
		go func() {
			defer close(p.closed)
			p.stdin.Close()
			if !p.gone(p.grace) {
				signalGroup(p.cmd, false)
			}
			if !p.gone(p.grace) {
				p.log.Warn("mounted server killed, since it did not end", "event", "mount_killed")
				signalGroup(p.cmd, true)
			}
			if !p.gone(reapLimit) {
				p.log.Error("mounted server cannot be ended", "event", "mount_unkillable")
				p.stdout.Close()
				return
			}
			p.stdout.Close()
			<-p.stderrRead
		}()
	})
	<-p.closed
	return nil
}

// kill ends the process at once, for one that has not begun to serve. Close must follow.
func (p *process) kill() {
	if !p.gone(0) { // its number may be another's by now
		signalGroup(p.cmd, true)
	}
}

func (p *process) gone(limit time.Duration) bool {
	select {
	case <-p.exited:
		return true
	default:
	}
	t := time.NewTimer(limit)
	defer t.Stop()
	select {
	case <-p.exited:
		return true
	case <-t.C:
		return false
	}
}
