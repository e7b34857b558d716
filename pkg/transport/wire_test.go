package transport

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/openenv-go/openenv-go/pkg/gym"
)

// startNarrow is start with small socket buffers, so that the server soon notices a client that does not read.
func startNarrow(t *testing.T, env gym.Definition, o Options) (*Server, string) {
	t.Helper()
	srv, err := New(t.Context(), env, o)
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewUnstartedServer(srv)
	web.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		if err := c.(*net.TCPConn).SetWriteBuffer(narrow); err != nil {
			t.Error(err)
		}
		return ctx
	}
	web.Start()
	t.Cleanup(func() {
		mustClose(t, srv)
		web.Close()
		active(t, srv, 0)
	})
	return srv, web.URL
}

const narrow = 32 << 10

// A wire is a client's connection without a library between.
type wire struct {
	t *testing.T
	*net.TCPConn
	in   *bufio.Reader
	pace func() // what a slow reader does before each kilobyte; nil: nothing
}

func (w *wire) Read(b []byte) (int, error) {
	if w.pace != nil {
		w.pace()
		b = b[:min(len(b), 1<<10)]
	}
	return w.TCPConn.Read(b)
}

// dialWire sends an HTTP request, its head by lines, and returns the connection with the answer unread.
func dialWire(t *testing.T, base, request, body string) *wire {
	t.Helper()
	host := strings.TrimPrefix(base, "http://")
	c, err := net.Dial("tcp", host)
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{t: t, TCPConn: c.(*net.TCPConn)}
	w.in = bufio.NewReader(w)
	t.Cleanup(func() { w.Close() })
	if err := w.SetReadBuffer(narrow); err != nil {
		t.Fatal(err)
	}
	if err := w.SetDeadline(time.Now().Add(testTime)); err != nil {
		t.Fatal(err)
	}
	head, rest, _ := strings.Cut(request, "\n")
	fmt.Fprintf(w, "%s HTTP/1.1\r\nHost: %s\r\n%s\r\n\r\n%s", head, host, strings.ReplaceAll(rest, "\n", "\r\n"), body)
	return w
}

// upgradeWire opens a WebSocket.
func upgradeWire(t *testing.T, base, path string) *wire {
	t.Helper()
	w := dialWire(t, base, "GET "+path+"\nConnection: Upgrade\nUpgrade: websocket\nSec-WebSocket-Version: 13\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==", "")
	res, err := http.ReadResponse(w.in, nil)
	if err != nil || res.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("got %v, %v", res, err)
	}
	return w
}

// Opcodes of RFC 6455, section 5.2.
const (
	opText  = 1
	opClose = 8
	opPing  = 9
	opPong  = 10
)

// wireFrame is a whole frame, masked with zeros.
func wireFrame(opcode byte, payload string) []byte {
	b := []byte{0x80 | opcode, 0x80 | 127}
	if n := len(payload); n < 126 {
		b[1] = 0x80 | byte(n)
	} else {
		b = binary.BigEndian.AppendUint64(b, uint64(n))
	}
	return append(append(b, 0, 0, 0, 0), payload...)
}

func (w *wire) send(opcode byte, payload string) {
	w.t.Helper()
	if _, err := w.Write(wireFrame(opcode, payload)); err != nil {
		w.t.Fatal(err)
	}
}

// next reads a frame. A message may have several; the last one is final.
func (w *wire) next() (opcode byte, final bool, payload []byte, err error) {
	var head [8]byte
	if _, err = io.ReadFull(w.in, head[:2]); err != nil {
		return 0, false, nil, err
	}
	opcode, final = head[0]&0x0f, head[0]&0x80 != 0
	n := uint64(head[1])
	switch n {
	case 126:
		_, err = io.ReadFull(w.in, head[:2])
		n = uint64(binary.BigEndian.Uint16(head[:2]))
	case 127:
		_, err = io.ReadFull(w.in, head[:8])
		n = binary.BigEndian.Uint64(head[:8])
	}
	if err == nil {
		payload = make([]byte, n)
		_, err = io.ReadFull(w.in, payload)
	}
	return opcode, final, payload, err
}
