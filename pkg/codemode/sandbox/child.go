package sandbox

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/openenv-go/openenv-go/pkg/codemode"
)

const (
	// startLimit is how long a child may take to be ready; it takes some 20 ms on a machine that is not loaded.
	startLimit = 20 * time.Second
	// lifeRuns is after how many runs a child is replaced, so that nothing piles up in it.
	lifeRuns = 1000
	// lastWords is how much of what a child wrote to its standard error goes to the log.
	lastWords = 2 << 10
)

// A child is a process that runs code, seen from the pool. After await it belongs to one run at a time.
type child struct {
	log      *slog.Logger
	cmd      *exec.Cmd
	in, out  *os.File // our ends
	errors   *os.File
	replies  *bufio.Reader
	spawned  chan struct{} // closed when there is a process, or will be none: cmd, in, out and errors stand then
	started  chan struct{} // closed when its start is over; fault and resident stand then
	fault    error
	resident int64
	waiting  sync.Once
	ending   sync.Once        // see discard
	how      *os.ProcessState // of a process that has been waited for
	killed   atomic.Bool

	tools []codemode.Tool // that it knows
	runs  int
	clean bool // its last run came to an end, and nothing is left of it
}

// start begins the start of a child. It must be ended.
func (p *Pool) start() *child {
	c := &child{log: p.options.Log, spawned: make(chan struct{}), started: make(chan struct{})}
	go c.start(p.command(), hello{Memory: p.options.Memory})
	return c
}

func (c *child) start(cmd *exec.Cmd, h hello) {
	defer close(c.started)
	began := time.Now()
	err := c.spawn(cmd)
	close(c.spawned)
	if err != nil {
		c.fault = &StartError{Reason: err.Error()}
		return
	}
	limit := time.AfterFunc(startLimit, c.kill)
	defer limit.Stop()
	if c.fault = c.greet(h); c.fault != nil {
		c.kill()
		c.wait()
		if c.fault == io.EOF {
			c.fault = &StartError{Reason: strings.TrimSpace(c.how.String() + ": " + c.words())}
		}
		return
	}
	c.log.Debug("process for code started", "event", "code_process_started", "pid", c.cmd.Process.Pid, "took", time.Since(began))
}

// spawn starts the process.
func (c *child) spawn(cmd *exec.Cmd) (err error) {
	var opened []*os.File
	pipe := func() (r, w *os.File) {
		if err == nil {
			if r, w, err = os.Pipe(); err == nil {
				opened = append(opened, r, w)
			}
		}
		return r, w
	}
	stdin, in := pipe()
	out, stdout := pipe()
	words, stderr := pipe()
	if err == nil {
		cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, stdout, stderr
		err = cmd.Start()
	}
	if err != nil {
		for _, f := range opened {
			f.Close()
		}
		return err
	}
	for _, f := range []*os.File{stdin, stdout, stderr} {
		f.Close()
	}
	c.cmd = cmd
	c.in, c.out, c.errors, c.replies = in, out, words, bufio.NewReaderSize(out, 16<<10)
	return nil
}

func (c *child) greet(h hello) error {
	if err := writeFrame(c.in, request{Hello: &h}); err != nil {
		return io.EOF // it has gone; how it ended says more
	}
	r, err := c.read(greetingBound)
	switch {
	case err != nil:
		return err
	case r.Fault != "":
		return &StartError{Reason: r.Fault}
	case r.Ready == nil:
		return &BrokenError{Reason: "it did not greet"}
	}
	c.resident = max(r.Ready.Resident, 0)
	return nil
}

// await waits until the child is ready.
func (c *child) await(ctx context.Context) error {
	select {
	case <-c.started:
		return c.fault
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// wait waits for the process, which has been killed or has ended. Nobody waits for one that may live: an idle child holds no
// goroutine, and in a test with fake time nothing that the clock would stand still for.
func (c *child) wait() {
	c.waiting.Do(func() {
		_ = c.cmd.Wait() // what it says is in the state
		c.how = c.cmd.ProcessState
	})
}

// kill ends the process, and what is read from it or written to it now. It may be called at any time once it has been spawned.
func (c *child) kill() {
	c.killed.Store(true)
	_ = c.cmd.Process.Kill() // it is gone, if this fails
	// Its pipes close only when its memory has been freed.
	_ = c.in.SetDeadline(time.Now())
	_ = c.out.SetDeadline(time.Now())
}

// end kills the process, waits for it and frees what it had here. It is called once.
func (c *child) end() {
	<-c.spawned
	if c.cmd == nil {
		<-c.started
		return
	}
	c.kill()
	<-c.started
	c.wait()
	c.log.Debug("process for code ended", "event", "code_process_ended", "pid", c.cmd.Process.Pid, "how", c.how.String(), "runs", c.runs, "stderr", c.words())
	c.in.Close()
	c.out.Close()
	c.errors.Close()
}

// words is what the process, which has ended, wrote to its standard error.
func (c *child) words() string {
	_ = c.errors.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
	b := make([]byte, lastWords)
	n, _ := io.ReadFull(c.errors, b)
	return string(b[:n])
}

func (c *child) reusable() bool {
	return c.clean && !c.killed.Load() && c.runs < lifeRuns
}
