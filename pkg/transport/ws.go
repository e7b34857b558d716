package transport

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coder/websocket"

	"github.com/openenv-go/openenv-go/pkg/access"
	"github.com/openenv-go/openenv-go/pkg/session"
)

// errSocketGone is the cause of contexts whose socket has gone.
var errSocketGone = errors.New("the client's socket has gone")

// serveSocket upgrades the request and has the socket served until it goes. That is done in goroutines of its own, whose
// stacks are small: net/http's would be kept for as long, and the request with it.
func (s *Server) serveSocket(w http.ResponseWriter, r *http.Request, build func(*socket)) {
	if isHandshake(r) && !canHijack(w) {
		writeDetail(w, http.StatusNotImplemented, "the connection cannot become a WebSocket: something before this handler has a ResponseWriter without Hijack and Unwrap")
		return
	}
	if !s.addSocket() {
		httpError(w, &session.Error{Code: session.ShuttingDown, Message: "the server is shutting down"})
		return
	}
	serving := false
	defer func() {
		if !serving {
			s.sockets.Done()
		}
	}()
	if id := addressed(r); id != "" && s.opts.Advertise != "" {
		if _, _, err := s.sessions.Reach(id); unknown(err) {
			httpError(w, err)
			return
		}
	}
	resume, err := resumeOf(r)
	if err != nil {
		writeDetail(w, http.StatusBadRequest, err.Error())
		return
	}
	k := &socket{s: s, caller: callerOf(r), counted: limitKey(r), base: s.baseURL(r), remote: r.RemoteAddr}
	build(k)
	if k.origin == session.ByGymSocket {
		k.resume = resume
	}
	if announced(r) && isHandshake(r) {
		if err := k.find(r.Context(), addressed(r)); err != nil {
			httpError(w, err)
			return
		}
		if !k.agent {
			w.Header().Set(sessionHeader, k.session.ID)
			k.tell.Store(true)
		}
	}
	turned := &upgrade{detailErrors(w), k}
	conn, err := websocket.Accept(turned, r, &websocket.AcceptOptions{
		InsecureSkipVerify: true, // admit has looked at Origin
		CompressionMode:    websocket.CompressionDisabled,
		Subprotocols:       []string{"mcp"},
	})
	if err != nil { // Accept has answered
		turned.finish()
		if k.session != nil { // the connection was lost just now
			ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), closeWait)
			defer cancel()
			k.session.Linger(ctx, k.hold, max(resume, k.session.Patience()))
		}
		return
	}
	conn.SetReadLimit(s.opts.MaxMessage)
	ctx, gone := context.WithCancelCause(context.WithoutCancel(r.Context()))
	k.init(conn, ctx, gone)
	serving = true
	k.serve(addressed(r))
}

// sessionHeader tells the session's id in the answer to the upgrade.
const sessionHeader = "Openenv-Session-Id"

// announced reports whether the client asks for the session's id: ?announce=1. Its session is found or opened before the
// upgrade then, and what is in the way of that is an HTTP answer.
func announced(r *http.Request) bool {
	yes, err := strconv.ParseBool(r.URL.Query().Get("announce"))
	return err == nil && yes
}

// canHijack reports whether a connection can be taken over, which must be known before the upgrade is answered.
func canHijack(w http.ResponseWriter) bool {
	for {
		if _, ok := w.(http.Hijacker); ok {
			return true
		}
		outer, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			return false
		}
		w = outer.Unwrap()
	}
}

// isHandshake reports whether a request is a WebSocket handshake (RFC 6455, section 4.2.1) that will be accepted, so that
// nothing is done for one that will not.
func isHandshake(r *http.Request) bool {
	has := func(header, token string) bool {
		for _, v := range strings.Split(strings.Join(r.Header.Values(header), ","), ",") {
			if strings.EqualFold(strings.TrimSpace(v), token) {
				return true
			}
		}
		return false
	}
	keys := r.Header.Values("Sec-WebSocket-Key")
	if len(keys) != 1 || r.Method != http.MethodGet || !r.ProtoAtLeast(1, 1) || r.ProtoMajor > 1 {
		return false
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimSpace(keys[0]))
	return err == nil && len(key) == 16 && has("Connection", "Upgrade") && has("Upgrade", "websocket") && r.Header.Get("Sec-WebSocket-Version") == "13"
}

func unknown(err error) bool {
	var se *session.Error
	return errors.As(err, &se) && se.Code == session.Unknown
}

// open opens a session, or finds the one with that id. Where it can't, it says so and closes the socket.
func (k *socket) open(id string) bool {
	if k.session == nil { // not found before the upgrade
		if err := k.find(k.ctx, id); err != nil {
			k.becauseRefused(err)
			k.write(k.refuse(err))
			k.close(refusal(err), closeReason(err))
			return false
		}
	}
	k.calls, k.free = k.session.Bind(k.ctx)
	k.unlink = context.AfterFunc(k.session.Context(), k.sessionOver)
	if k.hold == session.Owner || k.hold == session.Attached {
		k.session.Watch(k.hold, &k.pulse)
	}
	return true
}

// find opens a session, or takes hold of the one with that id.
func (k *socket) find(ctx context.Context, id string) (err error) {
	found, hold, byHandle := (*session.Session)(nil), session.Owner, false
	switch {
	case id == "":
		found, err = k.s.open(ctx, k.origin, k.caller)
	case k.origin == session.ByMCPSocket:
		hold = session.Joined
		found, byHandle, err = k.s.sessions.Join(id)
	case k.caller.Role < access.Trainer: // for whom there are tools, and who must not take the trainer's place
		found, hold, err = k.findAsGuest(ctx, id)
	default:
		found, hold, err = k.s.sessions.Attach(ctx, id)
	}
	if err == nil {
		k.session, k.hold, k.agent = found, hold, byHandle
	}
	if err == nil && hold == session.Owner && id != "" && k.resume == 0 {
		k.resume = found.Patience() // who comes back may be lost again
	}
	return err
}

// findAsGuest finds the session of that id for a caller who is no trainer: beside its trainer, unless it is the caller's own and waits
// for it to come back.
func (k *socket) findAsGuest(ctx context.Context, id string) (*session.Session, session.Hold, error) {
	found, err := k.s.sessions.Get(id)
	if err != nil || found.Opener() != k.caller.Name || found.Info().Attachment != session.AttachedLost {
		return found, session.Visiting, err
	}
	found, hold, err := k.s.sessions.Attach(ctx, id)
	if err == nil && hold != session.Owner { // it has been taken up meanwhile
		found.Release(ctx, hold)
		hold = session.Visiting
	}
	return found, hold, err
}

func (k *socket) peer() peer {
	return peer{caller: k.caller, session: k.session, socket: k, agent: k.agent, base: k.base}
}

// refusal is the code that a socket without a session is closed with.
func refusal(err error) websocket.StatusCode {
	var se *session.Error
	if errors.As(err, &se) {
		switch se.Code {
		case session.CapacityReached:
			return websocket.StatusTryAgainLater
		case session.FactoryFailed:
			return websocket.StatusInternalError
		case session.ShuttingDown:
			return websocket.StatusGoingAway
		}
	}
	return websocket.StatusPolicyViolation
}

// release lets the session go, when the socket has gone and nobody answers.
func (k *socket) release() { k.letGo.Do(k.releaseOnce) }

func (k *socket) releaseOnce() {
	if k.session == nil {
		return
	}
	k.unlink()
	k.free()
	// What the environment's Close returns is in the log.
	ctx := context.WithoutCancel(k.ctx)
	if k.parted.Load() {
		k.session.Release(ctx, k.hold)
	} else {
		k.session.Linger(ctx, k.hold, k.resume)
	}
}

// maxResume bounds what a client may ask a session to wait for it.
const maxResume = 10 * time.Minute

// resumeOf is how long the session is to wait for a client that is lost: /ws?resume=SECONDS; 0 where nothing is said.
func resumeOf(r *http.Request) (time.Duration, error) {
	if !r.URL.Query().Has("resume") {
		return 0, nil
	}
	text := r.URL.Query().Get("resume")
	seconds, err := strconv.ParseFloat(text, 64)
	if err != nil || !(seconds >= 0) {
		return 0, fmt.Errorf("resume=%.40s: want a number of seconds, such as resume=60", text)
	}
	return time.Duration(min(seconds, maxResume.Seconds()) * float64(time.Second)), nil
}

// closeReason is an error as the reason of a close frame: some clients show that and not the message before it. It has room
// for 123 bytes, and no place for an id.
func closeReason(err error) string {
	const more = "; see the last message"
	se, _ := errors.AsType[*session.Error](err)
	if se == nil {
		return "no session" + more
	}
	switch se.Code {
	case session.CapacityReached:
		return fmt.Sprintf("no free session: %d of %d are in use; try again later", se.Active, se.Max)
	case session.FactoryFailed:
		return "the environment could not be built" + more
	case session.Unknown:
		return "unknown session: it was never opened here, or has ended"
	case session.Initializing:
		return "the session is still initializing; retry shortly"
	case session.Busy:
		return "the session already has an attached WebSocket"
	case session.ShuttingDown:
		return "the server is shutting down"
	}
	return "no session" + more
}

// writeChunk is how much is written at once. Between two chunks pongs are written: a long message to a peer that reads must
// not hold them up. It is much more than the library buffers, so that nothing of a chunk is left there.
const writeChunk = 64 << 10

// write writes one text message, when those before it are written. A peer that has stopped reading is gone after a while.
func (k *socket) write(text []byte) error {
	k.takeTurn()
	defer k.endTurn()
	k.holdTurn(timeFor(int64(len(text))))
	if err := k.pay(); err != nil {
		return err
	}
	k.joint.short.Store(len(text) <= maxShort)
	if len(text) <= writeChunk {
		return k.conn.Write(context.Background(), websocket.MessageText, text)
	}
	w, err := k.conn.Writer(context.Background(), websocket.MessageText)
	if err != nil {
		return err
	}
	for chunk := range slices.Chunk(text, writeChunk) {
		if err := k.pay(); err != nil {
			return err
		}
		if _, err := w.Write(chunk); err != nil {
			return err
		}
		k.pulse.beat() // the peer has taken what was before it, or most of it
	}
	return w.Close()
}
