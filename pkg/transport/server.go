package transport

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
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
	Logger       *slog.Logger // nil: discard
}

// DefaultMaxMessage is what OpenEnv's clients take in one message.
const DefaultMaxMessage = 100 << 20

// writeTimeout bounds the writing of one WebSocket message: a reader that has stopped reading is gone.
const writeTimeout = time.Minute

// A Server serves one environment. It is an http.Handler for all doors; [Server.Serve] runs it on a listener.
type Server struct {
	class    *gym.Class
	sessions *session.Manager
	opts     Options
	log      *slog.Logger
	mux      *http.ServeMux
	versions map[string]context.Context // see versionContext
	docs     documents

	stop    context.Context // ends at Close; its end closes sockets that hold no session yet
	halt    context.CancelFunc
	sockets sync.WaitGroup // WebSocket handlers, which net/http does not wait for
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
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Sessions.Logger == nil {
		o.Sessions.Logger = o.Logger
	}
	class, err := env.Compile(ctx, o.Mode)
	if err != nil {
		return nil, err
	}
	s := &Server{class: class, opts: o, log: o.Logger, sessions: session.NewManager(class, o.Sessions), versions: versionContexts()}
	if s.docs, err = s.document(); err != nil {
		class.Close()
		return nil, err
	}
	s.stop, s.halt = context.WithCancel(context.Background())
	s.mux = s.routes()
	return s, nil
}

// Sessions is the manager of the server's sessions.
func (s *Server) Sessions() *session.Manager { return s.sessions }

func (s *Server) simulation() bool { return s.opts.Mode == tools.ModeSimulation }

func (s *Server) routes() *http.ServeMux {
	mux := http.NewServeMux()
	if s.simulation() {
		mux.HandleFunc("POST /reset", s.postReset)
		mux.HandleFunc("POST /step", s.postStep)
		mux.HandleFunc("GET /state", s.getState)
	}
	mux.HandleFunc("GET /ws", s.serveWS)
	mux.HandleFunc("/mcp", s.serveMCP)
	mux.HandleFunc("GET /health", s.getHealth)
	mux.HandleFunc("GET /metadata", serveJSON(s.docs.metadata))
	mux.HandleFunc("GET /schema", serveJSON(s.docs.schema))
	mux.HandleFunc("GET /openapi.json", serveJSON(s.docs.openapi))
	mux.HandleFunc("GET /docs", s.getDocs)
	mux.Handle("GET /redoc", http.RedirectHandler("/docs", http.StatusFound))
	mux.Handle("GET /{$}", http.RedirectHandler("/docs", http.StatusFound))
	return mux
}

// ServeHTTP serves every door.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := s.admit(r); err != nil {
		s.log.Warn("request refused", "event", "refused", "path", r.URL.Path, "remote", r.RemoteAddr, "error", err)
		writeDetail(w, http.StatusForbidden, err.Error())
		return
	}
	s.mux.ServeHTTP(w, r)
}

// Serve serves on ln until ctx ends, then stops: no new connections or sessions, live sessions closed, their environments
// too. It returns nil after a clean stop, and takes grace at most for it.
func (s *Server) Serve(ctx context.Context, ln net.Listener, grace time.Duration) error {
	srv := &http.Server{
		Handler: s, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute,
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelWarn),
	}
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(ln) }()
	select {
	case err := <-failed:
		return errors.Join(err, s.Close(context.WithoutCancel(ctx)))
	case <-ctx.Done():
	}
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	s.log.Info("stopping", "event", "stopping", "sessions", s.sessions.Active())
	closed := s.Close(stop) // ends the calls that Shutdown waits for
	if err := srv.Shutdown(stop); err != nil {
		srv.Close()
		closed = errors.Join(closed, err)
	}
	if closed != nil {
		return fmt.Errorf("stopping: %w", closed)
	}
	return nil
}

// Close closes all sessions and waits for their ends, and those of their sockets, as long as ctx allows. It is for
// servers that something else than [Server.Serve] runs, after their HTTP server has stopped taking requests.
func (s *Server) Close(ctx context.Context) error {
	s.halt()
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
	case <-ctx.Done():
		return fmt.Errorf("sockets did not close in time: %w", ctx.Err())
	}
	s.class.Close()
	return nil
}
