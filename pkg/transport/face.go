package transport

import (
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/auth"

	"github.com/openenv-go/openenv-go/pkg/access"
)

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
	slow.unread = r.ContentLength != 0
	defer slow.finish()
	defer s.contain(slow, r)
	w = slow
	if err := s.admit(r, control); err != nil {
		s.logDenied(r, &denial{status: http.StatusForbidden, message: err.Error()})
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
	ctx, cancel := v.limited()
	defer cancel()
	r = r.WithContext(ctx)
	if again, ok := s.limits.allow(r); !ok {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(again.Seconds()))))
		s.deny(w, r, &denial{status: http.StatusTooManyRequests, message: fmt.Sprintf("more than %v requests per second", s.opts.RequestsPerSecond)})
		return
	}
	if r.Method != http.MethodPost && r.ContentLength != 0 && !s.passOverBody(w, r) {
		return
	}
	if v.caller.Role == access.Control {
		s.control.ServeHTTP(w, r)
	} else {
		s.public.ServeHTTP(w, r)
	}
}

// maxUnneeded is how long a body may be that nobody needs, as net/http has it.
const maxUnneeded = 256 << 10

// passOverBody passes over the body of a request that has no use for one, or answers that it did not come. Left to net/http,
// which reads it before an answer of some length or an upgrade, it would be waited for as long as the client keeps silent, and
// what the request has taken with it.
func (s *Server) passOverBody(w http.ResponseWriter, r *http.Request) (ok bool) {
	err := patiently(w, r, maxUnneeded, func(body io.Reader) error {
		_, err := io.Copy(io.Discard, body)
		return err
	})
	if err == nil {
		return true
	}
	status, message := bodyStatus(err)
	if speaksRPC(r) {
		writeRPC(w, status, nullID, &rpcError{Code: rpcInvalidRequest, Message: message})
	} else {
		writeDetail(w, status, message)
	}
	return false
}

// ServeHTTP routes a request of an identified caller.
func (s *face) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	route, pattern := s.mux.Handler(r)
	switch {
	case pattern == "":
		if _, hidden := s.Server.control.mux.Handler(r); hidden != "" { // the caller is not told
			s.logDenied(r, &denial{status: http.StatusNotFound, message: "this is for control alone"})
		}
		turned := detailErrors(w) // the mux answers 404 or 405
		defer turned.finish()
		s.mux.ServeHTTP(turned, r)
	case strings.Contains(pattern, "{"): // the mux fills in the path's values
		s.mux.ServeHTTP(w, r)
	default:
		route.ServeHTTP(w, r)
	}
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
