package transport

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/openenv-go/openenv-go/pkg/gym"
	"github.com/openenv-go/openenv-go/pkg/internal/strictjson"
	"github.com/openenv-go/openenv-go/pkg/session"
	"github.com/openenv-go/openenv-go/pkg/tools"
)

// Options configure a [Server]. The zero value gives the defaults.
type Options struct {
	Mode       tools.Mode      // "": simulation
	Sessions   session.Options // its Logger is this one's, unless set
	MaxMessage int64           // bytes of one frame or body, on every door; 0: 100 MiB
	MaxDepth   int             // nesting of objects and arrays in what clients send; 0: 128
	// AllowedHosts are names that requests may carry in Host besides those of the loopback interface, where the server
	// listens on that interface: for a reverse proxy on the same machine that passes the public name on. Listeners on
	// other interfaces take any Host, unless AllowedHosts is set.
	AllowedHosts []string
	Grace        time.Duration // how long a stop that drains waits for live sessions; 0: 30 s; negative: not at all
	// Advertise is the server's own address, host:port, as a load balancer reaches it. Ids of sessions, agents and handles
	// then begin with hex(address) "-", so that the balancer finds their owner with no shared store, and an unknown id is
	// refused before the upgrade of a socket, with 404. "": ids have no address.
	Advertise string
	Logger    *slog.Logger // nil: discard
}

// DefaultGrace is the default of Options.Grace.
const DefaultGrace = 30 * time.Second

// DefaultMaxMessage is what OpenEnv's clients take in one message.
const DefaultMaxMessage = 100 << 20

// writeTimeout bounds the writing of one WebSocket message: a reader that has stopped reading is gone.
const writeTimeout = time.Minute

// A Server serves one environment. It is an http.Handler for all doors; [Server.Serve] runs it on listeners.
type Server struct {
	class    *gym.Class
	sessions *session.Manager
	opts     Options
	log      *slog.Logger
	versions map[string]context.Context // see versionContexts
	single   http.Handler               // see newStateless
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
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Sessions.Logger == nil {
		o.Sessions.Logger = o.Logger
	}
	if o.Advertise != "" {
		o.Sessions.NewID = advertised(o.Advertise, o.Sessions.NewID)
	}
	class, err := env.Compile(gym.WithLog(ctx, o.Logger), o.Mode)
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
	s := &Server{class: class, opts: o, log: o.Logger, versions: versionContexts(), single: newStateless(o)}
	s.public = face{Server: s}
	s.control = face{Server: s, operators: true}
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

func (s *Server) simulation() bool { return s.opts.Mode == tools.ModeSimulation }

// A face is what the server shows on one of its listeners. There are two: the public one, and the control plane's, which
// has the operators' routes too.
type face struct {
	*Server
	operators bool
	mux       *http.ServeMux
	docs      documents
}

func (s *face) prepare() (err error) {
	s.docs, err = s.document()
	s.mux = s.routes()
	return err
}

func (s *face) routes() *http.ServeMux {
	mux := http.NewServeMux()
	if s.operators {
		mux.HandleFunc("GET /sessions", s.listSessions)
		mux.HandleFunc("GET /sessions/{session}", s.getSession)
		mux.HandleFunc("DELETE /sessions/{session}", s.deleteSession)
		mux.HandleFunc("POST /sessions/{session}/agents", s.postAgents)
	}
	if s.simulation() {
		mux.HandleFunc("POST /reset", s.postReset)
		mux.HandleFunc("POST /step", s.postStep)
		mux.HandleFunc("GET /state", s.getState)
	}
	mux.HandleFunc("GET /ws", s.serveWS)
	mux.HandleFunc("/mcp", s.serveMCP)
	mux.HandleFunc("/mcp/{id}", s.serveMCP)
	mux.HandleFunc("GET /health", s.getHealth)
	mux.HandleFunc("GET /metadata", serveJSON(s.docs.metadata))
	mux.HandleFunc("GET /schema", serveJSON(s.docs.schema))
	mux.HandleFunc("GET /openapi.json", serveJSON(s.docs.openapi))
	mux.HandleFunc("GET /docs", s.getDocs)
	mux.Handle("GET /redoc", http.RedirectHandler("/docs", http.StatusFound))
	mux.Handle("GET /{$}", http.RedirectHandler("/docs", http.StatusFound))
	return mux
}

// ServeHTTP serves every door but the operators'.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.public.ServeHTTP(w, r) }

// Control serves every door, the operators' too: sessions of all clients can be seen and ended by whoever reaches it.
func (s *Server) Control() http.Handler { return &s.control }

// ServeHTTP serves the doors of the face.
func (s *face) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.operators {
		r = r.WithContext(context.WithValue(r.Context(), onControl{}, true))
	}
	slow := newSlowWriter(w)
	defer slow.finish()
	defer s.contain(slow, r)
	w = slow
	if err := s.admit(r); err != nil {
		s.log.Warn("request refused", "event", "refused", "path", shorten(r.URL.Path), "remote", r.RemoteAddr, "error", err)
		writeDetail(w, http.StatusForbidden, err.Error())
		return
	}
	if err := checkQuery(r); err != nil {
		writeDetail(w, http.StatusBadRequest, err.Error())
		return
	}
	if _, pattern := s.mux.Handler(r); pattern == "" {
		turned := detailErrors(w) // the mux answers 404 or 405
		defer turned.finish()
		w = turned
	}
	s.mux.ServeHTTP(w, r)
}

// contain turns a panic into the request's error: what an author's types do when they are written as JSON is not in the
// server's hands. An answer that has begun is cut off.
func (s *Server) contain(w *slowWriter, r *http.Request) {
	v := recover()
	if v == nil {
		return
	}
	if v == http.ErrAbortHandler {
		panic(v)
	}
	s.log.Error("answering panicked", "event", "door_panic", "path", shorten(r.URL.Path), "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
	const message = "the server failed to answer; its log has the stack"
	switch {
	case w.begun:
		panic(http.ErrAbortHandler)
	case strings.HasPrefix(r.URL.Path, "/mcp"):
		writeRPC(w, http.StatusOK, nullID, &rpcError{Code: rpcInternal, Message: message})
	default:
		writeDetail(w, http.StatusInternalServerError, message)
	}
}

// checkQuery refuses queries that two readers could read differently.
func checkQuery(r *http.Request) error {
	if r.URL.RawQuery == "" {
		return nil
	}
	q, err := url.ParseQuery(r.URL.RawQuery)
	switch {
	case err != nil:
		return fmt.Errorf("the query cannot be read: %.200v", err)
	case len(q["session_id"]) > 1:
		return errors.New("the query names session_id more than once")
	}
	return nil
}

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
	web := []*http.Server{s.run(&s.public, ln, failed)}
	if control != nil {
		web = append(web, s.run(&s.control, control, failed))
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

// run serves a face on a listener. If that fails before the server is told to stop, failed gets the error.
func (s *Server) run(f *face, ln net.Listener, failed chan<- error) *http.Server {
	srv := &http.Server{
		Handler: f, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute,
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelWarn),
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
