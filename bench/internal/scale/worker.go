package scale

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/openenv-go/openenv-go/bench/internal/load"
)

// workVariable makes a process a worker; see [Work].
const workVariable = "BENCH_SCALE_WORKER"

// A task is a worker's share.
type task struct {
	Addr     string
	First    int // number of its first client
	Sessions int
	Wait     time.Duration
}

// A tally is what it has seen.
type tally struct {
	Succeeded, Failed int
	Failures          []string // some
	Took              time.Duration
	Open, Step, Whole *hdrhistogram.Snapshot
}

// ready is what a worker prints when it may begin. It begins when it reads a line.
const ready = "ready\n"

// Work makes this process a client, and ends it, where [Run] has started it as one. A program that calls Run must call Work
// first.
func Work() {
	if os.Getenv(workVariable) == "" {
		return
	}
	if err := work(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func work(in io.Reader, out io.Writer) error {
	lines := bufio.NewReader(in)
	line, err := lines.ReadBytes('\n')
	if err != nil {
		return err
	}
	var t task
	if err := json.Unmarshal(line, &t); err != nil {
		return err
	}
	door, err := load.DoorOf("ws-step")
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*t.Wait+patience) // the first request, which is judged, waits as a step does
	defer cancel()
	clients, err := load.NewClients(ctx, door, load.Target{Addr: t.Addr, Size: textSize, Seconds: t.Wait.Seconds()})
	if err != nil {
		return err
	}
	if _, err := io.WriteString(out, ready); err != nil {
		return err
	}
	if _, err := lines.ReadBytes('\n'); err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(play(ctx, clients, t))
}

const (
	textSize = 32
	// patience is how long all may take beside what steps wait.
	patience = 3 * time.Minute
	// connecting is how many sessions of a worker are on their way to their first reply at a time; the others wait, and
	// their time counts. More at once would overrun the server's backlog and be told nothing for a second.
	connecting = 256
	// shown is how many failures are told.
	shown = 5
)

// play runs all sessions at once.
func play(ctx context.Context, clients *load.Clients, t task) (out tally) {
	var (
		wg                sync.WaitGroup
		mu                sync.Mutex
		slots             = make(chan struct{}, connecting)
		open, step, whole = load.NewRecorder(), load.NewRecorder(), load.NewRecorder()
	)
	begin := time.Now()
	for i := range t.Sessions {
		wg.Go(func() {
			err := one(ctx, clients, t.First+i, slots, begin, open, step, whole)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				out.Succeeded++
				return
			}
			if out.Failed++; len(out.Failures) < shown {
				out.Failures = append(out.Failures, err.Error())
			}
		})
	}
	wg.Wait()
	out.Took = time.Since(begin)
	out.Open, out.Step, out.Whole = open.Export(), step.Export(), whole.Export()
	return out
}

func one(ctx context.Context, clients *load.Clients, client int, slots chan struct{}, begin time.Time, open, step, whole *load.Recorder) error {
	select {
	case slots <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	s, err := clients.Open(ctx, client)
	<-slots
	if err != nil {
		return fmt.Errorf("opening: %w", err)
	}
	defer context.AfterFunc(ctx, s.Cut)()
	opened := time.Now()
	open.Record(client, opened.Sub(begin))
	err = s.Step(0)
	stepped := time.Now()
	if err == nil {
		step.Record(client, stepped.Sub(opened))
	}
	if err := errors.Join(err, s.Close()); err != nil {
		return err
	}
	whole.Record(client, time.Since(begin))
	return nil
}
