package transport

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"

	"github.com/coder/websocket"

	"github.com/openenv-go/openenv-go/pkg/session"
)

// A parting is why a socket has gone, for the log: Debug where all is as it should be, Info for a client that was lost, Warn
// for one that broke the rules or stopped.
type parting struct {
	level slog.Level
	cause string
}

// because notes why the socket goes. The first cause counts, since later ones follow from it.
func (k *socket) because(level slog.Level, cause string) {
	k.why.CompareAndSwap(nil, &parting{level, cause})
}

// logGone tells why the socket has gone: one line for each socket.
func (k *socket) logGone() {
	why := k.why.Load()
	if why == nil {
		why = &parting{slog.LevelInfo, "lost"}
	}
	k.mu.Lock()
	own := k.session
	k.mu.Unlock()
	k.log(why.level, own, "socket closed", "event", "socket_closed", "cause", why.cause, "remote", k.remote)
}

// logRefused tells of a message that is not served. A client may send any number, so it is no more than Debug, but for the first one
// that wants what the caller may not have.
func (k *socket) logRefused(code any, err error) {
	level := slog.LevelDebug
	if code == codeNotAllowed && k.overstepped.CompareAndSwap(false, true) {
		level = slog.LevelWarn
	}
	k.log(level, k.session, "message refused", "event", "message_refused", "code", code, "error", err, "caller", k.caller.Name, "remote", k.remote)
}

func (p peer) logRefused(err error) {
	if p.socket != nil {
		p.socket.logRefused(rpcFailure(err).Code, err)
	}
}

func (k *socket) log(level slog.Level, own *session.Session, text string, args ...any) {
	if !k.s.log.Enabled(k.ctx, level) {
		return
	}
	door := "/mcp"
	if k.origin == session.ByGymSocket {
		door = "/ws"
	}
	args = append(args, "door", door)
	if own != nil {
		args = append(args, "session", own.ID)
	}
	k.s.log.Log(k.ctx, level, text, args...)
}

// becauseOf notes why a read or a write failed, and reports whether it was for a client that broke the rules of WebSocket.
func (k *socket) becauseOf(err error) (broken bool) {
	var op *net.OpError
	switch code := websocket.CloseStatus(err); {
	case code == websocket.StatusNormalClosure || code == websocket.StatusGoingAway || code == websocket.StatusNoStatusRcvd:
		k.because(slog.LevelDebug, "closed by the client")
	case code != -1:
		k.because(slog.LevelInfo, fmt.Sprintf("closed by the client with %d", code))
	case errors.Is(err, websocket.ErrMessageTooBig):
		k.because(slog.LevelWarn, fmt.Sprintf("a message over %d bytes", k.s.opts.MaxMessage))
	case errors.As(err, &op):
		k.because(slog.LevelInfo, "lost: "+op.Err.Error())
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed), errors.Is(err, io.ErrClosedPipe):
		k.because(slog.LevelInfo, "lost: the connection has ended")
	default:
		k.because(slog.LevelWarn, "broke the protocol: "+err.Error())
		return true
	}
	return false
}

// becauseRefused notes that there is no session for the socket. A full server and a factory's failure have lines of their
// own.
func (k *socket) becauseRefused(err error) {
	level := slog.LevelDebug
	if refusal(err) == websocket.StatusPolicyViolation {
		level = slog.LevelInfo
	}
	k.because(level, "no session: "+err.Error())
}
