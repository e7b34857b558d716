package transport

import (
	"bytes"
	"net/http"
	"strings"
	"sync"
	"time"
)

// heartbeatEvery is how long a stream of events may be quiet. Proxies close connections that are quiet for a minute or
// less; a comment keeps them, and clients ignore it.
const heartbeatEvery = 15 * time.Second

// A heartbeat is a response whose stream, if it is one, is never quiet for long once it has begun: for clients of MCP
// 2025-11-25 at once, for older ones with the first message. Each Write is a whole event, or none.
type heartbeat struct {
	http.ResponseWriter
	control *http.ResponseController
	timer   *time.Timer

	mu    sync.Mutex // guards what follows, and the writing
	last  time.Time  // when something was written
	ended bool       // the response is not ours any more
	begun bool       // its header is out, or about to be; before that it is its handler's alone
	told  bool       // a message has been written
}

// newHeartbeat returns w with a heartbeat, which the caller stops before it returns from the handler.
func newHeartbeat(w http.ResponseWriter) *heartbeat {
	h := &heartbeat{ResponseWriter: w, control: http.NewResponseController(w), last: time.Now()}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.timer = time.AfterFunc(heartbeatEvery, h.beat)
	return h
}

func (h *heartbeat) stop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ended = true
	h.timer.Stop()
}

func (h *heartbeat) beat() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended {
		return
	}
	if quiet := time.Since(h.last); quiet < heartbeatEvery {
		h.timer.Reset(heartbeatEvery - quiet)
		return
	}
	if h.begun && strings.HasPrefix(h.Header().Get("Content-Type"), "text/event-stream") {
		_, _ = h.ResponseWriter.Write([]byte(": quiet\n\n")) // a peer that has gone is noticed by the request's context
		_ = h.control.Flush()
	}
	h.last = time.Now()
	h.timer.Reset(heartbeatEvery)
}

// silent reports whether no message has been written.
func (h *heartbeat) silent() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return !h.told
}

func (h *heartbeat) WriteHeader(status int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.begun = true
	h.ResponseWriter.WriteHeader(status)
}

func (h *heartbeat) Write(b []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.begun = true
	h.last = time.Now()
	h.told = h.told || bytes.HasPrefix(b, []byte("event: message"))
	return h.ResponseWriter.Write(b)
}

// Flush is for http.ResponseController.
func (h *heartbeat) Flush() {
	h.mu.Lock()
	defer h.mu.Unlock()
	_ = h.control.Flush()
}
