package transport

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/url"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/openenv-go/openenv-go/pkg/access"
	"github.com/openenv-go/openenv-go/pkg/gym"
	"github.com/openenv-go/openenv-go/pkg/internal/strictjson"
	"github.com/openenv-go/openenv-go/pkg/session"
	"github.com/openenv-go/openenv-go/pkg/tools"
)

// Options configure a [Server]. The zero value gives the defaults.
type Options struct {
	Mode        tools.Mode      // "": simulation
	Sessions    session.Options // its Logger is this one's, unless set
	MaxMessage  int64           // bytes of one frame or body, on every door; 0: 100 MiB
	MaxInFlight int64           // bytes of all long messages that are being read or answered; 0: ten times MaxMessage, or 1 GiB if that is more
	MaxDepth    int             // nesting of objects and arrays in what clients send; 0: 128
	// AllowedHosts are names that requests may carry in Host besides those of the loopback interface, where the server
	// listens on that interface: for a reverse proxy on the same machine that passes the public name on. Listeners on
	// other interfaces take any Host, unless AllowedHosts is set.
	AllowedHosts []string
	Grace        time.Duration // how long a stop that drains waits for live sessions; 0: 30 s; negative: not at all
	// Access says who may use the server. The zero value asks nobody for a token.
	Access Access
	// PublicURL is the server's address as clients have it, such as https://env.example/lab, where that is not what their requests
	// say: behind a proxy that changes Host or the path, and for what comes by the control listener. "": as requests say.
	PublicURL string
	// AllowedOrigins are origins such as https://chat.example whose pages may use the server from a browser; "*" is any. Pages
	// of the server's own address always may; on the control listener, no others.
	AllowedOrigins []string
	// RequestsPerSecond is how many requests and WebSocket messages each caller may send: a token's, or an address's where
	// none is shown. An HTTP request beyond it gets 429, a message waits. 0: any number.
	RequestsPerSecond float64
	SessionsPerToken  int         // how many sessions each token may have open at once; 0: as many as there are
	MaxHeader         int         // bytes of a request's header; 0: 64 KiB
	TLS               *tls.Config // for both listeners of [Server.Serve]; nil: plain HTTP, as behind a proxy that ends TLS
	// Advertise is the server's own address, host:port, as a load balancer reaches it. Ids of sessions, agents and handles
	// then begin with hex(address) "-", so that the balancer finds their owner with no shared store, and an unknown id is
	// refused before the upgrade of a socket, with 404. "": ids have no address.
	Advertise string
	Recorder  *tools.Recorder // gets the tool calls of all sessions; nil: none. Its owner closes it, after the server
	Logger    *slog.Logger    // nil: discard
}

// Access says who may use a server. Callers who show a token of one of these may do what its role may; others may read the
// documents and the health, and nothing else. Where there are no tokens and no Verify, anybody is a trainer in simulation
// and an agent in production. Whoever comes by the control listener has the control role without a token.
type Access struct {
	ControlTokens []access.Token
	AgentTokens   []access.Token
	// Verify checks tokens that others have issued. What its TokenInfo has of [ScopeAgent] and [ScopeControl] is the role. See
	// [Issuer] for one.
	Verify auth.TokenVerifier
	// Resource tells MCP clients where they get a token (RFC 9728); nil: nowhere.
	Resource *oauthex.ProtectedResourceMetadata
}

// DefaultMaxInFlight is the least default of Options.MaxInFlight.
const DefaultMaxInFlight = 1 << 30

// DefaultMaxDepth is the default of Options.MaxDepth.
const DefaultMaxDepth = strictjson.DefaultMaxDepth

// DefaultMaxHeader is the default of Options.MaxHeader.
const DefaultMaxHeader = 64 << 10

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
	class.RecordTo(o.Recorder)
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

// A face is what the server shows to callers: the routes and documents of a role. There are two, everyone's and the control
// plane's. A caller with less than the role finds the routes, and is refused.
type face struct {
	*Server
	shows access.Role
	mux   *http.ServeMux
	docs  documents
}

func (s *face) prepare() (err error) {
	s.docs, err = s.document()
	s.mux = s.routes()
	return err
}

func (s *face) routes() *http.ServeMux {
	mux := http.NewServeMux()
	for _, r := range []struct {
		least   access.Role
		pattern string
		serve   http.HandlerFunc
	}{
		{access.Control, "GET /sessions", s.listSessions},
		{access.Control, "GET /sessions/{session}", s.getSession},
		{access.Control, "DELETE /sessions/{session}", s.deleteSession},
		{access.Control, "POST /sessions/{session}/agents", s.postAgents},
		{access.Trainer, "POST /reset", s.postReset},
		{access.Trainer, "POST /step", s.postStep},
		{access.Trainer, "GET /state", s.getState},
		{access.Agent, "GET /ws", s.serveWS},
		{access.Agent, "/mcp", s.serveMCP},
		{access.Agent, "/mcp/{id}", s.serveMCP},
		{access.Nobody, "GET /health", s.getHealth},
		{access.Nobody, "GET /metadata", serveJSON(s.docs.metadata)},
		{access.Nobody, "GET /schema", serveJSON(s.docs.schema)},
		{access.Nobody, "GET /openapi.json", serveJSON(s.docs.openapi)},
		{access.Nobody, "GET /docs", s.getDocs},
		{access.Nobody, "GET /redoc", toDocs},
		{access.Nobody, "GET /{$}", toDocs},
	} {
		if r.least <= s.shows {
			mux.HandleFunc(r.pattern, s.least(r.least, r.serve))
		}
	}
	if m := s.opts.Access.Resource; m != nil {
		mux.Handle(resourcePath, auth.ProtectedResourceMetadataHandler(m))
		mux.Handle(resourcePath+"/mcp", auth.ProtectedResourceMetadataHandler(m))
	}
	return mux
}

func toDocs(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/docs", http.StatusFound) }

// ServeHTTP serves each caller what its role may do.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.serve(w, r, false) }

// Control serves whoever reaches it as a caller with the control role: sessions of all clients can be seen and ended there.
func (s *Server) Control() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.serve(w, r, true) })
}

// serve serves a request that came by one of the listeners.
func (s *Server) serve(w http.ResponseWriter, r *http.Request, control bool) {
	slow := newSlowWriter(w)
	defer slow.finish()
	defer s.contain(slow, r)
	w = slow
	if err := s.admit(r, control); err != nil {
		s.log.Warn("request refused", "event", "refused", "path", shorten(r.URL.Path), "remote", r.RemoteAddr, "caller", "", "status", http.StatusForbidden, "error", err, "cause", "")
		writeDetail(w, http.StatusForbidden, err.Error())
		return
	}
	if s.cors == nil || control {
		s.identified(w, r, control)
		return
	}
	s.cors(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.identified(w, r, control) })).ServeHTTP(w, r)
}

// identified serves a request when it is known who sends it.
func (s *Server) identified(w http.ResponseWriter, r *http.Request, control bool) {
	if err := checkQuery(r); err != nil {
		writeDetail(w, http.StatusBadRequest, err.Error())
		return
	}
	v := s.identify(r, control)
	ctx, cancel := v.until(context.WithValue(r.Context(), visitKey{}, v))
	defer cancel()
	r = r.WithContext(ctx)
	if again, ok := s.limits.allow(limitKey(r)); !ok {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(again.Seconds()))))
		s.deny(w, r, &denial{status: http.StatusTooManyRequests, message: fmt.Sprintf("more than %v requests per second", s.opts.RequestsPerSecond)})
		return
	}
	if v.caller.Role == access.Control {
		s.control.ServeHTTP(w, r)
	} else {
		s.public.ServeHTTP(w, r)
	}
}

// ServeHTTP routes a request of an identified caller.
func (s *face) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if _, pattern := s.mux.Handler(r); pattern == "" {
		if _, hidden := s.Server.control.mux.Handler(r); hidden != "" { // the caller is not told
			s.logDenied(r, &denial{status: http.StatusNotFound, message: "this is for control alone"})
		}
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
	case speaksRPC(r):
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
