package transport

import (
	"encoding/binary"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/coder/websocket"
)

// RFC 6455 with a client that writes its own frames: the kinds of case that the Autobahn test suite has, on each door that is
// a WebSocket. The cases are in rfc6455_cases_test.go.

// Bits of a frame's first byte, and the opcodes that the other tests don't need.
const (
	fin          = 0x80
	opContinue   = 0
	opBinary     = 2
	textFrame    = fin | opText
	binaryFrame  = fin | opBinary
	pingFrame    = fin | opPing
	pongFrame    = fin | opPong
	closingFrame = fin | opClose
)

// maskKey is no palindrome and has no zero, so that a mask that is put on wrongly shows.
var maskKey = [4]byte{0x37, 0xfa, 0x21, 0x3d}

// rawFrame is a frame as a client must write it: masked, its length in the fewest bytes.
func rawFrame(head byte, payload string) []byte {
	b := []byte{head}
	switch n := len(payload); {
	case n < 126:
		b = append(b, 0x80|byte(n))
	case n < 1<<16:
		b = binary.BigEndian.AppendUint16(append(b, 0x80|126), uint16(n))
	default:
		b = binary.BigEndian.AppendUint64(append(b, 0x80|127), uint64(n))
	}
	return appendMasked(b, payload)
}

func appendMasked(b []byte, payload string) []byte {
	b = append(b, maskKey[:]...)
	for i := range len(payload) {
		b = append(b, payload[i]^maskKey[i%4])
	}
	return b
}

// longFrame is a frame whose length takes more bytes than it needs: form is 126 or 127.
func longFrame(head, form byte, length uint64, payload string) []byte {
	b := []byte{head, 0x80 | form}
	if form == 126 {
		b = binary.BigEndian.AppendUint16(b, uint16(length))
	} else {
		b = binary.BigEndian.AppendUint64(b, length)
	}
	return appendMasked(b, payload)
}

// unmasked is a frame of a client that does not mask.
func unmasked(head byte, payload string) []byte {
	return append([]byte{head, byte(len(payload))}, payload...)
}

// fragments is one message of a kind in pieces of so many bytes, with what is put between them.
func fragments(kind byte, payload string, size int, between ...byte) (b []byte) {
	for first := true; first || payload != ""; first = false {
		n := min(size, len(payload))
		head := byte(opContinue)
		if first {
			head = kind
		}
		if n == len(payload) {
			head |= fin
		}
		b = append(b, rawFrame(head, payload[:n])...)
		if payload = payload[n:]; payload != "" {
			b = append(b, between...)
		}
	}
	return b
}

// pieces is one text message in the given fragments.
func pieces(parts ...string) (b []byte) {
	for i, part := range parts {
		head := byte(opContinue)
		if i == 0 {
			head = opText
		}
		if i == len(parts)-1 {
			head |= fin
		}
		b = append(b, rawFrame(head, part)...)
	}
	return b
}

// closing is a close frame.
func closing(code uint16, reason string) []byte {
	return rawFrame(closingFrame, string(binary.BigEndian.AppendUint16(nil, code))+reason)
}

// An rfcDoor is a WebSocket of the server's, in the words of which a tool is called that says what it is told.
type rfcDoor struct {
	path        string
	initialised bool
	say         spelling
	junk        string // has the answer to a message that is no JSON
	said        func(t *testing.T, reply string) string
}

func bareCall(tool, args string) string { return rpcCall(tool, args, "") }

var rfcDoors = map[string]rfcDoor{
	"ws": {path: "/ws", say: stepFrame, junk: codeInvalidJSON, said: func(t *testing.T, reply string) string {
		var m struct {
			Data struct {
				Observation struct{ Result struct{ Data string } }
			}
		}
		unmarshal(t, reply, &m)
		return m.Data.Observation.Result.Data
	}},
	"mcp": {path: "/mcp", say: bareCall, junk: "-32700", said: func(t *testing.T, reply string) string {
		var m struct{ Result struct{ Data string } }
		unmarshal(t, reply, &m)
		return m.Result.Data
	}},
	"mcp initialised": {path: "/mcp", initialised: true, say: bareCall, junk: "-32700", said: func(t *testing.T, reply string) string {
		var m struct {
			Result struct {
				StructuredContent struct{ Result string }
			}
		}
		unmarshal(t, reply, &m)
		return m.Result.StructuredContent.Result
	}},
}

// call is the message that calls the tool say with a text.
func (d rfcDoor) call(text string) string {
	quoted, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return d.say("say", `{"text":`+string(quoted)+`}`)
}

// sized is a call whose message has so many bytes, and the text that it says.
func (d rfcDoor) sized(n int) (message, text string) {
	text = strings.Repeat("*", n-len(d.call("")))
	return d.call(text), text
}

// junked stands for the answer to a message that is no JSON.
const junked = "no JSON"

// An rfcPlay is what a client does, and what it must see. Where the order of two kinds of frames is the server's to choose,
// as that of answers and pongs is, it is not looked at.
type rfcPlay struct {
	send  []byte
	chop  int      // bytes to a write; 0: all at once
	says  []string // texts that the answers have, in order, or in any to an agent
	pongs []string // payloads, in order
	// then is sent when all of these have come. Where it is nil, and the code 0, the socket must serve another call and a
	// proper close.
	then []byte
	code int // of the server's close frame; 0: see then; noFrame: the connection just ends
	// rfc is the code that RFC 6455 would have, where it is another; why says where that cannot be mended.
	rfc int
	why string
}

// noFrame is for a connection that is ended without a close frame, and noStatus for a close frame without a code.
const (
	noFrame  = -1
	noStatus = int(websocket.StatusNoStatusRcvd)
)

// openRFC opens a socket of a door, and returns the id of its session.
func openRFC(t *testing.T, base string, d rfcDoor) (w *wire, id string) {
	t.Helper()
	w = dialWire(t, base, "GET "+d.path+"?announce=1\nConnection: Upgrade\nUpgrade: websocket\nSec-WebSocket-Version: 13\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==", "")
	res, err := http.ReadResponse(w.in, nil)
	if err != nil || res.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("got %v, %v", res, err)
	}
	if d.initialised {
		w.write(rawFrame(textFrame, initializeBody))
		w.mustNext(opText)
		w.write(rawFrame(textFrame, `{"jsonrpc":"2.0","method":"notifications/initialized"}`))
	}
	return w, res.Header.Get(sessionHeader)
}

// chopped writes bytes, so many at once. The server may close before it has read all.
func (w *wire) chopped(b []byte, size int) {
	if size == 0 {
		size = max(len(b), 1)
	}
	for part := range slices.Chunk(b, size) {
		if _, err := w.Write(part); err != nil {
			return
		}
	}
}

// run plays a play on a fresh socket.
func (p rfcPlay) run(t *testing.T, srv *Server, base string, d rfcDoor) {
	w, id := openRFC(t, base, d)
	w.chopped(p.send, p.chop)
	says, pongs := w.await(d, p)
	rest, want := p.then, p.code
	if p.code == 0 {
		w.write(rawFrame(textFrame, d.call("and on")))
		if got := d.said(t, w.mustNext(opText)); got != "and on" {
			t.Fatalf("the socket does not serve on: it says %q", got)
		}
		rest, want = closing(1000, "bye"), 1000
	}
	w.chopped(rest, p.chop)
	got := w.ending()
	if d.initialised { // an agent's calls are answered as they are done
		slices.Sort(says)
		p.says = slices.Sorted(slices.Values(p.says))
	}
	if !slices.Equal(says, p.says) || !slices.Equal(pongs, p.pongs) {
		t.Errorf("the answers %.200q and the pongs %.200q came, want %.200q and %.200q", says, pongs, p.says, p.pongs)
	}
	if got != want {
		t.Errorf("closed with %d, want %d", got, want)
	}
	waitFor(t, "the slot", func() bool { _, err := srv.Sessions().Get(id); return err != nil })
}

// await reads as many answers and pongs as are due.
func (w *wire) await(d rfcDoor, p rfcPlay) (says, pongs []string) {
	w.t.Helper()
	var message []byte
	for len(says) < len(p.says) || len(pongs) < len(p.pongs) {
		op, final, payload, err := w.next()
		switch {
		case err != nil || op == opClose:
			w.t.Fatalf("after the answers %.200q and the pongs %.200q got %d %q, %v", says, pongs, op, payload, err)
		case op == opPong:
			pongs = append(pongs, string(payload))
		case op == opText || op == opContinue:
			if message = append(message, payload...); final {
				says = append(says, d.heard(w.t, string(message)))
				message = nil
			}
		}
	}
	return says, pongs
}

func (d rfcDoor) heard(t *testing.T, reply string) string {
	if strings.Contains(reply, d.junk) {
		return junked
	}
	return d.said(t, reply)
}

// ending reads what comes until the connection ends, answers a close frame, behind which must be nothing, and returns its
// code.
func (w *wire) ending() int {
	w.t.Helper()
	code, closed := noFrame, false
	for {
		op, _, payload, err := w.next()
		switch {
		case err != nil:
			return code
		case closed:
			w.t.Errorf("after the close frame came %d %.100q", op, payload)
		case op == opClose && len(payload) == 0:
			code, closed = noStatus, true
		case op == opClose:
			code, closed = int(binary.BigEndian.Uint16(payload)), true
			_, _ = w.Write(rawFrame(closingFrame, string(payload))) // the server may wait for that, or have gone
		}
	}
}

func TestRFC6455(t *testing.T) {
	for name, d := range rfcDoors {
		t.Run(name, func(t *testing.T) {
			o := counted()
			o.MaxMessage = rfcLimit
			srv, base := start(t, labEnv(), o)
			t.Run("cases", func(t *testing.T) {
				for section, plays := range rfcSections {
					for what, p := range plays(d) {
						t.Run(section+"/"+what, func(t *testing.T) {
							t.Parallel()
							p.run(t, srv, base, d)
						})
					}
				}
			})
			waitFor(t, "the last slot", func() bool { return srv.Sessions().Active() == 0 })
		})
	}
}

// What the RFC has otherwise has a reason.
func TestRFC6455Deviations(t *testing.T) {
	for section, plays := range rfcSections {
		for what, p := range plays(rfcDoors["ws"]) {
			if (p.rfc != 0) != (p.why != "") || p.rfc != 0 && p.rfc == p.code {
				t.Errorf("%s/%s: the RFC has %d, we have %d, because %q", section, what, p.rfc, p.code, p.why)
			}
		}
	}
}
