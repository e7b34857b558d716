package transport

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/openenv-go/openenv-go/pkg/access"
	"github.com/openenv-go/openenv-go/pkg/gym"
	"github.com/openenv-go/openenv-go/pkg/internal/strictjson"
	"github.com/openenv-go/openenv-go/pkg/session"
	"github.com/openenv-go/openenv-go/pkg/tools"
)

// writeTimeout bounds the writing of one WebSocket message: a reader that has stopped reading is gone.
const writeTimeout = time.Minute

// A Server serves one environment. It is an http.Handler for all doors; [Server.Serve] runs it on listeners.
//
// Behind middleware of your own, its ResponseWriter must be net/http's, or have Unwrap to it: without Hijack there are no
// WebSockets (501). The request of a WebSocket is over at the upgrade, and the socket lives on.
type Server struct {
	class    *gym.Class
	sessions *session.Manager
	opts     Options
	log      *slog.Logger
	versions map[string]context.Context // see versionContexts
	single   http.Handler               // see newStateless
	keeper   *access.Keeper
	limits   *limits
	budget   budget
	cors     func(http.Handler) http.Handler // nil: pages of other origins have no part in the server
	public   face
	control  face

	mu      sync.Mutex     // guards closed and address
	closed  bool           // no more sockets
	address net.Addr       // of the public listener, once Serve has had one
	sockets sync.WaitGroup // WebSocket handlers, which net/http does not wait for; Add under mu while not closed
}

// New compiles the environment and makes a server of it. Faults in the environment are errors, worded for its author.
// ctx bounds what an environment with a Server of its own builds at once.
func New(ctx context.Context, env gym.Definition, o Options) (*Server, error) {
	if o.Mode == "" {
		o.Mode = tools.ModeSimulation
	}
	if o.MaxMessage == 0 {
		o.MaxMessage = DefaultMaxMessage
	}
	if o.MaxDepth == 0 {
		o.MaxDepth = strictjson.DefaultMaxDepth
	}
	if o.Grace == 0 {
		o.Grace = DefaultGrace
	}
	if o.MaxInFlight == 0 {
		o.MaxInFlight = max(DefaultMaxInFlight, 10*o.MaxMessage)
	}
	if o.MaxHeader == 0 {
		o.MaxHeader = DefaultMaxHeader
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Sessions.Logger == nil {
		o.Sessions.Logger = o.Logger
	}
	if o.Advertise != "" {
		o.Sessions.NewID = advertised(o.Advertise, o.Sessions.NewID)
	}
	keeper, err := access.NewKeeper(o.Access.ControlTokens, o.Access.AgentTokens)
	if err != nil {
		return nil, err
	}
	class, err := env.Compile(gym.WithCodeOptions(gym.WithLog(ctx, o.Logger), o.Code), o.Mode)
	if err != nil {
		return nil, err
	}
	if class.Exclusive {
		if o.Sessions.Max > 1 {
			class.Close()
			return nil, fmt.Errorf("the environment %s is exclusive, since its values cannot live side by side: it can't have %d sessions at once, only one", class.Metadata.Name, o.Sessions.Max)
		}
		o.Sessions.Max = 1
	}
	if err := errors.Join(class.RecordTo(o.Recorder), class.TryCode(ctx, o.Logger)); err != nil {
		class.Close()
		return nil, err
	}
	s := &Server{
		class: class, opts: o, log: o.Logger, versions: versionContexts(), single: newStateless(o),
		budget: budget{limit: o.MaxInFlight},
		keeper: keeper, limits: newLimits(o.RequestsPerSecond, o.SessionsPerToken), cors: crossOrigin(o.AllowedOrigins),
	}
	s.public = face{Server: s, shows: s.everyone()}
	s.control = face{Server: s, shows: access.Control}
	if err := errors.Join(s.public.prepare(), s.control.prepare()); err != nil {
		class.Close()
		return nil, err
	}
	s.sessions = session.NewManager(class, o.Sessions)
	return s, nil
}

// advertised makes ids that tell their owner: hex(address) "-" id.
func advertised(address string, newID func() string) func() string {
	if newID == nil {
		newID = rand.Text
	}
	prefix := hex.EncodeToString([]byte(address)) + "-"
	return func() string { return prefix + newID() }
}

// addSocket counts a WebSocket, which must be taken off again, or refuses it since the server is closing.
func (s *Server) addSocket() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.sockets.Add(1)
	}
	return !s.closed
}

func (s *Server) stopping() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// Sessions is the manager of the server's sessions.
func (s *Server) Sessions() *session.Manager { return s.sessions }

// ErrDrain, as the cause of the context that [Server.Serve] runs under, asks for a stop that leaves live sessions time.
var ErrDrain = errors.New("the server is told to stop when its sessions have ended")

// Serve serves on ln, and the control plane on control unless that is nil, until ctx ends, then stops: live sessions are closed, their sockets with 1001, and their environments
// too. If the cause of ctx is [ErrDrain], new sessions are refused first and /health answers 503, while live sessions are
// served until they end, for Options.Grace at most. It returns nil after a clean stop. What an author's functions have not
// given back 5 seconds after the close is named in the log and left behind, which is an error.
func (s *Server) Serve(ctx context.Context, ln, control net.Listener) error {
	s.mu.Lock()
	s.address = ln.Addr()
	s.mu.Unlock()
	failed := make(chan error, 2)
	web := []*http.Server{s.run(s, ln, failed)}
	if control != nil {
		web = append(web, s.run(s.Control(), control, failed))
	}
	var served error
	select {
	case served = <-failed:
	case <-ctx.Done():
		s.drain(context.Cause(ctx))
	}
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
	defer cancel()
	s.log.Info("stopping", "event", "stopping", "sessions", s.sessions.Active())
	// Shutdown takes no more connections and waits for requests; ending the sessions ends the requests on them.
	var requests sync.WaitGroup
	for _, srv := range web {
		requests.Go(func() {
			if srv.Shutdown(stop) != nil {
				srv.Close() // requests that are still being read, or answers that nobody reads: no session has a part in them
			}
		})
	}
	ended := s.end(stop)
	requests.Wait()
	if ended = s.closeClass(ended); ended != nil {
		ended = fmt.Errorf("stopping: %w", ended)
	}
	return errors.Join(served, ended)
}

// run serves a listener. If that fails before the server is told to stop, failed gets the error.
func (s *Server) run(handler http.Handler, ln net.Listener, failed chan<- error) *http.Server {
	if s.opts.TLS != nil {
		config := s.opts.TLS.Clone()
		config.NextProtos = []string{"http/1.1"} // a WebSocket needs it
		ln = tls.NewListener(ln, config)
	}
	srv := &http.Server{
		Handler: handler, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: s.opts.MaxHeader,
		ErrorLog: slog.NewLogLogger(s.log.With("event", "http_error").Handler(), slog.LevelWarn),
	}
	go func() {
		if err := srv.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
			failed <- err
		}
	}()
	return srv
}

// stopTime bounds a stop once the sessions are being closed: 5 seconds for authors' functions, and some for the rest.
const stopTime = 6 * time.Second

// drain waits for the live sessions to end, if the stop is one that waits.
func (s *Server) drain(cause error) {
	if !errors.Is(cause, ErrDrain) {
		return
	}
	wait, cancel := context.WithTimeout(context.Background(), s.opts.Grace)
	defer cancel()
	s.sessions.Refuse()
	s.log.Info("draining", "event", "draining", "sessions", s.sessions.Active(), "grace", s.opts.Grace)
	_ = s.sessions.Drain(wait) // those that are left are closed
}

// Close closes all sessions and waits for their ends, and those of their sockets, as long as ctx allows. It is for
// servers that something else than [Server.Serve] runs, after their HTTP server has stopped taking requests.
func (s *Server) Close(ctx context.Context) error {
	return s.closeClass(s.end(ctx))
}

// closeClass closes the class when all sessions have ended. If they have not, it waits for those that were left behind,
// for whoever goes on living in the process.
func (s *Server) closeClass(ended error) error {
	if ended == nil {
		s.class.Close()
	} else {
		go func() {
			_ = s.sessions.Shutdown(context.Background())
			s.class.Close()
		}()
	}
	return ended
}

// end takes no more sockets and sessions and ends those that are.
func (s *Server) end(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	if err := s.sessions.Shutdown(ctx); err != nil {
		return err
	}
	done := make(chan struct{})
	go func() {
		s.sockets.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("sockets did not close in time: %w", ctx.Err())
	}
}
