package transport

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// What is kept of an MCP client's streams, for one whose connection was lost, or that a tool has hung up on, and that comes
// back with Last-Event-ID: the last streams that answered its requests, and the last messages of the stream that GET opens,
// all of them up to a size.
const (
	maxReplayStreams = 64
	maxReplayUnasked = 64
	maxReplayBytes   = 4 << 20
)

// unasked is the SDK's name of the stream that GET opens.
const unasked = ""

// replay is an agent's event store. The SDK's own keeps every stream of a session for as long as that lives.
type replay struct {
	mu      sync.Mutex // guards what follows
	streams map[string]*keptStream
	order   []string // those of answers, the oldest first
	bytes   int      // of all
}

type keptStream struct {
	first int // the index of the first message that is kept
	data  [][]byte
}

func newReplay() *replay {
	return &replay{streams: map[string]*keptStream{unasked: {}}}
}

var errNotKept = errors.New("the message is not kept for a replay")

func (r *replay) Open(_ context.Context, _, stream string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.streams[stream] == nil {
		r.streams[stream] = &keptStream{}
		if r.order = append(r.order, stream); len(r.order) > maxReplayStreams {
			r.forget(r.order[0])
		}
	}
	return nil
}

// Append keeps a message. After an error the SDK still sends it to a client that is connected.
func (r *replay) Append(_ context.Context, _, stream string, data []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	kept := r.streams[stream]
	if kept == nil {
		return errNotKept
	}
	kept.data = append(kept.data, data)
	r.bytes += len(data)
	if stream == unasked && len(kept.data) > maxReplayUnasked {
		r.shorten(kept)
	}
	for r.bytes > maxReplayBytes {
		if len(r.order) > 0 {
			r.forget(r.order[0])
		} else {
			r.shorten(r.streams[unasked])
		}
	}
	if r.streams[stream] == nil {
		return errNotKept
	}
	return nil
}

// forget (mu held) drops a stream as a whole: with a gap in it, it could not be replayed.
func (r *replay) forget(stream string) {
	for _, data := range r.streams[stream].data {
		r.bytes -= len(data)
	}
	delete(r.streams, stream)
	r.order = slices.DeleteFunc(r.order, func(s string) bool { return s == stream })
}

// shorten (mu held) drops a stream's first message.
func (r *replay) shorten(kept *keptStream) {
	r.bytes -= len(kept.data[0])
	kept.data[0] = nil
	kept.data = kept.data[1:]
	kept.first++
}

func (r *replay) After(_ context.Context, _, stream string, index int) iter.Seq2[[]byte, error] {
	r.mu.Lock()
	defer r.mu.Unlock()
	kept := r.streams[stream]
	if kept == nil || index+1 < kept.first {
		return func(yield func([]byte, error) bool) { yield(nil, mcp.ErrEventsPurged) }
	}
	data := slices.Clone(kept.data[min(index+1-kept.first, len(kept.data)):])
	return func(yield func([]byte, error) bool) {
		for _, d := range data {
			if !yield(d, nil) {
				return
			}
		}
	}
}

func (r *replay) SessionClosed(context.Context, string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.streams, r.order, r.bytes = map[string]*keptStream{}, nil, 0
	return nil
}
