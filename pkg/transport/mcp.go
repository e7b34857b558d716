package transport

import (
	"bytes"
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"

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
	version := r.Header.Get("Mcp-Protocol-Version")
	if version != "" && version < stateless {
		ctx, ok := s.versions[version]
		if !ok {
			writeRPC(w, http.StatusBadRequest, nullID, &rpcError{Code: rpcServer, Message: "unsupported MCP-Protocol-Version", Data: map[string]any{"supported": statefulVersions}})
			return
		}
		r = r.WithContext(withVersion{r.Context(), ctx})
	}
	switch r.Method {
	case http.MethodPost:
		s.postMCP(w, r, version)
	case http.MethodGet, http.MethodDelete:
		s.streamMCP(w, r)
	default:
		w.Header().Set("Allow", "GET, POST, DELETE")
		writeRPC(w, http.StatusMethodNotAllowed, nullID, &rpcError{Code: rpcInvalidRequest, Message: "use POST, GET or DELETE"})
	}
}

func (s *Server) serveMCPSocket(w http.ResponseWriter, r *http.Request) {
	s.serveSocket(w, r, func(k *socket) {
		k.joins = true
		k.refuse = func(err error) []byte { return encodeRPC(nullID, nil, err) }
		k.answer = func(ctx context.Context, text []byte) ([]byte, bool) { return s.rpc(ctx, text, k.session), false }
	})
}

func (s *Server) postMCP(w http.ResponseWriter, r *http.Request, version string) {
	body, err := s.readBody(w, r)
	if err != nil {
		status := http.StatusBadRequest
		var tooLarge *http.MaxBytesError
		if errors.As(err, &tooLarge) {
			status = http.StatusRequestEntityTooLarge
		}
		writeRPC(w, status, nullID, &rpcError{Code: rpcInvalidRequest, Message: err.Error()})
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
	r.Body = io.NopCloser(bytes.NewReader(body))
	head := peek(body)
	if version == "" {
		version = head.version
	}
	switch {
	case agentID != "":
		s.postAgent(w, r, agentID, head.id)
	case version >= stateless:
		steer(w, head.id, version)
	case head.method == "initialize":
		s.initialize(w, r, head.id)
	default:
		reply := s.rpcChecked(r.Context(), body, nil)
		if reply == nil {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Write(reply)
	}
}

// readBody reads a body within the limit.
func (s *Server) readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	return io.ReadAll(http.MaxBytesReader(w, r.Body, s.opts.MaxMessage))
}

// rpcHead is what tells how a request is to be served.
type rpcHead struct {
	id      strictjson.Raw
	method  string
	version string // from params._meta, where MCP's stateless revision puts it
}

// peek reads the head of checked JSON as far as it is well-formed; the rest is for whoever serves it.
func peek(body []byte) rpcHead {
	var m struct {
		ID     strictjson.Raw `json:"id"`
		Method strictjson.Raw `json:"method"`
		Params strictjson.Raw `json:"params"`
	}
	h := rpcHead{id: nullID}
	if strictjson.Raw(body).Kind() != '{' || strictjson.Unmarshal(body, &m) != nil {
		return h
	}
	if m.ID != nil && validID(m.ID) {
		h.id = m.ID
	}
	h.method, _ = strictjson.String(m.Method)
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

// writeRPC answers an HTTP request with a JSON-RPC error.
func writeRPC(w http.ResponseWriter, status int, id strictjson.Raw, err error) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(encodeRPC(id, nil, err))
}

// steer sends a client of the stateless revision to initialize, so that it does not lose its state between two calls
// unawares. The code is that of UnsupportedProtocolVersionError (MCP 2026-07-28); clients fall back on it.
func steer(w http.ResponseWriter, id strictjson.Raw, version string) {
	writeRPC(w, http.StatusBadRequest, id, &rpcError{
		Code:    -32022,
		Message: "this address serves sessions: send initialize with one of the supported versions",
		Data:    map[string]any{"supported": statefulVersions, "requested": version},
	})
}

// notFound answers for an id that names no session: 404, at which MCP clients initialise anew.
func notFound(w http.ResponseWriter, id strictjson.Raw, err error) {
	writeRPC(w, http.StatusNotFound, id, &rpcError{Code: -32001, Message: "session not found: " + err.Error()})
}

// acceptable holds a POST of MCP Streamable HTTP to its headers.
func acceptable(w http.ResponseWriter, r *http.Request, id strictjson.Raw) bool {
	if t, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); t != "application/json" {
		writeRPC(w, http.StatusUnsupportedMediaType, id, &rpcError{Code: rpcServer, Message: "Content-Type must be application/json"})
		return false
	}
	if !accepts(r, "text/event-stream") {
		writeRPC(w, http.StatusNotAcceptable, id, &rpcError{Code: rpcServer, Message: "Accept must include application/json and text/event-stream"})
		return false
	}
	return true
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
		case session.Initializing, session.Attached:
			return http.StatusConflict
		case session.CapacityReached, session.ShuttingDown:
			return http.StatusServiceUnavailable
		}
	}
	return http.StatusInternalServerError
}
