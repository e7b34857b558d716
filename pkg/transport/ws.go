package transport

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/coder/websocket"

	"github.com/openenv-go/openenv-go/pkg/session"
)

// errSocketGone is the cause of contexts whose socket has gone.
var errSocketGone = errors.New("the client's socket has gone")

// queuedFrames is how many frames of one socket may wait for the one that is answered. A client that sends more is not
// read until it has had answers.
const queuedFrames = 16

// A socket is one WebSocket and the session that it holds. Frames are answered one by one, in order; they are read while
// one is answered, so that pings, a close and a loss are seen at once.
type socket struct {
	s       *Server
	conn    *websocket.Conn
	session *session.Session
	// answer makes the reply to a text message; nil means none. last says that the socket is to be closed after it.
	answer func(ctx context.Context, text []byte) (reply []byte, last bool)
	// refuse makes the message that tells an error: why there is no session, above all.
	refuse func(err error) []byte
	// joins: a session that the request names is shared with whoever holds it; else the socket is to hold it alone.
	joins bool

	ctx    context.Context // ends when the socket has gone
	frames chan []byte
	busy   atomic.Bool // a goroutine is answering frames
	work   sync.WaitGroup
}

// serveSocket upgrades the request, gives the socket the session that it asks for, and serves it until it goes.
func (s *Server) serveSocket(w http.ResponseWriter, r *http.Request, build func(*socket)) {
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{
		InsecureSkipVerify: true, // admit has looked at Origin
		CompressionMode:    websocket.CompressionDisabled,
		Subprotocols:       []string{"mcp"},
	})
	if err != nil {
		return // Accept has answered
	}
	s.sockets.Add(1)
	defer s.sockets.Done()
	defer conn.CloseNow()
	conn.SetReadLimit(s.opts.MaxMessage)
	ctx, gone := context.WithCancelCause(context.WithoutCancel(r.Context()))
	defer gone(errSocketGone)
	k := &socket{s: s, conn: conn, ctx: ctx, frames: make(chan []byte, queuedFrames)}
	build(k)
	id := r.URL.Query().Get("session_id")
	if !k.take(id) {
		return
	}
	k.read()
	gone(errSocketGone) // cancels the call that runs
	k.work.Wait()
	if k.joins && id != "" {
		return
	}
	if err := k.session.Detach(context.WithoutCancel(ctx)); err != nil {
		s.log.Warn("session did not end cleanly", "event", "close_error", "session", k.session.ID, "error", err)
	}
}

// take opens a session, or attaches to the one with that id. Where it can't, it says so and closes the socket.
func (k *socket) take(id string) bool {
	var err error
	switch {
	case id == "":
		k.session, err = k.s.sessions.Open(k.ctx, session.BySocket)
	case k.joins:
		k.session, err = k.s.sessions.Get(id)
	default:
		k.session, err = k.s.sessions.Attach(id)
	}
	if err == nil {
		return true
	}
	k.write(k.refuse(err))
	code := websocket.StatusPolicyViolation
	var se *session.Error
	if errors.As(err, &se) {
		switch se.Code {
		case session.CapacityReached:
			code = websocket.StatusTryAgainLater
		case session.FactoryFailed:
			code = websocket.StatusInternalError
		case session.ShuttingDown:
			code = websocket.StatusGoingAway
		}
	}
	k.conn.Close(code, "no session")
	return false
}

// read reads until the socket goes, and has what it reads answered.
func (k *socket) read() {
	// A session that ends under its socket takes the socket along. Close talks to the peer, so it needs its own goroutine.
	defer context.AfterFunc(k.session.Context(), func() {
		code := websocket.StatusNormalClosure
		if k.s.stop.Err() != nil {
			code = websocket.StatusGoingAway
		}
		k.conn.Close(code, "the session has ended")
	})()
	for {
		kind, data, err := k.conn.Read(k.ctx)
		switch {
		case err != nil:
			return
		case kind == websocket.MessageBinary:
			k.conn.Close(websocket.StatusUnsupportedData, "send text messages")
			return
		case !utf8.Valid(data):
			k.conn.Close(websocket.StatusInvalidFramePayloadData, "the text is not valid UTF-8")
			return
		}
		select {
		case k.frames <- data:
		case <-k.ctx.Done():
			return
		}
		if k.busy.CompareAndSwap(false, true) {
			k.work.Go(k.answerAll)
		}
	}
}

// answerAll answers frames until none is left. It runs in a goroutine of its own that lives only while there is work, so
// that an idle socket has one goroutine.
func (k *socket) answerAll() {
	for {
		select {
		case data := <-k.frames:
			reply, last := k.answerOne(data)
			if reply != nil && k.ctx.Err() == nil && k.write(reply) != nil {
				k.conn.CloseNow()
			}
			if last {
				k.conn.Close(websocket.StatusNormalClosure, "")
				return // busy stays true: what comes after a close frame is not answered
			}
		default:
			k.busy.Store(false)
			// A frame may have come after the queue was seen empty and before busy was false.
			if len(k.frames) == 0 || !k.busy.CompareAndSwap(false, true) {
				return
			}
		}
	}
}

// answerOne contains a panic to its socket, as net/http does for a request: what an author's types do when they are
// written as JSON is not in the session's hands.
func (k *socket) answerOne(text []byte) (reply []byte, last bool) {
	defer func() {
		if r := recover(); r != nil {
			k.s.log.Error("answering panicked", "event", "door_panic", "session", k.session.ID, "panic", fmt.Sprint(r), "stack", string(debug.Stack()))
			reply, last = k.refuse(errors.New("the server failed to answer; its log has the stack")), false
		}
	}()
	return k.answer(k.ctx, text)
}

// write writes one text message. The socket's own context does not bound it, for a cancelled write kills the socket.
func (k *socket) write(text []byte) error {
	ctx, cancel := context.WithTimeout(context.Background(), writeTimeout)
	defer cancel()
	return k.conn.Write(ctx, websocket.MessageText, text)
}

// temporaryClose bounds the wait for the end of a session that served one call: long enough for the slot to be free when
// the answer is out, not so long that an environment slow to close holds the answer back.
const temporaryClose = time.Second

// withSession calls f with the session of that id, or with a temporary one where id is "".
func (s *Server) withSession(ctx context.Context, id string, f func(*session.Session) error) error {
	if id != "" {
		live, err := s.sessions.Get(id)
		if err != nil {
			return err
		}
		return f(live)
	}
	temp, err := s.sessions.Open(ctx, session.Temporary)
	if err != nil {
		return err
	}
	defer func() {
		wait, cancel := context.WithTimeout(context.WithoutCancel(ctx), temporaryClose)
		defer cancel()
		temp.Close(wait, "its call is answered")
	}()
	return f(temp)
}
