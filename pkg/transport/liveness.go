package transport

import (
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"
)

// Liveness of sockets is lenient: a trainer that computes for a minute answers no ping, and is to keep its episode. So is one
// whose pong is behind a long message, and one of a server that has more to do than it can.
const (
	// pingEvery is how often a socket is pinged, unless something is being written to it.
	pingEvery = 20 * time.Second
	// deadAfter is how long a ping may go unanswered, with no other sign of life, before the socket counts as lost.
	deadAfter = 3 * time.Minute
)

// A pulse tells how long a socket has been silent. Silence counts from the first ping that went unanswered, so that a
// client is sure of the whole time, whenever it stopped.
type pulse struct {
	k *socket
	// pinged is when the peer was pinged first after its last sign of life, in Unix nanoseconds, or 0 where it has not been
	// since. A sign is anything that arrives, or a piece of a long message that goes; when it came does not matter, so that it
	// costs no look at the clock.
	pinged atomic.Int64
	timer  *time.Timer
}

func (p *pulse) start(k *socket) {
	p.k = k
	p.timer = time.AfterFunc(time.Hour, p.check)
	p.timer.Reset(pingEvery) // after the assignment, which check reads
}

func (p *pulse) stop() { p.timer.Stop() }

// beat notes a sign of life.
func (p *pulse) beat() {
	if p.pinged.Load() != 0 {
		p.pinged.Store(0)
	}
}

// Silence is how long the peer has left a ping unanswered, or 0. While the server itself does not read, it does not count.
func (p *pulse) Silence() time.Duration {
	pinged := p.pinged.Load()
	if pinged == 0 || p.k.unread.Load() {
		return 0
	}
	return time.Since(time.Unix(0, pinged))
}

// check pings the peer, or gives it up.
func (p *pulse) check() {
	if p.k.ctx.Err() != nil {
		return
	}
	p.timer.Reset(pingEvery)
	if silence := p.Silence(); silence >= deadAfter {
		p.k.because(slog.LevelWarn, fmt.Sprintf("silent for %v", silence.Round(time.Second)))
		p.k.conn.CloseNow()
		return
	}
	p.ping()
}

// ping sends a ping, unless something is being written, which may be an earlier ping: that has a time of its own. Where the
// peer takes no more, the ping waits in the goroutine of this check until it is taken, or a later check gives the peer up.
func (p *pulse) ping() {
	if !p.k.tryTurn() {
		return
	}
	if p.Silence() == 0 {
		p.pinged.Store(time.Now().UnixNano())
	}
	p.k.control(func() error {
		_, err := p.k.wire.Conn.Write(barePing)
		return err
	})
}
