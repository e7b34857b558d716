package gym

import (
	"log/slog"
	"math/rand/v2"
	"sync"
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
	log    *slog.Logger
}

// SessionOptions are the parts of a [Session]; session managers fill them in.
type SessionOptions struct {
	ID     string
	Now    func() time.Time // nil: time.Now
	Logger *slog.Logger     // nil: discard
	Seed   func() uint64    // first seed and that of resets without one; nil: the runtime's random source
}

// ID is the session's id. It opens the session to whoever knows it, so it must not reach an agent.
func (s *Session) ID() string { return s.id }

// Mode is the mode that the server runs in.
func (s *Session) Mode() tools.Mode { return s.mode }

// Rand is the session's source of random numbers. A reset with a seed starts the same sequence again; before the first
// reset, and after a reset without a seed, the sequence is random. The same *rand.Rand is returned each time. It may be used
// concurrently; what each of several concurrent tools draws is then a matter of their order.
func (s *Session) Rand() *rand.Rand { return s.rand }

// Now is the session's clock.
func (s *Session) Now() time.Time { return s.now() }

// Logger logs with the session's id.
func (s *Session) Logger() *slog.Logger { return s.log }

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
