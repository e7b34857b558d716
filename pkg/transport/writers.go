package transport

import (
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/openenv-go/openenv-go/pkg/internal/strictjson"
)

// A plainErrors turns the errors that a library answers in plain text into the form of its door. All else passes.
type plainErrors struct {
	http.ResponseWriter
	answer func(w http.ResponseWriter, status int, text string)
	status int // of an error that is being turned; else 0
	text   []byte
}

// detailErrors answers in the form of the HTTP routes.
func detailErrors(w http.ResponseWriter) *plainErrors {
	return &plainErrors{ResponseWriter: w, answer: writeDetail}
}

// rpcErrors answers the JSON-RPC request with that id.
func rpcErrors(w http.ResponseWriter, id strictjson.Raw) *plainErrors {
	return &plainErrors{ResponseWriter: w, answer: func(w http.ResponseWriter, status int, text string) {
		writeRPC(w, status, id, &rpcError{Code: rpcInvalidRequest, Message: text})
	}}
}

func (p *plainErrors) WriteHeader(status int) {
	if status >= http.StatusBadRequest && strings.HasPrefix(p.Header().Get("Content-Type"), "text/plain") {
		p.status = status
		return
	}
	p.ResponseWriter.WriteHeader(status)
}

func (p *plainErrors) Write(b []byte) (int, error) {
	if p.status == 0 {
		return p.ResponseWriter.Write(b)
	}
	p.text = append(p.text, b...)
	return len(b), nil
}

// finish writes the turned error, if there is one.
func (p *plainErrors) finish() {
	if p.status != 0 {
		p.Header().Del("X-Content-Type-Options")
		p.answer(p.ResponseWriter, p.status, strings.TrimSpace(string(p.text)))
	}
}

// Unwrap lets http.ResponseController reach the writer's own methods.
func (p *plainErrors) Unwrap() http.ResponseWriter { return p.ResponseWriter }

// Flush is for code that asks the writer itself.
func (p *plainErrors) Flush() {
	if f, ok := p.ResponseWriter.(http.Flusher); ok && p.status == 0 {
		f.Flush()
	}
}

// A slowWriter gives each write a time, since a peer that has stopped reading would hold its writer for ever, and the
// session with it.
type slowWriter struct {
	http.ResponseWriter
	control *http.ResponseController

	mu    sync.Mutex // guards what follows
	given bool       // up: writes fail at once
}

func newSlowWriter(w http.ResponseWriter) *slowWriter {
	return &slowWriter{ResponseWriter: w, control: http.NewResponseController(w)}
}

// deadline sets the time of the next write. A server that has none to set, as in a test, writes without.
func (s *slowWriter) deadline(t time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.given {
		t = time.Now()
	}
	_ = s.control.SetWriteDeadline(t)
}

func (s *slowWriter) Write(b []byte) (int, error) {
	s.deadline(time.Now().Add(writeTimeout))
	return s.ResponseWriter.Write(b)
}

// Flush writes what is buffered.
func (s *slowWriter) Flush() {
	s.deadline(time.Now().Add(writeTimeout))
	_ = s.control.Flush()
}

// giveUp ends a write that is under way.
func (s *slowWriter) giveUp() {
	s.mu.Lock()
	s.given = true
	s.mu.Unlock()
	s.deadline(time.Now())
}

// finish leaves the connection to the next request as it was, unless it was given up.
func (s *slowWriter) finish() {
	s.mu.Lock()
	given := s.given
	s.mu.Unlock()
	if !given {
		_ = s.control.SetWriteDeadline(time.Time{})
	}
}

func (s *slowWriter) Unwrap() http.ResponseWriter { return s.ResponseWriter }
