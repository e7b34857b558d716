package session

import (
	"container/list"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/openenv-go/openenv-go/pkg/gym"
)

// Options configure a [Manager]. The zero value gives the defaults.
type Options struct {
	Max          int              // how many sessions at once; 0: 1,024
	Queue        int              // how many openers may wait for a slot; 0: none, a full server refuses at once
	QueueWait    time.Duration    // how long they wait; 0: 30 s
	Warm         int              // how many environments are built ahead, within Max; 0: none
	IdleTimeout  time.Duration    // how long a session without a socket may lie idle; 0: 15 minutes; negative: for ever
	ToolTimeout  time.Duration    // deadline of a tool call, step, state or listing, its wait included; 0: 30 s
	ResetTimeout time.Duration    // deadline of a reset, and of building an environment; 0: 5 minutes
	Logger       *slog.Logger     // nil: discard
	NewID        func() string    // ids of sessions and agents, unguessable and unique; nil: 130 random bits
	Now          func() time.Time // the clock that environments see; nil: time.Now
	Seed         func() uint64    // seeds of sessions' random sources; nil: random
}

// Defaults of [Options].
const (
	DefaultMax          = 1024
	DefaultQueueWait    = 30 * time.Second
	DefaultIdleTimeout  = 15 * time.Minute
	DefaultToolTimeout  = 30 * time.Second
	DefaultResetTimeout = 5 * time.Minute
)

func (o Options) withDefaults() Options {
	if o.Max == 0 {
		o.Max = DefaultMax
	}
	if o.QueueWait == 0 {
		o.QueueWait = DefaultQueueWait
	}
	if o.IdleTimeout == 0 {
		o.IdleTimeout = DefaultIdleTimeout
	}
	if o.ToolTimeout == 0 {
		o.ToolTimeout = DefaultToolTimeout
	}
	if o.ResetTimeout == 0 {
		o.ResetTimeout = DefaultResetTimeout
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.NewID == nil {
		o.NewID = rand.Text
	}
	return o
}

// A Manager opens, finds and ends the sessions of one class.
type Manager struct {
	class   *gym.Class
	opts    Options
	workers workers

	mu       sync.Mutex
	sessions map[string]*Session // every session that holds a slot, while it is built and torn down too
	agents   map[string]*Agent   // by Mcp-Session-Id
	handles  map[string]*Session // by handle
	stopping bool
	queue    list.List     // of *waiter: openers who wait for a slot, the first in front; there is no slot while it has any
	extras   int           // waiters in the queue beyond its bound
	making   int           // sessions that are ending to make room
	warm     []*Session    // built or being built, and not claimed; they are in sessions too
	pause    *time.Timer   // runs while nothing is to be built ahead, since that has failed
	delay    time.Duration // of the last pause, unless building ahead has succeeded since
}

// NewManager returns a manager of sessions of class, and begins to build ahead what Options.Warm asks for:
// [Manager.Shutdown] ends that. It does not close the class.
func NewManager(class *gym.Class, o Options) *Manager {
	m := &Manager{
		class: class, opts: o.withDefaults(),
		sessions: map[string]*Session{}, agents: map[string]*Agent{}, handles: map[string]*Session{},
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.buildAhead()
	return m
}

// Class is the environment that the manager's sessions are of.
func (m *Manager) Class() *gym.Class { return m.class }

// An Origin is how a session came to be, which decides how it ends.
type Origin int

const (
	ByGymSocket  Origin = iota // opened by /ws: ends with that socket, which holds it
	ByMCPSocket                // opened by a WebSocket on /mcp: ends with that socket
	ByStdio                    // opened for standard input and output: ends with them
	ByCreate                   // openenv/session/create: ends when closed, or idle
	ByInitialize               // an MCP client's initialize: ends when that client deletes it, or idle
	Temporary                  // serves one call and is never found by id
	unclaimed                  // nobody's yet
)

// Open opens a session: one that is built ahead, if there is any; else it reserves a slot, builds the environment outside
// of any lock, and gives the slot back if that fails. ctx ends the building, and what was built for a caller who has gone
// is closed. The error is an *[Error], or the cause of ctx. A session that a socket opened is the socket's until
// [Session.Release]. opener names who has asked, for the log and for whoever comes back: see [Session.Opener].
func (m *Manager) Open(ctx context.Context, origin Origin, opener string) (*Session, error) {
	start := time.Now()
	s, err := m.reserve(ctx)
	if err != nil {
		if full(err) {
			message := "no free session; -max-sessions sets how many there may be"
			if m.class.Exclusive {
				message = "no free session; the environment is exclusive, so there is one at a time"
			}
			m.opts.Logger.Warn(message, "event", "capacity", "max", m.opts.Max, "origin", origin.String())
		}
		return nil, err
	}
	s.claim(origin, opener)
	if !s.begunToBuild {
		s.startBuilding(ctx)
	}
	if err := s.awaitBuilt(ctx); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		s.Close(context.WithoutCancel(ctx), "its opener has gone")
		return nil, context.Cause(ctx)
	}
	s.log.Info("session opened", "event", "session_open", "origin", origin.String(), "caller", opener, "took", time.Since(start).Round(time.Microsecond), "built_ahead", s.ahead)
	return s, nil
}

func full(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Code == CapacityReached
}

// build builds the environment of a session that has its slot: until the time is up, or the session's end begins. When it
// returns an error, an *[Error], the slot is free again.
func (m *Manager) build(ctx context.Context, s *Session) error {
	ctx, cancel := context.WithTimeout(ctx, m.opts.ResetTimeout)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	s.mu.Lock()
	running := s.begun(callName{what: "New"})
	s.mu.Unlock()
	defer s.returned(running)
	defer s.tellStuck(ctx)()
	inst, fault := m.class.Open(ctx, gym.SessionOptions{ID: s.ID, Logger: s.log, ToolTimeout: m.opts.ToolTimeout, Seed: m.opts.Seed, Now: m.opts.Now})
	if fault == nil && s.ready(inst) {
		if s.ahead {
			m.builtAhead(nil)
		}
		return nil
	}
	if fault == nil {
		s.Close(context.Background(), "ended while it was being built")
		return context.Cause(s.ctx)
	}
	ended := context.Cause(s.ctx)
	if ended == nil {
		s.log.Warn("environment could not be built", "event", "factory_error", "error", fault)
		if s.ahead {
			m.builtAhead(fault)
		}
		ended = m.errFactory(fault)
	}
	s.free(ended)
	return ended
}

func (m *Manager) errFactory(fault error) *Error {
	return &Error{
		Code: FactoryFailed, Message: fmt.Sprintf("the environment %s could not be built: %v", m.class.Metadata.Name, fault),
		Factory: m.class.Metadata.Name, Err: fault,
	}
}

func errStopping() *Error {
	return &Error{Code: ShuttingDown, Message: "the server is shutting down and takes no new sessions"}
}

// Get finds a session that serves calls. The error is an *[Error] with code Unknown or Initializing.
func (m *Manager) Get(id string) (*Session, error) {
	m.mu.Lock()
	s := m.sessions[id]
	m.mu.Unlock()
	if s == nil {
		return nil, errUnknown(id)
	}
	return s, s.usable()
}

// Attach finds a session for a gym channel, which will hold it until [Session.Release]. A session that another one holds
// is waited for, up to 5 seconds. The channel has it as Attached, or as its Owner if it comes back to a session that
// waited for it: see [Session.Linger]. The error is an *[Error] with code Unknown, Initializing or Busy, or the cause of
// ctx.
func (m *Manager) Attach(ctx context.Context, id string) (*Session, Hold, error) {
	s, err := m.Get(id)
	if err != nil {
		return nil, Attached, err
	}
	h, err := s.attach(ctx)
	return s, h, err
}

// Join finds a session for a socket that will use its tools, beside others, until [Session.Release]. Results are those of
// [Manager.Reach].
func (m *Manager) Join(id string) (s *Session, byHandle bool, err error) {
	s, byHandle, err = m.Reach(id)
	if err == nil && s.join() != nil {
		err = errUnknown(id)
	}
	return s, byHandle, err
}

// Close ends the session with that id. While a socket owns or holds it, it only asks: the session ends when the socket
// lets go, and closing is true. The error is an *[Error], what the environment's Close returned, or ctx's.
func (m *Manager) Close(ctx context.Context, id string) (closing bool, err error) {
	s, err := m.Get(id)
	if err != nil {
		return false, err
	}
	if s.closeUnlessHeld("closed by a client") {
		return true, nil
	}
	return false, s.wait(ctx)
}

// Active counts the slots that are taken. What is built ahead takes none, since it gives way to any opener.
func (m *Manager) Active() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.active()
}

// all returns every session that holds a slot, in no order, so that each can be looked at under its own lock.
func (m *Manager) all() []*Session {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Collect(maps.Values(m.sessions))
}

func (m *Manager) active() int { return len(m.sessions) - len(m.warm) }

// Max is how many sessions there may be at once.
func (m *Manager) Max() int { return m.opts.Max }

// Refuse takes no new sessions from now on.
func (m *Manager) Refuse() { m.refuse() }

// Drain refuses new sessions and waits until the live ones have ended, as long as ctx allows.
func (m *Manager) Drain(ctx context.Context) error {
	return m.await(ctx, m.refuse())
}

// Shutdown refuses new sessions, closes the live ones and waits for their teardown as long as ctx allows. What keeps one
// from ending is in the log. It is idempotent.
func (m *Manager) Shutdown(ctx context.Context) error {
	live := m.refuse()
	defer m.workers.end()
	for _, s := range live {
		s.mu.Lock()
		s.begin("shutdown", &Error{Code: ShuttingDown, Message: "the session was closed, since the server is shutting down"})
	}
	err := m.await(ctx, live)
	if err != nil {
		for _, s := range live {
			if what, age := s.Running(); what != "" {
				s.log.Error("left behind", "event", "left_behind", "call", what, "age", age.Round(time.Millisecond), "reason", s.Reason())
			}
		}
	}
	return err
}

// Stopping reports whether new sessions are refused.
func (m *Manager) Stopping() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.stopping
}

// refuse takes no more sessions, ends those that nobody has claimed, and returns all that are.
func (m *Manager) refuse() (live []*Session) {
	m.mu.Lock()
	m.stopping = true
	m.dismiss()
	if m.pause != nil {
		m.pause.Stop()
	}
	warm := slices.Clone(m.warm)
	for _, s := range m.sessions {
		live = append(live, s)
	}
	m.mu.Unlock()
	for _, s := range warm {
		s.mu.Lock()
		s.begin("shutdown", errStopping())
	}
	return live
}

func (m *Manager) await(ctx context.Context, live []*Session) error {
	for _, s := range live {
		select {
		case <-s.done:
		case <-ctx.Done():
			return fmt.Errorf("sessions that have not ended: %d: %w", m.Active(), ctx.Err())
		}
	}
	return nil
}

func (o Origin) String() string {
	return [...]string{"ws", "mcp socket", "stdio", "create", "initialize", "temporary", "unclaimed"}[o]
}
