package transport

import (
	"encoding/binary"
	"net"
)

// A sieve is a connection as the WebSocket library sees it: without the peer's pings and pongs, since the library ends the
// connection where the handling of one takes 5 seconds, as it may when there are more goroutines to run, or more garbage to
// collect, than the processors can. All else passes as it is, and what is wrong with it is the library's to tell.
type sieve struct {
	net.Conn
	to     sieved
	first  []byte   // is read before the connection: what came along with the handshake
	held   []byte   // the payload of a ping, as far as it has come
	left   uint64   // how much of the frame's payload is still to come
	head   [14]byte // of the frame, as far as it has come: headed bytes
	headed uint8
	blind  bool // what follows is no sequence of frames: all of it passes
}

// A sieved is told of what a sieve lets pass and what it does not.
type sieved interface {
	// beat is called when anything has arrived.
	beat()
	// owe is called with the payload of a ping.
	owe(ping []byte)
}

// The first bytes of whole pings and pongs (RFC 6455, section 5.2).
const (
	pingHead = 0x89
	pongHead = 0x8a
)

// maxControl is how long the payload of a control frame may be.
const maxControl = 125

func (s *sieve) Read(b []byte) (n int, err error) {
	for n == 0 && err == nil {
		if n, err = s.fetch(b); n > 0 {
			s.to.beat()
			n = s.sift(b[:n])
		}
	}
	return n, err
}

func (s *sieve) fetch(b []byte) (int, error) {
	if len(s.first) == 0 {
		return s.Conn.Read(b)
	}
	n := copy(b, s.first)
	if s.first = s.first[n:]; len(s.first) == 0 {
		s.first = nil
	}
	return n, nil
}

// sift moves what passes to the front, and returns how much that is.
func (s *sieve) sift(b []byte) (kept int) {
	if s.blind {
		return len(b)
	}
	for at := 0; at < len(b); {
		n, passes := s.step(b[at:])
		if s.blind {
			s.first = append(append([]byte(nil), s.head[:s.headed]...), append(b[at+n:len(b):len(b)], s.first...)...)
			return kept
		}
		if passes && kept != at {
			copy(b[kept:], b[at:at+n])
		}
		if at += n; passes {
			kept += n
		}
	}
	return kept
}

// step takes the next bytes of a payload, or the next one of a head.
func (s *sieve) step(b []byte) (n int, passes bool) {
	if s.left == 0 {
		s.head[s.headed] = b[0]
		s.headed++
		passes = !s.control()
		s.begin()
		return 1, passes
	}
	n = int(min(s.left, uint64(len(b))))
	passes = !s.control()
	if s.head[0] == pingHead {
		s.held = append(s.held, b[:n]...)
	}
	if s.left -= uint64(n); s.left == 0 {
		s.end()
	}
	return n, passes
}

// control reports whether the frame that has begun is a ping or a pong.
func (s *sieve) control() bool { return s.head[0] == pingHead || s.head[0] == pongHead }

// begin looks at a head as far as it has come. A ping or a pong that is not as it must be is let through after all, and all
// that comes after it: the library ends the connection, or, where the length was spelled longer than need be, is the one that
// answers pings from then on.
func (s *sieve) begin() {
	if s.headed < 2 {
		return
	}
	size, length, masked := uint8(2), uint64(s.head[1]&0x7f), s.head[1]&0x80 != 0
	if s.control() && (length > maxControl || !masked) {
		s.blind = true
		return
	}
	switch length {
	case 126:
		size += 2
	case 127:
		size += 8
	}
	if masked {
		size += 4
	}
	if s.headed < size {
		return
	}
	switch length {
	case 126:
		length = uint64(binary.BigEndian.Uint16(s.head[2:]))
	case 127:
		length = binary.BigEndian.Uint64(s.head[2:])
	}
	if s.left = length; length == 0 {
		s.end()
	}
}

// end ends a frame.
func (s *sieve) end() {
	if s.head[0] == pingHead {
		for i := range s.held {
			s.held[i] ^= s.head[2+i%4]
		}
		s.to.owe(s.held)
		s.held = nil
	}
	s.headed = 0
}
