package memnet

import (
	"context"
	"net"
	"sync"
)

// A Listener is a net.Listener whose connections are made by its own Dial. Safe for concurrent use.
type Listener struct {
	conns chan net.Conn
	once  sync.Once
	done  chan struct{}
}

// Listen returns a listener.
func Listen() *Listener { return &Listener{conns: make(chan net.Conn), done: make(chan struct{})} }

// Dial connects to the listener. Its arguments are those of a dialer's DialContext, and are not looked at.
func (l *Listener) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	a, b := net.Pipe()
	ours, theirs := newConn(a), newConn(b)
	var err error
	select {
	case l.conns <- theirs:
		return ours, nil
	case <-l.done:
		err = net.ErrClosed
	case <-ctx.Done():
		err = ctx.Err()
	}
	ours.Close()
	theirs.Close()
	return nil, err
}

// Accept waits for a Dial.
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

// Close has Accept and Dial fail. It is idempotent.
func (l *Listener) Close() error {
	l.once.Do(func() { close(l.done) })
	return nil
}

// Addr is an address in name only.
func (*Listener) Addr() net.Addr { return addr{} }

type addr struct{}

func (addr) Network() string { return "memory" }
func (addr) String() string  { return "memory" }
