package wire

import (
	"bytes"
	"fmt"
	"strconv"
)

// firstID is the first id of a JSON-RPC request: all ids have as many digits, so that all messages of a template have one
// length.
const firstID = 100_000_000

// ID returns the id of a client's n-th request.
func ID(n int) string { return strconv.Itoa(firstID + n%(8*firstID)) }

// Holes are what the messages of a template differ in. An empty one is in none of them.
type Holes struct{ Tag, ID, Session string }

// A Template is a message with holes. It is immutable, and clients share it.
type Template struct {
	parts  []part
	length int
}

// A part is text, or a hole.
type part struct {
	text []byte
	hole hole // if there is no text
}

// A hole is one of Holes, from 1.
type hole int

func (h Holes) all() [3]string { return [3]string{h.Tag, h.ID, h.Session} }

// NewTemplate makes a template of the message that has h in its holes.
func NewTemplate(message []byte, h Holes) Template {
	t := Template{length: len(message)}
	for len(message) > 0 {
		at, found, length := len(message), hole(0), 0
		for i, what := range h.all() {
			if what == "" {
				continue
			}
			if j := bytes.Index(message[:at], []byte(what)); j >= 0 {
				at, found, length = j, hole(i+1), len(what)
			}
		}
		if at > 0 {
			t.parts = append(t.parts, part{text: message[:at]})
		}
		if found != 0 {
			t.parts = append(t.parts, part{hole: found})
		}
		message = message[at+length:]
	}
	return t
}

// Append appends the message that has h in its holes.
func (t Template) Append(b []byte, h Holes) []byte {
	all := h.all()
	for _, p := range t.parts {
		if p.hole != 0 {
			b = append(b, all[p.hole-1]...)
		} else {
			b = append(b, p.text...)
		}
	}
	return b
}

// A Matcher compares what is written to it with a template's message.
type Matcher struct {
	t     Template
	holes [3]string
	rest  []byte // of the part before next
	next  int
	seen  int
	hole  []byte // what was in the last hole, as bytes
}

// Reset begins with another message.
func (m *Matcher) Reset(t Template, h Holes) {
	m.t, m.holes, m.rest, m.next, m.seen = t, h.all(), nil, 0, 0
}

// Write compares p. What differs is an error.
func (m *Matcher) Write(p []byte) (int, error) {
	whole := p
	for len(p) > 0 {
		if len(m.rest) == 0 && !m.advance() {
			return 0, fmt.Errorf("the reply goes on after its %d bytes with %q", m.seen, excerpt(p))
		}
		n := min(len(p), len(m.rest))
		if !bytes.Equal(p[:n], m.rest[:n]) {
			for p[0] == m.rest[0] {
				p, m.rest, m.seen = p[1:], m.rest[1:], m.seen+1
			}
			return 0, fmt.Errorf("after %d bytes the reply has %q, want %q", m.seen, excerpt(p), excerpt(m.rest))
		}
		p, m.rest, m.seen = p[n:], m.rest[n:], m.seen+n
	}
	return len(whole), nil
}

// Close reports what is missing.
func (m *Matcher) Close() error {
	if m.seen != m.t.length {
		return fmt.Errorf("the reply ends after %d bytes, want %d", m.seen, m.t.length)
	}
	return nil
}

func (m *Matcher) advance() bool {
	if m.next == len(m.t.parts) {
		return false
	}
	p := m.t.parts[m.next]
	m.next++
	m.rest = p.text
	if p.hole != 0 {
		m.hole = append(m.hole[:0], m.holes[p.hole-1]...)
		m.rest = m.hole
	}
	return true
}

// excerpt is the beginning of a text.
func excerpt(b []byte) []byte { return b[:min(len(b), 80)] }
