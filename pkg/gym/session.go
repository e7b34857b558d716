package gym

import (
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/openenv-go/openenv-go/pkg/tools"
)

// A Session is what an environment value may know of the session it serves. It is made for New and stays valid until
// Close has returned. Its methods may be called by the environment's functions, which never overlap.
type Session struct {
	id     string
	mode   tools.Mode
	source *rand.PCG
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
// reset, and after a reset without a seed, the sequence is random. The same *rand.Rand is returned each time.
func (s *Session) Rand() *rand.Rand { return s.rand }

// Now is the session's clock.
func (s *Session) Now() time.Time { return s.now() }

// Logger logs with the session's id.
func (s *Session) Logger() *slog.Logger { return s.log }

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
	src := rand.NewPCG(o.Seed(), o.Seed())
	return &Session{id: o.ID, mode: mode, source: src, rand: rand.New(src), now: o.Now, log: o.Logger}, o.Seed
}
