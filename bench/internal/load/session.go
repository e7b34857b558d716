package load

import (
	"context"
	"fmt"
	"net"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/openenv-go/openenv-go/bench/internal/wire"
)

// A Session is a client with a connection of its own, and the session that it has opened by it. It is used by one goroutine
// at a time, save Cut.
type Session interface {
	// Step sends the n-th request and checks the reply.
	Step(n int) error
	// Close ends the connection, and the session as far as the door lets it.
	Close() error
	// Cut ends the connection at once, and with it what is under way.
	Cut()
}

// A Target is a server as a door sees it.
type Target struct {
	Addr string // host:port
	Path string // "": the door's usual one
	Size int    // of the texts, in bytes
	// Bare says that the server has nothing around the door: no sessions to open, no handshake of MCP.
	Bare bool
	// Seconds is how long each step waits before it echoes; 0: it is an echo alone.
	Seconds float64
}

// A Door is a way into a server.
type Door struct {
	Name string
	open func(ctx context.Context, t Target, dial *dialer, plan *plan, client int) (Session, error)
}

// Doors are all that there are.
var Doors = []Door{
	{"ws-step", openFrames(stepFrames)},
	{"ws-mcp-frame", openFrames(mcpFrames)},
	{"ws-mcp", openRPCSocket},
	{"post-mcp", openPost(postMCP)},
	{"post-mcp-temporary", openPost(postMCPTemporary)},
	{"post-step", openPost(postStep)},
	{"post-step-temporary", openPost(postStepTemporary)},
	{"streamable", openPost(streamable)},
}

// DoorOf is the door of that name.
func DoorOf(name string) (Door, error) {
	for _, d := range Doors {
		if d.Name == name {
			return d, nil
		}
	}
	return Door{}, fmt.Errorf("no door is named %q", name)
}

// A plan is what the clients of one group share: the templates of requests and replies, once they are there.
type plan struct {
	size           int
	request, reply atomic.Pointer[wire.Template]
}

// ask returns the request by which a client learns, if nobody has learnt before, and has the template of all that follow.
func (p *plan) ask(client int, session string, request func(text, id string) []byte) (first []byte) {
	if p.reply.Load() != nil {
		return nil
	}
	h := holes(client, learning, session)
	first = request(wire.Text(h.Tag, p.size), h.ID)
	t := wire.NewTemplate(first, h)
	p.request.CompareAndSwap(nil, &t)
	return first
}

// learn judges the reply to it and keeps its template.
func (p *plan) learn(reply []byte, client int, judge func(reply []byte, message string) error) error {
	h := holes(client, learning, "")
	if err := judge(reply, wire.Text(h.Tag, p.size)); err != nil {
		return err
	}
	t := wire.NewTemplate(reply, h)
	p.reply.CompareAndSwap(nil, &t)
	return nil
}

func holes(client, n int, session string) wire.Holes {
	return wire.Holes{Tag: wire.Tag(client, n), ID: wire.ID(n), Session: session}
}

// learning is the number of the request by which a client learns; others count from 0.
const learning = 1 << 31

// dialTimeout is how long a connection may take, a full backlog included.
const dialTimeout = 60 * time.Second

// A dialer makes connections from many loopback addresses in turn, since one has but some 28,000 ports for one server, and
// those of closed connections are free only a minute later.
type dialer struct{ next atomic.Uint32 }

// sources is how many addresses connections come from: 127.0.1.1 and those after it.
const sources = 200

func (d *dialer) dial(ctx context.Context, addr string) (net.Conn, error) {
	from := d.next.Add(1) % sources
	nd := net.Dialer{
		Timeout:   dialTimeout,
		LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(1+from))},
		KeepAlive: -1,
		// The port is chosen when the connection is made, so that it need be free towards this server only.
		Control: func(_, _ string, c syscall.RawConn) error {
			var err error
			if e := c.Control(func(fd uintptr) {
				err = unix.SetsockoptInt(int(fd), unix.SOL_IP, unix.IP_BIND_ADDRESS_NO_PORT, 1)
			}); e != nil {
				return e
			}
			return err
		},
	}
	return nd.DialContext(ctx, "tcp4", addr)
}
