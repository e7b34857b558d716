package memnet

import (
	"net"
	"sync"
	"time"
)

// Queued is how many writes a connection takes, beside one that is under way, before the next has to wait for the reader, as for
// room in a kernel's buffer.
const Queued = 64

// linger is how long a closed connection goes on sending what was written before.
const linger = time.Second

// A conn is one end of a net.Pipe whose writes do not wait for the reader.
type conn struct {
	net.Conn
	out  chan []byte
	once sync.Once
	done chan struct{} // closed by Close
}

func newConn(inner net.Conn) *conn {
	c := &conn{Conn: inner, out: make(chan []byte, Queued), done: make(chan struct{})}
	go c.pump()
	return c
}

// pump sends what is written until the connection is closed, and then what is left.
func (c *conn) pump() {
	defer c.Conn.Close()
	for {
		select {
		case b := <-c.out:
			if _, err := c.Conn.Write(b); err != nil {
				return
			}
		case <-c.done:
			_ = c.Conn.SetWriteDeadline(time.Now().Add(linger))
			for {
				select {
				case b := <-c.out:
					if _, err := c.Conn.Write(b); err != nil {
						return
					}
				default:
					return
				}
			}
		}
	}
}

func (c *conn) Write(b []byte) (int, error) {
	select {
	case c.out <- append([]byte(nil), b...):
		return len(b), nil
	case <-c.done:
		return 0, net.ErrClosed
	}
}

func (c *conn) Close() error {
	c.once.Do(func() {
		close(c.done)
		_ = c.Conn.SetReadDeadline(time.Now())              // ends a Read that waits
		_ = c.Conn.SetWriteDeadline(time.Now().Add(linger)) // ends a write of the pump's that waits
	})
	return nil
}
