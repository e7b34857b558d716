package sandbox

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/openenv-go/openenv-go/pkg/codemode"
)

// Pool and child talk in frames: a length of four bytes, then so much JSON.

// A request is what a child is sent. One member is set.
type request struct {
	Hello  *hello           `json:"hello,omitempty"` // first, once
	Job    *job             `json:"job,omitempty"`
	Answer *codemode.Answer `json:"answer,omitempty"` // to its call
	Stop   *stop            `json:"stop,omitempty"`   // in place of an answer: the run ends
}

type hello struct {
	Memory int64 `json:"memory"` // bytes that code may hold
}

type job struct {
	Code     string          `json:"code"`
	Limits   codemode.Limits `json:"limits"`
	NewTools bool            `json:"new_tools,omitempty"` // else they are those of the job before
	Tools    []codemode.Tool `json:"tools,omitempty"`
}

// A stop is why there is no answer.
type stop struct {
	Limit   string `json:"limit,omitempty"` // the limit's name; "": another reason
	Message string `json:"message"`
}

// A reply is what a child sends. One member is set.
type reply struct {
	Ready   *ready            `json:"ready,omitempty"`
	Fault   string            `json:"fault,omitempty"` // in place of Ready: why it cannot serve
	Began   bool              `json:"began,omitempty"` // it has the job
	Call    *call             `json:"call,omitempty"`
	Outcome *codemode.Outcome `json:"outcome,omitempty"`
}

type ready struct {
	Resident int64 `json:"resident"` // bytes of memory that it takes before any code
}

type call struct {
	Tool string          `json:"tool"`
	Args json.RawMessage `json:"args"`
}

// exitMemory and exitTime are how a child ends that sees its code beyond a limit.
const (
	exitMemory = 41
	exitTime   = 42
)

// greetingBound is how long the frames before the first job may be.
const greetingBound = 64 << 10

// replyBound is how long a child's frame may be. Text is written as JSON, at worst six bytes for one.
func replyBound(l codemode.Limits) int { return 8*l.Output + 6*l.Code + 64<<10 }

// A longFrame is one that is longer than it may be.
type longFrame struct{ size, bound int }

func (e *longFrame) Error() string {
	return fmt.Sprintf("a frame of %d bytes, where %d are allowed", e.size, e.bound)
}

const head = 4

// frame keeps JSON within v as long as it is: who sent it held it to a bound, and the other side does so again.
func frame(v any) ([]byte, error) {
	var f bytes.Buffer
	f.Write(make([]byte, head))
	e := json.NewEncoder(&f)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	b := f.Bytes()
	binary.LittleEndian.PutUint32(b, uint32(len(b)-head))
	return b, nil
}

func writeFrame(w io.Writer, v any) error {
	b, err := frame(v)
	if err == nil {
		_, err = w.Write(b)
	}
	return err
}

// firstPiece is how much a frame's length is trusted for.
const firstPiece = 64 << 10

// readFrame reads a frame, with memory for what has come and not for what is promised.
func readFrame(r io.Reader, bound int) ([]byte, error) {
	var h [head]byte
	if _, err := io.ReadFull(r, h[:]); err != nil {
		return nil, err
	}
	n := int(binary.LittleEndian.Uint32(h[:]))
	if n > bound {
		return nil, &longFrame{n, bound}
	}
	b := make([]byte, 0, min(n, firstPiece))
	for len(b) < n {
		piece := min(n-len(b), max(len(b), firstPiece))
		b = slices.Grow(b, piece)
		got, err := io.ReadFull(r, b[len(b):len(b)+piece])
		if b = b[:len(b)+got]; err != nil {
			return nil, err
		}
	}
	return b, nil
}
