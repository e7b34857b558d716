package measure

import (
	"context"
	"time"

	"github.com/openenv-go/openenv-go/bench/internal/load"
	"github.com/openenv-go/openenv-go/bench/internal/proc"
	"github.com/openenv-go/openenv-go/bench/internal/report"
)

const (
	// settling is how long sessions lie idle before they are measured.
	settling = 5 * time.Second
	// referenceIdle is how many of them the reference is given: each has a thread there, and costs much more.
	referenceIdle = 1_000
)

// Idle measures what idle sessions cost that /ws has opened, each after a step.
func (b *Bench) Idle(ctx context.Context) (out []report.Idle, err error) {
	for _, name := range b.having(wsStep) {
		n := b.settings.Idle
		if name == report.Reference {
			n = max(1, min(n/10, referenceIdle))
		}
		b.logf("%d idle sessions at %s", n, name)
		one, err := b.idle(ctx, name, n)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil { // the others go on
			b.logf("%s FAILED: %v", name, err)
			one.Failure = err.Error()
		}
		out = append(out, one)
	}
	return out, nil
}

func (b *Bench) idle(ctx context.Context, name string, n int) (i report.Idle, err error) {
	i = report.Idle{Server: name, Sessions: n}
	door, err := load.DoorOf(wsStep)
	if err != nil {
		return i, err
	}
	server, err := b.start(ctx, name)
	if err != nil {
		return i, err
	}
	defer server.Stop()
	if err := warm(ctx, door, b.target(server, wsStep, smallText)); err != nil {
		return i, err
	}
	before, err := footprintOf(ctx, server, true)
	if err != nil {
		return i, err
	}
	group, err := load.Open(ctx, door, b.target(server, wsStep, smallText), n)
	if err != nil {
		return i, err
	}
	defer group.Cut()
	if err := group.Once(ctx); err != nil {
		return i, err
	}
	select {
	case <-time.After(settling):
	case <-ctx.Done():
		return i, ctx.Err()
	}
	after, err := footprintOf(ctx, server, false)
	if err != nil {
		return i, err
	}
	per := func(total int64) float64 { return float64(total) / float64(n) }
	i.Asleep = int64(per(after.rss - before.rss))
	i.Threads = per(after.threads - before.threads)
	i.Goroutines = per(after.goroutines - before.goroutines)
	if !after.runtime {
		return i, nil
	}
	if after, err = footprintOf(ctx, server, true); err == nil {
		i.Collected = int64(per(after.rss - before.rss))
	}
	return i, err
}

// warm opens and closes some sessions, so that what is there once only is not counted as theirs.
func warm(ctx context.Context, door load.Door, t load.Target) error {
	group, err := load.Open(ctx, door, t, opening)
	if err != nil {
		return err
	}
	if err := group.Once(ctx); err != nil {
		return err
	}
	return group.Close()
}

type footprint struct {
	rss, threads, goroutines int64
	runtime                  bool // it is a Go program
}

func footprintOf(ctx context.Context, s *proc.Server, collected bool) (f footprint, err error) {
	figures, ok, err := s.Figures(ctx, collected)
	if err != nil {
		return f, err
	}
	status, err := proc.StatusOf(s.PID)
	return footprint{status.RSS, status.Threads, int64(figures.Goroutines), ok}, err
}

// Starts measures starts of all servers.
func (b *Bench) Starts(ctx context.Context) (out []report.Start, err error) {
	b.logf("starts")
	for _, name := range b.settings.Servers {
		s := report.Start{Server: name, Binary: b.programs[name].size}
		for range b.settings.Starts {
			server, err := b.start(ctx, name)
			if err != nil {
				return nil, err
			}
			status, err := proc.StatusOf(server.PID)
			server.Stop()
			if err != nil {
				return nil, err
			}
			s.Times, s.RSS = append(s.Times, server.StartUp), status.RSS
		}
		out = append(out, s)
	}
	return out, nil
}
