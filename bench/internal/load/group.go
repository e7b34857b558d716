package load

import (
	"context"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// A Group is sessions that step side by side.
type Group struct {
	sessions []Session
	steps    []int // that each has taken
}

// opening is how many sessions are opened or closed at once.
const opening = 32

// Open opens n sessions.
func Open(ctx context.Context, door Door, t Target, n int) (*Group, error) {
	g := &Group{make([]Session, n), make([]int, n)}
	d, p := new(dialer), &plan{size: t.Size}
	var eg errgroup.Group
	eg.SetLimit(opening)
	for i := range n {
		eg.Go(func() (err error) {
			if err := ctx.Err(); err != nil {
				return err
			}
			if g.sessions[i], err = door.open(ctx, t, d, p, i); err != nil {
				return fmt.Errorf("%s, session %d: %w", door.Name, i, err)
			}
			return nil
		})
	}
	if err := eg.Wait(); err != nil {
		g.Cut()
		return nil, err
	}
	return g, nil
}

// Cut ends all connections at once.
func (g *Group) Cut() {
	for _, s := range g.sessions {
		if s != nil {
			s.Cut()
		}
	}
}

// Close closes all sessions.
func (g *Group) Close() error {
	var eg errgroup.Group
	eg.SetLimit(opening)
	for _, s := range g.sessions {
		eg.Go(s.Close)
	}
	return eg.Wait()
}

// patience is how long the last steps of a run may take beyond its time.
const patience = 5 * time.Minute

// Run has every session take step after step for d, at least one, and waits for all replies. It returns how long that
// took in all. Latencies go to r. The first reply that is wrong, or does not come, ends the run and the group.
func (g *Group) Run(ctx context.Context, d time.Duration, r *Recorder) (time.Duration, error) {
	var (
		wg       sync.WaitGroup
		failed   atomic.Bool
		mu       sync.Mutex
		failures []error
	)
	watchdog := time.AfterFunc(d+patience, g.Cut)
	defer watchdog.Stop()
	defer context.AfterFunc(ctx, g.Cut)()
	begin := time.Now()
	for i, s := range g.sessions {
		wg.Go(func() {
			for last := begin; !failed.Load(); {
				err := s.Step(g.steps[i])
				g.steps[i]++
				now := time.Now()
				if err != nil {
					failed.Store(true)
					mu.Lock()
					failures = append(failures, fmt.Errorf("session %d, step %d: %w", i, g.steps[i], err))
					mu.Unlock()
					g.Cut()
					return
				}
				r.Record(i, now.Sub(last))
				if last = now; now.Sub(begin) >= d {
					return
				}
			}
		})
	}
	wg.Wait()
	if len(failures) > 0 {
		return 0, fmt.Errorf("%w (and %d other sessions)", failures[0], len(failures)-1)
	}
	return time.Since(begin), ctx.Err()
}

// Rest has the clients of sockets answer pings and nothing else until the group is cut; it takes no step any more. lost is how many
// of them have lost their connection.
func (g *Group) Rest() (lost func() int64) {
	var n atomic.Int64
	for _, s := range g.sessions {
		if s, ok := s.(*socket); ok {
			go func() {
				s.readText(io.Discard) // until it fails: nothing is due
				n.Add(1)
			}()
		}
	}
	return n.Load
}

// Once has every session take one step, some of them at a time.
func (g *Group) Once(ctx context.Context) error {
	defer context.AfterFunc(ctx, g.Cut)()
	var eg errgroup.Group
	eg.SetLimit(opening)
	for i, s := range g.sessions {
		eg.Go(func() error {
			if err := s.Step(g.steps[i]); err != nil {
				return fmt.Errorf("session %d: %w", i, err)
			}
			g.steps[i]++
			return nil
		})
	}
	return eg.Wait()
}

// Clients are sessions that come and go, each when it is asked for.
type Clients struct {
	door Door
	t    Target
	dial dialer
	plan plan
}

// NewClients opens and closes a session, by which they learn what a reply looks like.
func NewClients(ctx context.Context, door Door, t Target) (*Clients, error) {
	c := &Clients{door: door, t: t, plan: plan{size: t.Size}}
	s, err := c.Open(ctx, 0)
	if err != nil {
		return nil, err
	}
	return c, s.Close()
}

// Open opens a session. It may be called concurrently.
func (c *Clients) Open(ctx context.Context, client int) (Session, error) {
	return c.door.open(ctx, c.t, &c.dial, &c.plan, client)
}

// Churn opens and closes sessions for d, as many at once as width. The time of an opening, up to its first reply, goes to r.
func (c *Clients) Churn(ctx context.Context, width int, d time.Duration, r *Recorder) (time.Duration, error) {
	begin := time.Now()
	var eg errgroup.Group
	for i := range width {
		eg.Go(func() error {
			for ctx.Err() == nil && time.Since(begin) < d {
				start := time.Now()
				s, err := c.Open(ctx, i+1)
				if err != nil {
					return err
				}
				r.Record(i, time.Since(start))
				if err := s.Close(); err != nil {
					return fmt.Errorf("closing: %w", err)
				}
			}
			return ctx.Err()
		})
	}
	err := eg.Wait()
	return time.Since(begin), err
}
