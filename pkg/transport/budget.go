package transport

import (
	"errors"
	"fmt"
	"io"
	"sync/atomic"
)

// A budget bounds the bytes of all messages that are being read or answered, so that many long ones at once do not cost the
// process its memory. Short messages are not counted: there are as many as there are connections, and they cost less than
// those.
type budget struct {
	limit int64
	used  atomic.Int64
}

// mostMessages is what most messages to a server fit in.
const mostMessages = 256

// uncounted is how long a message may be without being counted.
const uncounted = 64 << 10

// errOverBudget is why a message was not read to its end.
var errOverBudget = errors.New("the server holds as many bytes of messages as it may; try again")

// read reads a message, and counts what it takes until release. begun, unless it is nil, is called when the counting begins.
func (b *budget) read(r io.Reader, begun func()) ([]byte, error) {
	return b.readSized(r, mostMessages, begun)
}

// readSized is read for a message that is said to be so long.
func (b *budget) readSized(r io.Reader, size int64, begun func()) ([]byte, error) {
	const believed = 8 << 10 // before there is any of it
	data := make([]byte, 0, min(max(size, 1), believed))
	for {
		n, err := r.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		switch {
		case err == io.EOF:
			return data, nil
		case err != nil:
			b.release(data)
			return nil, err
		case len(data) < cap(data):
			continue
		}
		grown := append(data, 0)[:len(data)]
		if begun != nil && weight(grown) > 0 && weight(data) == 0 {
			begun()
		}
		if b.used.Add(weight(grown)-weight(data)) > b.limit {
			b.release(grown)
			return nil, fmt.Errorf("after %d bytes: %w", len(data), errOverBudget)
		}
		data = grown
	}
}

// release takes a message that was read off again.
func (b *budget) release(data []byte) { b.used.Add(-weight(data)) }

// keep counts n bytes of a message that is kept after it was read, or with -n takes them off again.
func (b *budget) keep(n int64) {
	if max(n, -n) > uncounted {
		b.used.Add(n)
	}
}

// weight is what a message that was read counts for.
func weight(data []byte) int64 {
	if cap(data) <= uncounted {
		return 0
	}
	return int64(cap(data))
}
