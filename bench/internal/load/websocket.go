package load

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// A webSocket is the client's end of one (RFC 6455), as cheap as can be, since generator and server share the cores: no
// goroutine of its own, and a mask of zeros, which costs the server what any other does. Control frames are seen when a
// message is read.
type webSocket struct {
	conn   net.Conn
	reader *bufio.Reader
	out    []byte // a frame that is being written, if it is short
}

// Opcodes.
const (
	opContinuation = 0
	opText         = 1
	opClose        = 8
	opPing         = 9
	opPong         = 10
)

const (
	finBit  = 0x80
	maskBit = 0x80
)

const (
	handshakeKey    = "dGhlIHNhbXBsZSBub25jZQ==" // the RFC's own example
	handshakeAccept = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
)

// readerSize is the buffer of a connection: there may be very many.
const readerSize = 1 << 10

var getRequest = &http.Request{Method: http.MethodGet}

// dialWebSocket connects and upgrades.
func dialWebSocket(ctx context.Context, d *dialer, addr, path string) (*webSocket, error) {
	conn, err := d.dial(ctx, addr)
	if err != nil {
		return nil, err
	}
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	w := &webSocket{conn: conn, reader: bufio.NewReaderSize(conn, readerSize)}
	if err := w.upgrade(addr, path); err != nil {
		conn.Close()
		return nil, err
	}
	return w, nil
}

func (w *webSocket) upgrade(addr, path string) error {
	if _, err := io.WriteString(w.conn, "GET "+path+" HTTP/1.1\r\nHost: "+addr+"\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"+
		"Sec-WebSocket-Key: "+handshakeKey+"\r\nSec-WebSocket-Version: 13\r\n\r\n"); err != nil {
		return err
	}
	res, err := http.ReadResponse(w.reader, getRequest)
	if err != nil {
		return err
	}
	if res.StatusCode != http.StatusSwitchingProtocols || res.Header.Get("Sec-WebSocket-Accept") != handshakeAccept {
		text, _ := io.ReadAll(io.LimitReader(res.Body, 200))
		return fmt.Errorf("the upgrade got %s: %s", res.Status, text)
	}
	return nil
}

// writeText sends a message.
func (w *webSocket) writeText(text []byte) error { return w.write(opText, text) }

func (w *webSocket) write(opcode byte, payload []byte) error {
	head := append(w.out[:0], finBit|opcode)
	switch n := len(payload); {
	case n < 126:
		head = append(head, maskBit|byte(n))
	case n < 1<<16:
		head = binary.BigEndian.AppendUint16(append(head, maskBit|126), uint16(n))
	default:
		head = binary.BigEndian.AppendUint64(append(head, maskBit|127), uint64(n))
	}
	head = append(head, 0, 0, 0, 0)
	w.out = head
	if len(payload) > keptBuffer {
		_, err := (&net.Buffers{head, payload}).WriteTo(w.conn)
		return err
	}
	w.out = append(head, payload...)
	_, err := w.conn.Write(w.out)
	return err
}

// errClosed is a close frame of the server's.
var errClosed = errors.New("the server has closed the socket")

// readText writes the next message to to.
func (w *webSocket) readText(to io.Writer) error {
	begun := false
	for {
		opcode, fin, n, err := w.head()
		if err != nil {
			return err
		}
		switch {
		case opcode >= opClose:
			if err := w.control(opcode, n); err != nil {
				return err
			}
			continue
		case opcode == opText && begun || opcode == opContinuation && !begun || opcode != opText && opcode != opContinuation:
			return fmt.Errorf("a frame has the opcode %d", opcode)
		}
		begun = true
		if err := w.payload(to, n); err != nil {
			return err
		}
		if fin {
			return nil
		}
	}
}

func (w *webSocket) head() (opcode byte, fin bool, n uint64, err error) {
	b, err := w.take(2)
	if err != nil {
		return 0, false, 0, err
	}
	opcode, fin, n = b[0]&0x0f, b[0]&finBit != 0, uint64(b[1])
	switch {
	case b[0]&0x70 != 0 || n&maskBit != 0:
		return 0, false, 0, fmt.Errorf("a frame begins with %x", b)
	case n == 126:
		if b, err = w.take(2); err == nil {
			n = uint64(binary.BigEndian.Uint16(b))
		}
	case n == 127:
		if b, err = w.take(8); err == nil {
			n = binary.BigEndian.Uint64(b)
		}
	}
	return opcode, fin, n, err
}

// take returns the next n bytes, which are good until the next read.
func (w *webSocket) take(n int) ([]byte, error) {
	b, err := w.reader.Peek(n)
	if err == nil {
		w.reader.Discard(n)
	}
	return b, err
}

// payload passes on what is buffered, and what is not, where it is much, by a larger buffer.
func (w *webSocket) payload(to io.Writer, n uint64) error {
	for n > 0 {
		if w.reader.Buffered() == 0 {
			if n > readerSize {
				return copyTo(to, io.LimitReader(w.conn, int64(n)), int64(n))
			}
			if _, err := w.reader.Peek(1); err != nil {
				return err
			}
		}
		b, err := w.take(int(min(n, uint64(w.reader.Buffered()))))
		if err == nil {
			_, err = to.Write(b)
		}
		if err != nil {
			return err
		}
		n -= uint64(len(b))
	}
	return nil
}

func (w *webSocket) control(opcode byte, n uint64) error {
	b, err := w.take(int(min(n, 125)))
	switch {
	case err != nil:
		return err
	case opcode == opPing:
		return w.write(opPong, b)
	case opcode != opClose:
		return nil
	case len(b) < 2:
		return errClosed
	}
	return fmt.Errorf("%w with %d: %s", errClosed, binary.BigEndian.Uint16(b), b[2:])
}

// closeTimeout is how long the server may take to answer a close frame.
const closeTimeout = 60 * time.Second

// normalClosure is what a client says goodbye with: the code 1000.
var normalClosure = []byte{1000 >> 8, 1000 & 0xff}

// close says goodbye, and waits for the server to do so.
func (w *webSocket) close() error {
	defer w.conn.Close()
	w.conn.SetDeadline(time.Now().Add(closeTimeout))
	if err := w.write(opClose, normalClosure); err != nil {
		return err
	}
	if err := w.readText(io.Discard); !errors.Is(err, errClosed) {
		return fmt.Errorf("after the goodbye: %w", err)
	}
	return nil
}
