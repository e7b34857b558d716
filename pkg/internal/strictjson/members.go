package strictjson

import (
	"bytes"
	"iter"
)

// A Members walks the members of an object that has been checked, without decoding anything.
type Members struct {
	b []byte
	i int
}

// MembersOf begins a walk; ok reports whether the checked JSON is an object.
func MembersOf(b []byte) (m Members, ok bool) {
	m = Members{b: b}
	m.space()
	if m.i == len(b) || b[m.i] != '{' {
		return m, false
	}
	m.i++
	return m, true
}

// Next returns the next member: its name and its value, as they are spelled. A name that is spelled with escapes comes
// unescaped. The value is a part of the object's bytes.
func (m *Members) Next() (name []byte, value Raw, ok bool) {
	m.over(',')
	if m.i >= len(m.b) || m.b[m.i] != '"' {
		return nil, nil, false
	}
	end := skipString(m.b, m.i)
	if end == len(m.b) {
		return nil, nil, false // nobody has checked this
	}
	name = m.b[m.i+1 : end]
	if bytes.IndexByte(name, '\\') >= 0 {
		s, _ := String(m.b[m.i : end+1])
		name = []byte(s)
	}
	m.i = end + 1
	m.over(':')
	begin := m.i
	m.skip()
	return name, Raw(m.b[begin:m.i:m.i]), true
}

// MembersIn walks the members of checked JSON, as [Members] does; what is no object has none.
func MembersIn(b []byte) iter.Seq2[[]byte, Raw] {
	return func(yield func(name []byte, value Raw) bool) {
		m, ok := MembersOf(b)
		for ok {
			name, value, more := m.Next()
			ok = more && yield(name, value)
		}
	}
}

func (m *Members) space() {
	for m.i < len(m.b) && (m.b[m.i] == ' ' || m.b[m.i] == '\t' || m.b[m.i] == '\r' || m.b[m.i] == '\n') {
		m.i++
	}
}

func (m *Members) over(c byte) {
	m.space()
	if m.i < len(m.b) && m.b[m.i] == c {
		m.i++
		m.space()
	}
}

// skip moves over one value.
func (m *Members) skip() {
	depth := 0
	for m.i < len(m.b) {
		switch m.b[m.i] {
		case '"':
			m.i = min(skipString(m.b, m.i)+1, len(m.b))
		case '{', '[':
			depth++
			m.i++
			continue
		case '}', ']':
			depth--
			m.i++
		case ',', ':', ' ', '\t', '\r', '\n':
			m.i++
			continue
		default:
			for m.i < len(m.b) && !isDelimiter(m.b[m.i]) {
				m.i++
			}
		}
		if depth == 0 {
			return
		}
	}
}

func isDelimiter(c byte) bool {
	switch c {
	case ',', ':', '}', ']', ' ', '\t', '\r', '\n':
		return true
	}
	return false
}
