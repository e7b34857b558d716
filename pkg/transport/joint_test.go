package transport

import (
	"context"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/coder/websocket"

	"github.com/openenv-go/openenv-go/pkg/internal/memnet"
)

// A writesListener counts the writes to its connections.
type writesListener struct {
	net.Listener
	writes *atomic.Int64
}

func (l writesListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return writesConn{c, l.writes}, err
}

type writesConn struct {
	net.Conn
	writes *atomic.Int64
}

func (c writesConn) Write(b []byte) (int, error) {
	c.writes.Add(1)
	return c.Conn.Write(b)
}

// A reply of up to 4 KiB is one write, so that it is one packet too. Longer ones arrive as they are.
func TestShortRepliesAreOneWrite(t *testing.T) {
	srv, err := New(t.Context(), labEnv(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	ln := memnet.Listen()
	var writes atomic.Int64
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(ctx, writesListener{ln, &writes}, nil) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	c, _, err := websocket.Dial(t.Context(), "ws://localhost/mcp", &websocket.DialOptions{HTTPClient: &http.Client{Transport: &http.Transport{DialContext: ln.Dial}}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseNow()
	c.SetReadLimit(-1)
	said := func(id string) (reply string) {
		if err := c.Write(t.Context(), websocket.MessageText, []byte(`{"jsonrpc":"2.0","method":"none","id":"`+id+`"}`)); err != nil {
			t.Fatal(err)
		}
		_, b, err := c.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	least := len(said(""))
	for _, size := range []int{libraryWrites, 256, 1000, maxShort, joined, 5000, writeChunk, 2*writeChunk + libraryWrites} {
		for n := max(size-8, least); n < size+8; n++ {
			id := strings.Repeat("x", n-least)
			before := writes.Load()
			reply := said(id)
			if len(reply) != n || !strings.Contains(reply, `"`+id+`"`) {
				t.Fatalf("a reply of %d bytes, of which there are %d: %.200s", n, len(reply), reply)
			}
			if got := writes.Load() - before; n <= maxShort && got != 1 {
				t.Errorf("a reply of %d bytes is %d writes", n, got)
			}
		}
	}
}
