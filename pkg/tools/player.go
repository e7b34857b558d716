package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
)

// A Player is one session's position in what it replays. Nil: it replays nothing. Safe for concurrent use.
type Player struct {
	replays *Replays

	mu     sync.Mutex // guards what follows
	calls  map[string]int
	places map[*tape]*place
	memory memory
}

// A place is how far an episode has come on a tape in strict order.
type place struct {
	reel   *reel
	follow []int // the recorded episodes whose first calls were these; never empty unless the reel is
	next   int   // how many calls there were
}

// Player is a new session's position: at the beginning.
func (r *Replays) Player() *Player {
	if r == nil {
		return nil
	}
	p := &Player{replays: r}
	p.Rewind()
	return p
}

// Rewind goes back to the beginning, for a new episode.
func (p *Player) Rewind() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls, p.places, p.memory = map[string]int{}, map[*tape]*place{}, memory{}
}

type playerKey struct{}

// WithPlayer returns a context in which replayed tools find their session's position.
func WithPlayer(ctx context.Context, p *Player) context.Context {
	if p == nil {
		return ctx
	}
	return context.WithValue(ctx, playerKey{}, p)
}

// play gives the recorded call that answers this one.
func (p *Player) play(tool string, args []byte) (*entry, error) {
	t := p.replays.tracks[tool]
	if t == nil {
		return nil, fmt.Errorf("tool %q calls a replay that its set does not know, since it is not an argument of tools.Simulation; replayed are %s",
			tool, p.replays.replayed())
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	key, err := t.key(args, &p.memory)
	if err != nil {
		return nil, err
	}
	if t.cassette.strict {
		return p.inOrder(t, key)
	}
	answers := t.answers[key]
	if len(answers) == 0 {
		return nil, &NotRecordedError{Tool: tool, Arguments: json.RawMessage(key), Recorded: len(t.answers)}
	}
	id := tool + " " + key
	n := p.calls[id]
	p.calls[id]++
	return answers[min(n, len(answers)-1)], nil
}

// inOrder goes on with the recorded episodes that go on with this call. If none does, it stays where it is.
func (p *Player) inOrder(t *track, key string) (*entry, error) {
	at := p.places[t.cassette.tape]
	if at == nil {
		at = &place{reel: p.replays.reels[t.cassette.tape]}
		for i := range at.reel.episodes {
			at.follow = append(at.follow, i)
		}
		p.places[t.cassette.tape] = at
	}
	var follow []int
	var found *entry
	for _, i := range at.follow {
		if e := at.entry(i, at.next); e != nil && e.Tool == t.tool && t.keys[e] == key {
			if follow = append(follow, i); found == nil {
				found = e
			}
		}
	}
	if found == nil {
		return nil, p.divergence(t, at, key)
	}
	at.follow = follow
	at.next++
	return found, nil
}

// entry is call n of a recorded episode, or nil.
func (at *place) entry(episode, n int) *entry {
	if calls := at.reel.episodes[episode]; n >= 0 && n < len(calls) {
		return calls[n]
	}
	return nil
}

func (p *Player) divergence(t *track, at *place, key string) error {
	d := &DivergenceError{Tool: t.tool, Arguments: json.RawMessage(key)}
	for _, i := range at.follow {
		if e := at.entry(i, at.next); e != nil {
			d.Expected, d.Line = e.Tool, e.line
			d.ExpectedArguments = json.RawMessage(p.replays.tracks[e.Tool].keys[e])
			return d
		}
	}
	for _, i := range at.follow {
		if e := at.entry(i, at.next-1); e != nil {
			d.Line = e.line
		}
	}
	return d
}
