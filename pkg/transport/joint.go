package transport

import (
	"io"
	"sync"
	"sync/atomic"
)

// Sizes of the buffers that the WebSocket library has for each socket, as long as that lives. Most messages that come are
// read into one; all control frames are written as one.
const (
	libraryReads  = 2 << 10
	libraryWrites = 128
)

// A joint is what the library's buffer for writing is emptied to. That is small, so a message comes in two pieces. The joint
// makes one write of those of a short one, and has a buffer only meanwhile. The library writes frame by frame, so Write is
// not called concurrently.
type joint struct {
	to    io.Writer
	short atomic.Bool   // a message of up to joined bytes is being written
	held  *[joined]byte // begins with the first piece of a frame, whose second is to come; nil: there is none
}

// joined is how long a frame may be whose pieces are joined.
const joined = 4 << 10

// maxShort is how long a message may be for that, whose frame has a head of four bytes.
const maxShort = joined - 4

var joining = sync.Pool{New: func() any { return new([joined]byte) }}

// Write takes a whole frame, or a piece of one.
func (j *joint) Write(b []byte) (n int, err error) {
	switch {
	case j.held != nil:
		whole := j.held
		j.held = nil
		n = libraryWrites + copy(whole[libraryWrites:], b)
		_, err = j.to.Write(whole[:n])
		joining.Put(whole)
	case len(b) == libraryWrites && j.short.Load(): // longer than a control frame
		j.held = joining.Get().(*[joined]byte)
		copy(j.held[:], b)
	default:
		return j.to.Write(b)
	}
	if err != nil {
		return 0, err
	}
	return len(b), nil
}
