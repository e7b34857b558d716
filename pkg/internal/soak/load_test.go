package soak

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// A load is what the clients do and find, over the whole run.
type load struct {
	server *server
	http   *http.Client

	replies, effects atomic.Int64 // checked
	silent, staying  atomic.Int64 // clients that are half open, and that have one session for long

	mu         sync.Mutex // guards what follows
	counts     map[string]int
	unexpected []string
	latency    histogram
	peak       int
}

// actors is how many clients there are at a time.
const actors = 64

// An actor is one client, which plays one part after another.
type actor struct {
	*load
	*rand.Rand
	phase context.Context // ends when the load is to stop
}

// A part is something that a client does. What it returns is unexpected, unless it is errRefused.
type part struct {
	name   string
	weight int
	play   func(*actor) error
}

// errRefused is a session that could not be had, as may happen: the server was full, or the factory failed.
var errRefused = errors.New("refused")

// run has all actors play until the phase ends. There are more of them than parts.
func (l *load) run(phase context.Context, seed uint64) {
	total := 0
	for _, p := range parts {
		total += p.weight
	}
	var wg sync.WaitGroup
	for i := range actors {
		wg.Go(func() {
			a := &actor{l, rand.New(rand.NewPCG(seed, uint64(i))), phase}
			a.play(parts[i%len(parts)]) // so that nothing is left out
			for phase.Err() == nil {
				n := a.IntN(total)
				at := slices.IndexFunc(parts, func(p part) bool { n -= p.weight; return n < 0 })
				a.play(parts[at])
			}
		})
	}
	wg.Wait()
}

func (a *actor) play(p part) {
	start := time.Now()
	err := p.play(a)
	if errors.Is(err, errRefused) {
		defer a.pause(300) // and then it tries something else
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.counts[p.name]++
	if err != nil && !errors.Is(err, errRefused) {
		a.counts["UNEXPECTED"]++
		if len(a.unexpected) < 30 {
			a.unexpected = append(a.unexpected, fmt.Sprintf("%s, after %v: %v", p.name, time.Since(start).Round(time.Millisecond), err))
		}
	}
}

func (l *load) count(what string) {
	l.mu.Lock()
	l.counts[what]++
	l.mu.Unlock()
}

// pause lets up to so many milliseconds pass, or the rest of the phase.
func (a *actor) pause(ms int) {
	select {
	case <-time.After(time.Duration(a.IntN(ms*1000)) * time.Microsecond):
	case <-a.phase.Done():
	}
}

// odds is true in one case of n.
func (a *actor) odds(n int) bool { return a.IntN(n) == 0 }

// open opens a socket on the gym channel and resets. The error is errRefused where there is no session to be had.
func (a *actor) open(path string) (*conn, error) {
	c, err := dial(a.server.addr, path)
	if err != nil {
		return nil, err
	}
	if err := a.reset(c); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

func (a *actor) reset(c *conn) error {
	// A server that refuses may have closed the socket before the frame is sent; what it said is there to be read.
	_ = c.send(`{"type":"reset"}`)
	r, text, err := c.reply()
	switch {
	case err != nil:
		return fmt.Errorf("opening: %w", err)
	case r.Data.Code == "CAPACITY_REACHED":
		a.count("refused: full")
		return cmp.Or(c.closedWith(1013), errRefused)
	case r.Data.Code == "FACTORY_ERROR":
		a.count("refused: factory")
		return cmp.Or(c.closedWith(1011), errRefused)
	case r.Type != "observation":
		return fmt.Errorf("opening: got %.300s", text)
	}
	a.replies.Add(1)
	return nil
}

// refused maps an answer to errRefused.
func (a *actor) refused(r rpcReply) error {
	switch {
	case r.Error == nil:
		return nil
	case r.Error.Code == -32000 && r.Error.Data.Max == maxSessions:
		a.count("refused: full")
		return errRefused
	case r.Error.Code == -32000 && r.Error.Data.Factory == "ledger":
		a.count("refused: factory")
		return errRefused
	}
	return fmt.Errorf("got %d %s", r.Error.Code, r.Error.Message)
}

// wantState holds the session's counters to what the client has done: steps of any kind, and additions, which earn 1 each.
func (a *actor) wantState(c *conn, steps, adds int) error {
	r, text, err := c.ask(`{"type":"state"}`)
	switch {
	case err != nil:
		return fmt.Errorf("state: %w", err)
	case r.Data.StepCount == nil || *r.Data.StepCount != steps || r.Data.RewardTotal == nil || *r.Data.RewardTotal != float64(adds):
		return fmt.Errorf("got %.300s, want %d steps and a reward of %d", text, steps, adds)
	}
	a.replies.Add(1)
	return nil
}

// add adds once and holds the reply to the sum.
func (a *actor) add(c *conn, sum *int) error {
	n := a.IntN(1000)
	*sum += n
	r, _, err := c.ask(step("add", fmt.Sprintf(`{"n":%d}`, n), ""))
	if err == nil {
		err = r.want(strconv.Itoa(*sum))
	}
	if err != nil {
		return fmt.Errorf("add: %w", err)
	}
	a.replies.Add(1)
	return nil
}

// leave ends a socket in one of the ways that clients do.
func (a *actor) leave(c *conn) error {
	defer c.Close()
	switch a.IntN(4) {
	case 0:
		if err := c.send(`{"type":"close"}`); err != nil {
			return err
		}
		return c.closedWith(1000)
	case 1:
		if _, err := c.Write(frame(opClose, true, "\x03\xe8")); err != nil {
			return err
		}
		return c.closedWith(1000)
	case 2:
		c.SetLinger(0)
	}
	return nil
}

// charged holds a side effect to have come about exactly once.
func (a *actor) charged(key string) error {
	n, err := a.server.ask(http.MethodPost, "/charge?key="+key)
	if err == nil && string(n) != "1" {
		err = fmt.Errorf("%s was charged %s times", key, n)
	}
	if err == nil {
		a.effects.Add(1)
	}
	return err
}

// A histogram counts durations in buckets that are 2 % wide.
type histogram struct {
	buckets [1200]int
	n       int
}

const bucketWidth = 0.02

func (h *histogram) add(d time.Duration) {
	i := int(math.Log(float64(max(d, time.Microsecond)/time.Microsecond)) / bucketWidth)
	h.buckets[min(i, len(h.buckets)-1)]++
	h.n++
}

// quantile is the duration that a share q of all stays within.
func (h *histogram) quantile(q float64) time.Duration {
	left := int(q * float64(h.n))
	for i, n := range h.buckets {
		if left -= n; left < 0 {
			return time.Duration(math.Exp(float64(i+1)*bucketWidth) * float64(time.Microsecond)).Round(10 * time.Microsecond)
		}
	}
	return 0
}
