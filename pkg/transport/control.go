package transport

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/coder/websocket"
)

// Pings and pongs are read and written here, and not by the library. That gives a control frame 5 seconds, in which it must
// have its turn, the processor and the peer's attention, and ends the connection when they have passed: under load, or after
// a long message to a slow peer, that costs a live socket its session. Here they have the time that silence has.
//
// They go past the library's buffer, straight to the connection, between messages or between pieces of a long one, when the
// buffer is empty (see writeChunk). All messages are written in turn; the close frames that the library writes beside them
// are one write each, as these are.

// barePing is a ping without a payload.
var barePing = []byte{pingHead, 0}

// maxDue bounds the pongs that wait to be written, in bytes. Older ones are dropped beyond it, as RFC 6455 has it (5.5.3).
const maxDue = 2 << 10

// An upgrade puts the socket's sieve between the connection and the library that takes it over.
type upgrade struct {
	*plainErrors
	k *socket
}

// Hijack is for the library, which keeps the buffers: so they are small, and not net/http's.
func (u *upgrade) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(u.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	first := make([]byte, rw.Reader.Buffered())
	_, _ = io.ReadFull(rw.Reader, first) // they are there
	u.k.wire = sieve{Conn: conn, to: u.k, first: first}
	u.k.joint.to = conn
	return &u.k.wire, bufio.NewReadWriter(bufio.NewReaderSize(&u.k.wire, libraryReads), bufio.NewWriterSize(&u.k.joint, libraryWrites)), nil
}

// beat notes a sign of life.
func (k *socket) beat() { k.pulse.beat() }

// owe has a ping answered: by who writes next, or by a goroutine that waits for its turn. The one that reads goes on
// reading, since the peer may not read before all that it sends has been taken.
func (k *socket) owe(ping []byte) {
	if k.shut.Load() {
		return
	}
	var due []byte
	if old := k.due.Swap(nil); old != nil && len(*old) < maxDue {
		due = *old
	}
	due = append(append(due, pongHead, byte(len(ping))), ping...)
	k.due.Store(&due) // only who reads stores, so that none is lost
	if k.paying.CompareAndSwap(false, true) {
		k.players.Go(func() {
			k.takeTurn()
			k.paying.Store(false)
			k.control(k.pay)
		})
	}
}

// takeTurn waits until nobody else writes. It waits by room, and not by a mutex, since that would hold up fake time.
func (k *socket) takeTurn() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for k.turn {
		k.room.Wait()
	}
	k.turn = true
}

// tryTurn takes the turn unless somebody else writes.
func (k *socket) tryTurn() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	taken := !k.turn
	k.turn = true
	return taken
}

// holdTurn bounds how long the turn may be held, by who has just taken it: a peer that takes so long has gone. If the session
// is over, the peer may not be reading.
func (k *socket) holdTurn(d time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.over {
		d = min(d, hurryTime)
	}
	k.slow.Reset(d)
}

func (k *socket) endTurn() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.slow.Stop()
	k.turn = false
	k.room.Broadcast()
}

// pay writes the pongs that are due. The caller has the turn.
func (k *socket) pay() error {
	due := k.due.Swap(nil)
	if due == nil || k.shut.Load() {
		return nil
	}
	_, err := k.wire.Conn.Write(*due)
	return err
}

// control has f write control frames in the turn that the caller has taken, and ends the turn. A peer that reads nothing has
// the time of one that is silent, and a little more, so that it is told of as such, unless the server does not read either.
func (k *socket) control(f func() error) {
	defer k.endTurn()
	k.holdTurn(deadAfter + pingEvery)
	if k.shut.Load() || k.ctx.Err() != nil {
		return
	}
	if err := f(); err != nil && !errors.Is(err, net.ErrClosed) { // who has closed it says why
		k.lose(err)
	}
}

// close says goodbye, after which nothing is to be written.
func (k *socket) close(code websocket.StatusCode, reason string) {
	k.shut.Store(true)
	k.conn.Close(code, reason)
}
