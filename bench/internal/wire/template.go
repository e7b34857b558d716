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

// A Template is a message with holes for a tag and an id. It is immutable, and clients share it.
type Template struct {
	parts  []part
	length int
}

// A part is text, or a hole.
type part struct {
	text []byte
	hole hole // if there is no text
}

type hole byte

const (
	tagHole hole = 't'
	idHole  hole = 'i'
)

// NewTemplate makes a template of a message that has this tag and this id; "": it has none.
func NewTemplate(message []byte, tag, id string) Template {
	t := Template{length: len(message)}
	for len(message) > 0 {
		at, h, length := len(message), hole(0), 0
		if i := bytes.Index(message, []byte(tag)); i >= 0 {
			at, h, length = i, tagHole, len(tag)
		}
		if i := bytes.Index(message, []byte(id)); id != "" && i >= 0 && i < at {
			at, h, length = i, idHole, len(id)
		}
		if at > 0 {
			t.parts = append(t.parts, part{text: message[:at]})
		}
		if h != 0 {
			t.parts = append(t.parts, part{hole: h})
		}
		message = message[at+length:]
	}
	return t
}

// Len is the length of all messages of the template.
func (t Template) Len() int { return t.length }

// Append appends the message with this tag and id.
func (t Template) Append(b []byte, tag, id string) []byte {
	for _, p := range t.parts {
		switch p.hole {
		case tagHole:
			b = append(b, tag...)
		case idHole:
			b = append(b, id...)
		default:
			b = append(b, p.text...)
		}
	}
	return b
}

// A Matcher compares what is written to it with the message of one tag and id.
type Matcher struct {
	t       Template
	rest    []byte // of the part before next
	next    int
	seen    int
	strings [2][]byte // the tag and the id as bytes
}

// Reset begins with another message.
func (m *Matcher) Reset(t Template, tag, id string) {
	m.t, m.rest, m.next, m.seen = t, nil, 0, 0
	m.strings[0] = append(m.strings[0][:0], tag...)
	m.strings[1] = append(m.strings[1][:0], id...)
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
	switch p.hole {
	case tagHole:
		m.rest = m.strings[0]
	case idHole:
		m.rest = m.strings[1]
	default:
		m.rest = p.text
	}
	return true
}

// excerpt is the beginning of a text.
func excerpt(b []byte) []byte { return b[:min(len(b), 80)] }
