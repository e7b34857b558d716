package session

import (
	"context"
	"time"
)

// Bounds of the replies that a session keeps for clients that ask again.
const (
	// MaxReplies is how many replies are kept for the session's trainers, and how many for guests.
	MaxReplies = 16
	// maxReplyBytes bounds the kept replies of either together; the last one is kept whatever its size.
	maxReplyBytes = 16 << 20
)

// A Reply is the answer to a request that has an id of its own: made once, and given to whoever asks for it again.
type Reply struct {
	key  replyKey
	done chan struct{}
	text []byte // set before done is closed
}

// A replyKey is an id of a request and who has given it: an id of one guest's is nothing to another, or to the trainer.
type replyKey struct{ guest, id string }

// replies are those of the trainers, or of the guests. Who fills one of the two has nothing of the other forgotten.
type replies struct {
	made map[replyKey]*Reply // those under way too
	kept []*Reply            // those that are made, oldest first
}

func (s *Session) repliesFor(guest string) *replies {
	if guest == "" {
		return &s.trainers
	}
	return &s.guests
}

// Once finds the reply to the request of that id. If there is none, answer is run in a goroutine of the session's to make
// it. Its context ends when the session begins to close, and not with the socket that has asked: whoever gives a request
// an id will ask again. guest is who asks: "" for the session's trainers, who find each other's replies; others find their
// own. answer must not panic.
func (s *Session) Once(guest, id string, answer func(context.Context) []byte) (*Reply, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all, key := s.repliesFor(guest), replyKey{guest, id}
	if r := all.made[key]; r != nil {
		return r, nil
	}
	if s.state != open {
		return nil, errClosed()
	}
	r := &Reply{key: key, done: make(chan struct{})}
	if all.made == nil {
		all.made = map[replyKey]*Reply{}
	}
	all.made[key] = r
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
	all := s.repliesFor(r.key.guest)
	all.kept = append(all.kept, r)
	size := 0
	for _, k := range all.kept {
		size += len(k.text)
	}
	for len(all.kept) > 1 && (len(all.kept) > MaxReplies || size > maxReplyBytes) {
		size -= len(all.kept[0].text)
		delete(all.made, all.kept[0].key)
		all.kept[0] = nil
		all.kept = all.kept[1:]
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
