package transport

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"
)

// Liveness of sockets is lenient: a trainer that computes for a minute answers no ping, and is to keep its episode.
const (
	// pingEvery is how often a socket is pinged, unless a message is being written to it.
	pingEvery = 20 * time.Second
	// deadAfter is how long a ping may go unanswered, with no other sign of life, before the socket counts as lost.
	deadAfter = 3 * time.Minute
	// pingWait bounds the wait for a pong; a later one counts all the same.
	pingWait = 5 * time.Second
)

// A pulse tells how long a socket has been silent. Silence counts from the first ping that went unanswered, so that a
// client is sure of the whole time, whenever it stopped.
type pulse struct {
	k      *socket
	heard  atomic.Int64 // when the peer gave a sign of life last: a message, a ping, a pong; Unix nanoseconds
	pinged atomic.Int64 // when the first ping after that was sent
	timer  *time.Timer
}

func (p *pulse) start(k *socket) {
	p.k = k
	p.beat()
	p.timer = time.AfterFunc(time.Hour, p.check)
	p.timer.Reset(pingEvery) // after the assignment, which check reads
}

func (p *pulse) stop() { p.timer.Stop() }

// beat notes a sign of life.
func (p *pulse) beat() { p.heard.Store(time.Now().UnixNano()) }

// Silence is how long the peer has left a ping unanswered, or 0. While the server itself does not read, it does not count.
func (p *pulse) Silence() time.Duration {
	pinged := p.pinged.Load()
	if pinged == 0 || p.heard.Load() >= pinged || p.k.unread.Load() {
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

// ping sends a ping, unless a message is being written: it would have to wait for that, and the library does not for long.
func (p *pulse) ping() {
	if p.k.writing.Load() {
		return
	}
	if p.Silence() == 0 {
		p.pinged.Store(time.Now().UnixNano())
	}
	ctx, cancel := context.WithTimeout(p.k.ctx, pingWait)
	defer cancel()
	_ = p.k.conn.Ping(ctx) // the pong is noted by its callback
}
