package gymtest

import "slices"

// maxCut is after how many steps of the script a session is cut off, each time in the middle of the next.
const maxCut = 12

// checkEnds ends sessions in every way there is. What must follow is checked after every check: each value is closed once,
// and nothing of it is left.
func checkEnds(b *bench) {
	s := b.serve()
	if s == nil {
		return
	}
	defer b.stop(s)
	d := mcpFrames
	steps := only(b.script.steps, false)
	if b.simulated() {
		d, steps = stepFrames, b.script.steps
	}
	if b.simulated() && !b.endEpisodes(s, steps) {
		return
	}
	if err := s.settled(); err != nil {
		b.problem("after a close: %v", err)
		return
	}
	for n := range min(len(steps), maxCut) {
		if err := b.cutIn(s, d, steps[:n], steps[n]); err != nil {
			b.problem("a socket that is lost while %s runs: %v\nFunctions that wait must return when ctx ends.", steps[n], err)
			return
		}
	}
	b.leaveOpen(s, d, steps)
}

// endEpisodes plays on after the end of an episode, resets, resets again, and leaves by a close.
func (b *bench) endEpisodes(s *served, steps []step) bool {
	t, err := stepFrames.open(s)
	if err != nil {
		b.problem("%s: no session could be opened: %v", stepFrames.name, err)
		return false
	}
	defer t.leave()
	for range 2 {
		r, err := b.play(s, t, steps, seed)
		if err != nil {
			b.problem("%s: %v", stepFrames.name, err)
			return false
		}
		over := slices.IndexFunc(r.outcomes, func(o outcome) bool { return o.Episode.Done })
		if over >= 0 && slices.ContainsFunc(r.outcomes[over:], func(o outcome) bool { return !o.Episode.Done }) {
			b.problem("an episode that was over after %s went on without a reset", steps[over])
		}
	}
	for range 2 { // one right after the other
		if err := b.reset(s, t, &record{}, seed); err != nil {
			b.problem("%v", err)
			return false
		}
	}
	if e, err := s.episodeOf(t.id); err != nil || e.Done || e.Steps != 0 {
		b.problem("after a reset the episode is %+v, %v", e, err)
	}
	return true
}

// cutIn plays some steps, sends one more, and cuts the socket without waiting for its answer.
func (b *bench) cutIn(s *served, d door, before []step, last step) error {
	k, err := s.dial("/ws")
	if err != nil {
		return err
	}
	defer k.cut()
	for _, st := range append(slices.Clone(before), last) {
		if err := k.send(b.textOf(s, d, st)); err != nil {
			return err
		}
	}
	k.cut() // the last one is being read, waits for its turn or runs, by chance: all must end well
	return s.settled()
}

// leaveOpen opens a session by each door, begins a call on one more, and stops the server.
func (b *bench) leaveOpen(s *served, d door, steps []step) {
	for _, d := range doors {
		if s.class.Exclusive && s.srv.Sessions().Active() > 0 {
			break
		}
		t, err := d.open(s)
		if err != nil {
			b.problem("%s: no session could be opened: %v", d.name, err)
			break
		}
		defer t.leave() // after the stop
		i := slices.IndexFunc(steps, func(st step) bool {
			return st.own() == (d.gym && s.class.OwnActions()) && (!d.gym || b.simulated())
		})
		if i < 0 {
			continue
		}
		if _, _, err := t.play(steps[i]); err != nil {
			b.problem("%s: %s: %v", d.name, steps[i], err)
		}
	}
	if len(steps) > 0 && !s.class.Exclusive {
		k, err := s.dial("/ws")
		if err == nil {
			defer k.cut()
			err = k.send(b.textOf(s, d, steps[0]))
		}
		if err != nil {
			b.problem("%s: %v", d.name, err)
		}
	}
	b.stop(s)
}

// textOf is a step as a frame on /ws.
func (b *bench) textOf(s *served, d door, st step) []byte {
	if d.gym && (st.own() || !s.class.OwnActions()) {
		return []byte(jsonOf(frame{"step", action(st)}))
	}
	return []byte(jsonOf(frame{"mcp", rpcCall(st, "")}))
}
