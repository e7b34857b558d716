package scale

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/openenv-go/openenv-go/bench/internal/load"
	"github.com/openenv-go/openenv-go/bench/internal/proc"
	"github.com/openenv-go/openenv-go/bench/internal/report"
)

// Settings say how large an experiment is.
type Settings struct {
	Sessions int
	Wait     time.Duration // of the step
	Servers  int           // processes; 0: as many as the limits of this machine ask for
}

// Run runs the experiment with servers that are started by these arguments.
func Run(ctx context.Context, s Settings, server []string) (out report.Scale, err error) {
	fit, err := proc.RaiseFiles(s.Sessions)
	if err != nil {
		return out, err
	}
	servers := s.Servers
	if servers == 0 {
		servers = (s.Sessions + fit - 1) / fit
	}
	clients := max(servers, (s.Sessions+fit-1)/fit)
	if s.Sessions > servers*fit {
		return out, fmt.Errorf("a process may have %d connections here: %d sessions need %d servers", fit, s.Sessions, clients)
	}
	out = report.Scale{Sessions: s.Sessions, Wait: s.Wait, Servers: servers, Clients: clients}

	var started []*proc.Server
	defer func() {
		for _, s := range started {
			s.Stop()
		}
	}()
	for range servers {
		s, err := proc.Start(ctx, report.Ours, nil, server...)
		if err != nil {
			return out, err
		}
		started = append(started, s)
	}
	cpu, err := used(started)
	if err != nil {
		return out, err
	}
	tallies, err := runWorkers(ctx, s, started, clients)
	if err != nil {
		return out, err
	}
	after, err := used(started)
	out.ServerCPU = after - cpu
	gather(&out, tallies)
	return out, err
}

func used(all []*proc.Server) (sum time.Duration, err error) {
	for _, s := range all {
		cpu, err := proc.CPU(s.PID)
		if err != nil {
			return 0, err
		}
		sum += cpu
	}
	return sum, nil
}

// runWorkers has that many workers share the sessions.
func runWorkers(ctx context.Context, s Settings, servers []*proc.Server, n int) ([]tally, error) {
	workers := make([]*worker, n)
	defer func() {
		for _, w := range workers {
			if w != nil {
				w.stop()
			}
		}
	}()
	first := 0
	for i := range n {
		share := (s.Sessions - first) / (n - i)
		w, err := startWorker(task{servers[i%len(servers)].Addr, first, share, s.Wait})
		if err != nil {
			return nil, err
		}
		workers[i], first = w, first+share
	}
	defer context.AfterFunc(ctx, func() {
		for _, w := range workers {
			w.cmd.Process.Kill()
		}
	})()
	for _, w := range workers {
		if err := w.await(); err != nil {
			return nil, err
		}
	}
	tallies := make([]tally, n)
	var eg errgroup.Group
	for i, w := range workers {
		eg.Go(func() (err error) {
			tallies[i], err = w.play()
			return err
		})
	}
	return tallies, eg.Wait()
}

// A worker is a process of clients.
type worker struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func startWorker(t task) (*worker, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	w := &worker{cmd: exec.Command(self)}
	w.cmd.Env = append(os.Environ(), workVariable+"=1")
	w.cmd.Stderr = os.Stderr
	w.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if w.in, err = w.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := w.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	w.out = bufio.NewReader(out)
	if err := w.cmd.Start(); err != nil {
		return nil, err
	}
	if err := json.NewEncoder(w.in).Encode(t); err != nil {
		w.stop()
		return nil, err
	}
	return w, nil
}

func (w *worker) await() error {
	line, err := w.out.ReadString('\n')
	if line != ready {
		return fmt.Errorf("a client is not ready: %q, %w", line, err)
	}
	return nil
}

func (w *worker) play() (t tally, err error) {
	if _, err := io.WriteString(w.in, "\n"); err != nil {
		return t, err
	}
	return t, json.NewDecoder(w.out).Decode(&t)
}

func (w *worker) stop() {
	w.in.Close()
	w.cmd.Process.Kill()
	w.cmd.Wait()
}

// gather sums up.
func gather(out *report.Scale, tallies []tally) {
	open, step, whole := load.NewRecorder(), load.NewRecorder(), load.NewRecorder()
	for _, t := range tallies {
		out.Succeeded += t.Succeeded
		out.Took = max(out.Took, t.Took)
		if room := shown - len(out.Failures); room > 0 {
			out.Failures = append(out.Failures, t.Failures[:min(room, len(t.Failures))]...)
		}
		open.Merge(t.Open)
		step.Merge(t.Step)
		whole.Merge(t.Whole)
	}
	phase := func(r *load.Recorder) report.Phase {
		l := r.Sum()
		return report.Phase{P50: l.P50, P99: l.P99, Max: l.Max}
	}
	out.Open, out.Step, out.Whole = phase(open), phase(step), phase(whole)
}
