package transport

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/openenv-go/openenv-go/pkg/access"
	"github.com/openenv-go/openenv-go/pkg/session"
)

// limits hold each caller to its share: so many requests in a second, so many sessions at once.
type limits struct {
	rate     rate.Limit // 0: no limit
	burst    int
	sessions int // 0: no limit

	mu      sync.Mutex // guards what follows
	buckets map[string]*rate.Limiter
	swept   time.Time      // when those who had rested were last forgotten
	open    map[string]int // sessions by the name of who has opened them
}

func newLimits(perSecond float64, sessions int) *limits {
	return &limits{
		rate: rate.Limit(perSecond), burst: int(max(1, math.Ceil(perSecond))), sessions: sessions,
		buckets: map[string]*rate.Limiter{}, open: map[string]int{},
	}
}

// maxBuckets is how many callers are remembered before those who have rested are forgotten, now and then: looking for them
// takes a while.
const (
	maxBuckets = 10_000
	sweepEvery = 10 * time.Second
)

// bucket is a caller's; nil: there is no limit.
func (l *limits) bucket(key string) *rate.Limiter {
	if l.rate == 0 {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.buckets[key]
	if b == nil {
		if now := time.Now(); len(l.buckets) >= maxBuckets && now.Sub(l.swept) >= sweepEvery {
			l.swept = now
			for k, b := range l.buckets {
				if b.Tokens() >= float64(l.burst) { // as a new one is
					delete(l.buckets, k)
				}
			}
		}
		b = rate.NewLimiter(l.rate, l.burst)
		l.buckets[key] = b
	}
	return b
}

// allow takes one request of a caller, or says after how long it may come again.
func (l *limits) allow(r *http.Request) (again time.Duration, ok bool) {
	if l.rate == 0 {
		return 0, true
	}
	taken := l.bucket(limitKey(r)).Reserve()
	if again = taken.Delay(); again == 0 {
		return 0, true
	}
	taken.Cancel()
	return again, false
}

// pace waits until one more message of a caller's may be answered.
func (l *limits) pace(ctx context.Context, key string) {
	if b := l.bucket(key); b != nil {
		_ = b.Wait(ctx) // when ctx ends nothing is answered any more
	}
}

// take counts a session of a caller's, or refuses it. Who has shown no token is not counted.
func (l *limits) take(name string) error {
	if l.sessions == 0 || name == "" {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := l.open[name]; n >= l.sessions {
		return &session.Error{
			Code: session.CapacityReached, Active: n, Max: l.sessions,
			Message: fmt.Sprintf("the token has all the sessions that it may have (%d); end one of them", n),
		}
	}
	l.open[name]++
	return nil
}

// give takes it off again.
func (l *limits) give(name string) {
	if l.sessions == 0 || name == "" {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[name]--; l.open[name] == 0 {
		delete(l.open, name)
	}
}

// open opens a session for a caller.
func (s *Server) open(ctx context.Context, origin session.Origin, by access.Caller) (*session.Session, error) {
	if err := s.limits.take(by.Name); err != nil {
		s.log.Warn("no session for the caller", "event", "sessions_per_token", "caller", by.Name, "max", s.limits.sessions)
		return nil, err
	}
	live, err := s.sessions.Open(ctx, origin, by.Name)
	if err != nil {
		s.limits.give(by.Name)
		return nil, err
	}
	if s.limits.sessions > 0 {
		live.WhenEnded(func() { s.limits.give(by.Name) }) // not before its slot is free: a call may hold that for long
	}
	return live, nil
}
