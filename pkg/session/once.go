package session

import (
	"context"
	"time"
)

// Bounds of the replies that a session keeps for clients that ask again.
const (
	// MaxReplies is how many replies are kept.
	MaxReplies = 16
	// maxReplyBytes bounds the kept replies together; the last one is kept whatever its size.
	maxReplyBytes = 16 << 20
)

// A Reply is the answer to a request that has an id of its own: made once, and given to whoever asks for it again.
type Reply struct {
	id   string
	done chan struct{}
	text []byte // set before done is closed
}

// Once finds the reply to the request of that id. If there is none, answer is run in a goroutine of the session's to make
// it. Its context ends when the session begins to close, and not with the socket that has asked: whoever gives a request
// an id will ask again. answer must not panic.
func (s *Session) Once(id string, answer func(context.Context) []byte) (*Reply, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.replies[id]; r != nil {
		return r, nil
	}
	if s.state != open {
		return nil, errClosed()
	}
	r := &Reply{id: id, done: make(chan struct{})}
	if s.replies == nil {
		s.replies = map[string]*Reply{}
	}
	s.replies[id] = r
	s.tasks.Go(func() {
		r.text = answer(s.ctx)
		s.keep(r)
		close(r.done)
	})
	return r, nil
}

// keep puts a reply among those that are kept, and lets the oldest go where there are too many.
func (s *Session) keep(r *Reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept = append(s.kept, r)
	size := 0
	for _, k := range s.kept {
		size += len(k.text)
	}
	for len(s.kept) > 1 && (len(s.kept) > MaxReplies || size > maxReplyBytes) {
		size -= len(s.kept[0].text)
		delete(s.replies, s.kept[0].id)
		s.kept[0] = nil
		s.kept = s.kept[1:]
	}
}

// Wait waits for the reply. It is nil if ctx ends first.
func (r *Reply) Wait(ctx context.Context) []byte {
	select {
	case <-r.done:
		return r.text
	case <-ctx.Done():
		return nil
	}
}

// Linger is [Session.Release] for a socket that was lost and whose client may come back: the session ends only if nobody
// attaches to it for so long. Who does has it as its owner.
func (s *Session) Linger(ctx context.Context, h Hold, wait time.Duration) error {
	s.mu.Lock()
	if h != Owner || wait <= 0 || s.closeDue || s.state != open {
		s.mu.Unlock()
		return s.release(ctx, h, "its socket was lost")
	}
	s.last = time.Now()
	s.patience = wait
	s.sockets--
	s.letGo()
	s.channels[Owner] = nil // the time that it asked for is the session's
	s.waits++
	turn := s.waits
	s.awaited = time.AfterFunc(wait, func() { s.notResumed(turn) })
	s.log.Info("socket lost; the session waits for it", "event", "session_waits", "wait", wait)
	s.mu.Unlock()
	return nil
}

// Patience is how long the session has last waited for its owner; 0 if it never has.
func (s *Session) Patience() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.patience
}

// notResumed ends a session whose socket has not come back. turn tells which wait it is of: another may have begun since.
func (s *Session) notResumed(turn int) {
	s.mu.Lock()
	if s.awaited == nil || s.waits != turn {
		s.mu.Unlock()
		return
	}
	s.owned = false
	s.begin("not resumed in time", errClosed())
}
