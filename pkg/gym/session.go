package gym

import (
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/openenv-go/openenv-go/pkg/tools"
)

// A Session is what an environment value may know of the session it serves. It is made for New and stays valid until
// Close has returned. Its methods may be called concurrently, by concurrent tools.
type Session struct {
	id     string
	mode   tools.Mode
	source *source
	rand   *rand.Rand
	now    func() time.Time
	steps  atomic.Int64 // of the episode, which a [Clock] goes by
	log    *slog.Logger
}

// SessionOptions are the parts of a [Session]; session managers fill them in.
type SessionOptions struct {
	ID          string
	Now         func() time.Time // nil: time.Now
	Logger      *slog.Logger     // nil: discard
	ToolTimeout time.Duration    // of a call that code makes, for tools without a deadline of their own; 0: the code's time
	Seed        func() uint64    // first seed and that of resets without one; nil: the runtime's random source
}

// ID is the session's id. It opens the session to whoever knows it, so it must not reach an agent.
func (s *Session) ID() string { return s.id }

// Mode is the mode that the server runs in.
func (s *Session) Mode() tools.Mode { return s.mode }

// Rand is the session's source of random numbers. A reset with a seed starts the same sequence again; before the first
// reset, and after a reset without a seed, the sequence is random. The same *rand.Rand is returned each time. It may be used
// concurrently; what each of several concurrent tools draws is then a matter of their order.
func (s *Session) Rand() *rand.Rand { return s.rand }

// Now is the session's clock: the wall clock, or the environment's [Clock] in simulation.
func (s *Session) Now() time.Time { return s.now() }

// Logger logs with the session's id.
func (s *Session) Logger() *slog.Logger { return s.log }

// A Clock is the time of simulated episodes. The zero value is none: time is the wall clock's.
//
// Each episode begins at Start, and each step of it, when it is over, moves the time by Step; it stands still while a call
// runs. So the same calls after the same reset see the same time. Before the first reset it is that of an episode too.
type Clock struct {
	Start time.Time
	Step  time.Duration // 0: time stands still
}

func (c Clock) check() error {
	switch {
	case c.Step < 0:
		return fmt.Errorf("its Clock has a Step of %v: want 0 or more", c.Step)
	case c.Step > 0 && c.Start.IsZero():
		return errors.New("its Clock has a Step and no Start: say when an episode begins")
	}
	return nil
}

// simulate has the session go by c.
func (s *Session) simulate(c Clock) {
	if !c.Start.IsZero() {
		start := c.Start.Round(0) // without a reading of the machine's own clock
		s.now = func() time.Time { return start.Add(time.Duration(s.steps.Load()) * c.Step) }
	}
}

// A source is a random source that concurrent tools can share: a rand.Rand has no other state.
type source struct {
	mu  sync.Mutex
	pcg *rand.PCG
}

func (s *source) Uint64() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pcg.Uint64()
}

// seed begins the sequence of a seed.
func (s *source) seed(seed1, seed2 uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pcg.Seed(seed1, seed2)
}

func newSession(mode tools.Mode, o SessionOptions) (s *Session, random func() uint64) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Seed == nil {
		o.Seed = rand.Uint64
	}
	src := &source{pcg: rand.NewPCG(o.Seed(), o.Seed())}
	return &Session{id: o.ID, mode: mode, source: src, rand: rand.New(src), now: o.Now, log: o.Logger}, o.Seed
}
