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
	begun  bool // an answer has begun
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
	p.begun = true
	p.ResponseWriter.WriteHeader(status)
}

func (p *plainErrors) Write(b []byte) (int, error) {
	if p.status == 0 {
		p.begun = true
		return p.ResponseWriter.Write(b)
	}
	if len(p.text) < maxTurned {
		p.text = append(p.text, b[:min(len(b), maxTurned-len(p.text))]...)
	}
	return len(b), nil
}

// maxTurned bounds the text of a turned error: libraries repeat what they were sent.
const maxTurned = 512

// finish writes the turned error, if there is one.
func (p *plainErrors) finish() {
	if p.status != 0 {
		p.Header().Del("X-Content-Type-Options")
		p.answer(p.ResponseWriter, p.status, strings.ToValidUTF8(strings.TrimSpace(string(p.text)), ""))
	}
}

// Unwrap lets http.ResponseController reach the writer's own methods.
func (p *plainErrors) Unwrap() http.ResponseWriter { return p.ResponseWriter }

// Flush is for code that asks the writer itself.
func (p *plainErrors) Flush() {
	if f, ok := p.ResponseWriter.(http.Flusher); ok && p.status == 0 {
		p.begun = true
		f.Flush()
	}
}

// minimumRate is how many bytes a second a peer must take, or send, at least, once a minute is over.
const minimumRate = 256 << 10

// timeFor is how long the transfer of n bytes may take.
func timeFor(n int64) time.Duration {
	return writeTimeout + time.Duration(n)*time.Second/minimumRate
}

// A slowWriter gives each write a time, since a peer that has stopped reading would hold what is being written for ever,
// and the session with it. The last write's time covers what net/http writes after the handler.
type slowWriter struct {
	http.ResponseWriter
	control http.ResponseController
	begun   bool   // an answer has begun
	atEnd   func() // called by finish; nil: nothing is
	unread  bool   // there is a body, and nobody has begun to read it

	mu    sync.Mutex // guards what follows
	limit time.Time  // no write may take longer than until then; zero: as its length allows
	over  bool       // the handler has returned, and the connection is the next request's
}

func newSlowWriter(w http.ResponseWriter) *slowWriter {
	return &slowWriter{ResponseWriter: w, control: *http.NewResponseController(w)}
}

// give sets the time of the next write. A server that has none to set, as in a test, writes without.
func (s *slowWriter) give(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return
	}
	t := time.Now().Add(d)
	if !s.limit.IsZero() && t.After(s.limit) {
		t = s.limit
	}
	_ = s.control.SetWriteDeadline(t)
}

// hurry leaves what is still to be written a short time, and a write that is under way too.
func (s *slowWriter) hurry() {
	s.mu.Lock()
	s.limit = time.Now().Add(hurryTime)
	s.mu.Unlock()
	s.give(hurryTime)
}

// finish is called when the handler returns. An agent may end at that moment, and its hurry come late.
func (s *slowWriter) finish() {
	s.mu.Lock()
	s.over = true
	s.mu.Unlock()
	if s.unread { // by a refusal, which is short; net/http waits for the body now
		_ = s.control.SetReadDeadline(time.Now().Add(hurryTime))
	}
	if s.atEnd != nil {
		s.atEnd()
	}
}

// hurryTime is enough for the end of an answer to a peer that reads.
const hurryTime = 2 * time.Second

// WriteHeader may be all that is written.
func (s *slowWriter) WriteHeader(status int) {
	s.begun = true
	s.give(writeTimeout)
	s.ResponseWriter.WriteHeader(status)
}

func (s *slowWriter) Write(b []byte) (int, error) {
	s.begun = true
	s.give(timeFor(int64(len(b))))
	return s.ResponseWriter.Write(b)
}

// Flush writes what is buffered.
func (s *slowWriter) Flush() {
	s.give(writeTimeout)
	_ = s.control.Flush()
}

func (s *slowWriter) Unwrap() http.ResponseWriter { return s.ResponseWriter }
