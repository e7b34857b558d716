package transport

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/openenv-go/openenv-go/pkg/internal/strictjson"
	"github.com/openenv-go/openenv-go/pkg/session"
)

// serveMCP tells the dialects of /mcp apart: a WebSocket by its upgrade, a client that has initialised by its
// Mcp-Session-Id, one that is about to by its method; all else is JSON-RPC without a handshake.
func (s *Server) serveMCP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet && strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		s.serveMCPSocket(w, r)
		return
	}
	switch r.Method {
	case http.MethodPost:
		s.postMCP(w, r)
	case http.MethodGet, http.MethodDelete:
		if s.versioned(w, r, nullID) {
			s.streamMCP(w, r)
		}
	default:
		w.Header().Set("Allow", "GET, POST, DELETE")
		writeRPC(w, http.StatusMethodNotAllowed, nullID, &rpcError{Code: rpcInvalidRequest, Message: "use POST, GET or DELETE"})
	}
}

func (s *Server) serveMCPSocket(w http.ResponseWriter, r *http.Request) {
	s.serveSocket(w, r, func(k *socket) {
		k.origin = session.ByMCPSocket
		k.refuse = func(err error) []byte { return encodeRPC(nullID, nil, err) }
		k.dialog = &dialog{s: s, peer: k.peer, write: k.put}
		k.answer = func(ctx context.Context, text []byte, reply replyFunc) bool {
			reply(k.dialog.answer(ctx, text), false, true)
			return true
		}
	})
}

// addressed is the session or handle that the request is addressed to: /mcp?session_id=S, or /mcp/S since some clients drop
// the query; "" where there is none. It needs no routing, so that what a handle's token is checked against is what is served.
func addressed(r *http.Request) string {
	if id, ok := strings.CutPrefix(r.URL.Path, "/mcp/"); ok {
		return id
	}
	if r.URL.RawQuery == "" {
		return ""
	}
	return r.URL.Query().Get("session_id")
}

// baseURL is where agents reach the server: as the request has it, or, where that came by the control listener, at the
// public one's address.
func (s *Server) baseURL(r *http.Request) string {
	if s.opts.PublicURL != "" {
		return strings.TrimSuffix(s.opts.PublicURL, "/")
	}
	scheme := "http"
	if r.TLS != nil || strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https") {
		scheme = "https"
	}
	if !visitOf(r).control {
		return scheme + "://" + r.Host
	}
	s.mu.Lock()
	public := s.address
	s.mu.Unlock()
	if public == nil {
		return scheme + "://" + r.Host
	}
	host := public.String()
	if ip, port, err := net.SplitHostPort(host); err == nil && net.ParseIP(ip).IsUnspecified() {
		host = net.JoinHostPort(hostname(r.Host), port)
	}
	if s.opts.TLS != nil {
		return "https://" + host
	}
	return "http://" + host
}

// versioned gives a request's context the values of the protocol version that its header names. A version that is not
// served is answered.
func (s *Server) versioned(w http.ResponseWriter, r *http.Request, id strictjson.Raw) bool {
	version := r.Header.Get("Mcp-Protocol-Version")
	if version == "" || version >= stateless {
		return true
	}
	ctx, ok := s.versions[version]
	if !ok {
		writeRPC(w, http.StatusBadRequest, id, &rpcError{
			Code: rpcServer, Message: fmt.Sprintf("MCP-Protocol-Version %.40q is not served", version), Data: map[string]any{"supported": statefulVersions},
		})
		return false
	}
	visitOf(r).version = ctx
	return true
}

func (s *Server) postMCP(w http.ResponseWriter, r *http.Request) {
	body, err := s.readBody(w, r)
	if err != nil {
		status, message := bodyStatus(err)
		retryLater(w, status)
		writeRPC(w, status, nullID, &rpcError{Code: rpcInvalidRequest, Message: message})
		return
	}
	agentID := r.Header.Get("Mcp-Session-Id")
	if err := strictjson.Check(body, s.opts.MaxDepth); err != nil {
		status := http.StatusOK
		if agentID != "" {
			status = http.StatusBadRequest
		}
		writeRPC(w, status, nullID, err)
		return
	}
	head := peek(body)
	if !s.versioned(w, r, head.id) {
		return
	}
	version := r.Header.Get("Mcp-Protocol-Version")
	if version == "" {
		version = head.version
	}
	if agentID == "" && version < stateless && head.method != "initialize" {
		s.postBare(w, r, body, head)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body)) // the SDK reads it again
	switch {
	case (agentID != "" || head.method == "initialize") && !head.valid:
		writeRPC(w, http.StatusBadRequest, nullID, &rpcError{Code: rpcInvalidRequest, Message: "id must be a string or an integer of at most 53 bits"})
	case agentID != "" && head.batch == 0 && !head.rpc2: // not every request reaches the SDK, which looks at it
		writeRPC(w, http.StatusBadRequest, head.id, &rpcError{Code: rpcInvalidRequest, Message: `invalid request: jsonrpc must be "2.0"`})
	case (agentID != "" || version >= stateless) && head.method == "" && strictjson.Raw(body).Kind() == '{' && !isAnswer(body): // the SDK would take it for an answer
		writeRPC(w, http.StatusBadRequest, head.id, errNoMethod)
	case agentID != "" && head.oddParams:
		writeRPC(w, http.StatusBadRequest, head.id, &rpcError{Code: rpcInvalidParams, Message: "params must be an object"})
	case agentID != "" && head.batch > maxBatch:
		writeRPC(w, http.StatusBadRequest, nullID, &rpcError{Code: rpcInvalidRequest, Message: fmt.Sprintf("a batch of %d; at most %d are served", head.batch, maxBatch)})
	case agentID != "" && head.initialises:
		writeRPC(w, http.StatusBadRequest, nullID, errInitializedBefore)
	case agentID != "":
		s.postAgent(w, r, agentID, head)
	case version >= stateless:
		s.postStateless(w, r, head.id, version)
	default:
		s.initialize(w, r, head.id)
	}
}

// postBare serves JSON-RPC without a handshake.
func (s *Server) postBare(w http.ResponseWriter, r *http.Request, body []byte, head rpcHead) {
	from := peer{caller: callerOf(r)}
	if head.method == mintsHandle {
		from.base = s.baseURL(r)
	}
	var err error
	if id := addressed(r); id != "" {
		if from.session, from.agent, err = s.sessions.Reach(id); err != nil {
			notFound(w, head.id, err)
			return
		}
	}
	req, ok := head.members.request()
	if !ok {
		req, err = parseRPC(body)
	}
	reply := s.rpcParsed(r.Context(), req, err, from)
	if reply == nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Write(reply)
}

// readTimeout is how long a client may take for the next piece of a body.
const readTimeout = 30 * time.Second

// errEncoded is a body that is not plain JSON.
var errEncoded = errors.New("send the body without a Content-Encoding")

// readBody reads a body within the limits.
func (s *Server) readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if e := r.Header.Get("Content-Encoding"); e != "" && !strings.EqualFold(e, "identity") {
		return nil, errEncoded
	}
	var body []byte
	err := patiently(w, r, s.opts.MaxMessage, func(from io.Reader) (err error) {
		if r.ContentLength > 0 {
			body, err = s.budget.readSized(from, r.ContentLength, nil)
		} else {
			body, err = s.budget.read(from, nil)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if weight(body) > 0 {
		if slow, ok := w.(*slowWriter); ok {
			slow.atEnd = func() { s.budget.release(body) }
		} else { // as in a test of one handler
			s.budget.release(body)
		}
	}
	letWatch()
	return body, nil
}

// letWatch lets the goroutine run by which net/http watches over the connection, from the body's end on, before a call is given to
// another goroutine. That one would pass it in the scheduler's queue, and net/http waits for it after the answer: by then the next
// request is there, which is read at once, so that on a busy server some hundred connections would go in circles and others starve.
func letWatch() { runtime.Gosched() }

// patiently has read read a body of at most that many bytes, within the usual times.
func patiently(w http.ResponseWriter, r *http.Request, most int64, read func(body io.Reader) error) error {
	if r.ContentLength > most {
		return &http.MaxBytesError{Limit: most}
	}
	control := http.NewResponseController(w)
	if slow, ok := w.(*slowWriter); ok {
		slow.unread = false
		control = &slow.control
	}
	size := r.ContentLength
	if size <= 0 { // it is not known, or there is none
		size = most
	}
	p := &patientReader{r.Body, control, time.Now().Add(timeFor(size))}
	err := read(http.MaxBytesReader(w, p, most)) // a body that was replaced on its way is of any size
	if err != nil {
		_ = control.SetReadDeadline(time.Now()) // net/http is not to wait for the rest before it answers
		return err
	}
	_ = control.SetReadDeadline(time.Time{})
	return nil
}

// A patientReader gives each read a time, and all of them together.
type patientReader struct {
	body    io.ReadCloser
	control *http.ResponseController
	limit   time.Time
}

func (p *patientReader) Close() error { return p.body.Close() }

func (p *patientReader) Read(b []byte) (int, error) {
	t := time.Now().Add(readTimeout)
	if t.After(p.limit) {
		t = p.limit
	}
	_ = p.control.SetReadDeadline(t) // a server that has none to set, as in a test, reads without
	return p.body.Read(b)
}

// bodyStatus is the status of an answer about a body that could not be read, and what to say.
func bodyStatus(err error) (int, string) {
	var tooLarge *http.MaxBytesError
	switch {
	case errors.Is(err, errOverBudget):
		return http.StatusServiceUnavailable, err.Error()
	case errors.As(err, &tooLarge):
		return http.StatusRequestEntityTooLarge, tooLong(tooLarge)
	case errors.Is(err, errEncoded):
		return http.StatusUnsupportedMediaType, err.Error()
	case errors.Is(err, os.ErrDeadlineExceeded):
		return http.StatusRequestTimeout, "the body did not arrive in time"
	}
	return http.StatusBadRequest, err.Error()
}

// rpcHead is what tells how a request is to be served.
type rpcHead struct {
	members rpcMembers // of one object

	id    strictjson.Raw
	valid bool // the id is one that every implementation can hold, or there is none
	// oddParams: there are params that are no object; the SDK would repeat them, whatever their length.
	oddParams bool
	rpc2      bool // it is one object that says to be JSON-RPC 2.0
	batch     int  // how many requests are in an array
	// initialises: an initialize is in the array, where it may not be; the SDK would answer it with an error without a code.
	initialises bool
	method      string
	call        bool           // it has a method and an id
	params      strictjson.Raw // nil: none
	progress    bool           // it may ask for progress
	logging     bool           // it asks for log messages, itself or in its array
	version     string         // from params._meta, where MCP's stateless revision puts it
}

// peek reads the head of checked JSON as far as it is well-formed; the rest is for whoever serves it.
func peek(body []byte) rpcHead {
	h := rpcHead{id: nullID, valid: true}
	if strictjson.Raw(body).Kind() == '[' {
		var batch []struct {
			ID     strictjson.Raw `json:"id"`
			Method strictjson.Raw `json:"method"`
		}
		h.valid = strictjson.Unmarshal(body, &batch) == nil
		h.batch = len(batch)
		for _, m := range batch {
			h.valid = h.valid && exactID(m.ID) && !nullCall(m.ID, m.Method)
			method, _ := strictjson.String(m.Method)
			h.logging = h.logging || method == setLevel
			h.initialises = h.initialises || method == "initialize"
		}
		return h
	}
	if strictjson.Raw(body).Kind() != '{' {
		return h
	}
	m := membersOf(body)
	h.members = m
	if h.valid = exactID(m.ID) && !nullCall(m.ID, m.Method); h.valid && m.ID != nil {
		h.id = m.ID
	}
	h.rpc2 = m.rpc2()
	h.method, _ = strictjson.String(m.Method)
	h.call, h.params = h.method != "" && m.ID != nil, m.Params
	h.logging = h.method == setLevel
	h.progress = bytes.Contains(m.Params, []byte("progressToken"))
	h.oddParams = m.Params != nil && m.Params.Kind() != '{' && m.Params.Kind() != 'n'
	if bytes.Contains(m.Params, []byte(mcp.MetaKeyProtocolVersion)) {
		var p struct {
			Meta map[string]strictjson.Raw `json:"_meta"`
		}
		if strictjson.Unmarshal(m.Params, &p) == nil {
			h.version, _ = strictjson.String(p.Meta[mcp.MetaKeyProtocolVersion])
		}
	}
	return h
}

const setLevel = "logging/setLevel"

// maxBatch is how many requests an array of MCP 2025-03-26 may hold: each gets a goroutine of the SDK's.
const maxBatch = 100

// exactID reports whether an id is absent, or one that the SDK gives back as it came: it holds integers as floats.
func exactID(id strictjson.Raw) bool {
	const digits = 16 // those of 2^53
	if id == nil {
		return true
	}
	if id.Kind() != '0' {
		return validID(id)
	}
	n, err := strconv.ParseInt(string(id), 10, 64)
	return err == nil && n <= 1<<53 && n >= -1<<53 && len(id) <= digits+1
}

// nullCall reports whether a request has the id null, which MCP has for answers only. The SDK would take it for a notification.
func nullCall(id, method strictjson.Raw) bool { return method != nil && id.Kind() == 'n' }

// writeRPC answers an HTTP request with a JSON-RPC error.
func writeRPC(w http.ResponseWriter, status int, id strictjson.Raw, err error) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(encodeRPC(id, nil, err))
}

// steer sends a client of the stateless revision to initialize, so that it does not lose its state between two calls
// unawares. The code is that of UnsupportedProtocolVersionError (MCP 2026-07-28); clients fall back on it.
func steer(w http.ResponseWriter, id strictjson.Raw, version string) {
	writeRPC(w, http.StatusBadRequest, id, unsupported(version))
}

func unsupported(version string) *rpcError {
	return &rpcError{
		Code:    -32022,
		Message: "this address serves sessions: send initialize with one of the supported versions",
		Data:    map[string]any{"supported": statefulVersions, "requested": shorten(version)},
	}
}

// notFound answers for an id that names no session: 404, at which MCP clients initialise anew.
func notFound(w http.ResponseWriter, id strictjson.Raw, err error) {
	writeRPC(w, http.StatusNotFound, id, &rpcError{Code: rpcNoSession, Message: err.Error()})
}

// noSession answers about a session that could not be had.
func noSession(w http.ResponseWriter, id strictjson.Raw, err error) {
	status := statusOf(err)
	retryLater(w, status)
	writeRPC(w, status, id, err)
}

// acceptable holds a POST of MCP Streamable HTTP to its headers.
func acceptable(w http.ResponseWriter, r *http.Request, id strictjson.Raw) bool {
	if !isJSON(r.Header.Get("Content-Type")) {
		writeRPC(w, http.StatusUnsupportedMediaType, id, &rpcError{Code: rpcServer, Message: "Content-Type must be application/json"})
		return false
	}
	if !accepts(r, "text/event-stream") {
		writeRPC(w, http.StatusNotAcceptable, id, &rpcError{Code: rpcServer, Message: "Accept must include application/json and text/event-stream"})
		return false
	}
	return true
}

func isJSON(contentType string) bool {
	const json = "application/json"
	if contentType == json { // as nearly all have it
		return true
	}
	t, _, _ := mime.ParseMediaType(contentType)
	return t == json
}

func accepts(r *http.Request, mediaType string) bool {
	major, _, _ := strings.Cut(mediaType, "/")
	for part := range strings.SplitSeq(strings.Join(r.Header.Values("Accept"), ","), ",") {
		part, _, _ = strings.Cut(part, ";")
		switch strings.ToLower(strings.TrimSpace(part)) {
		case mediaType, major + "/*", "*/*":
			return true
		}
	}
	return false
}

// statusOf is the HTTP status of an answer about a session that could not be had.
func statusOf(err error) int {
	var se *session.Error
	if errors.As(err, &se) {
		switch se.Code {
		case session.Unknown, session.Closed:
			return http.StatusNotFound
		case session.Initializing, session.Busy, session.TooMany:
			return http.StatusConflict
		case session.CapacityReached, session.ShuttingDown:
			return http.StatusServiceUnavailable
		}
	}
	return http.StatusInternalServerError
}
