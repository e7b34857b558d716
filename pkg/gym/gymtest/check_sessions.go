package gymtest

import (
	"fmt"
	"sync"
	"time"
)

// sideBySide is how many sessions run at once.
const sideBySide = 3

// checkSessions plays episodes with different seeds side by side, and holds each to what it is alone: first a step of each
// in turn, then all at once, for the race detector.
func checkSessions(b *bench) {
	s := b.serve()
	if s == nil {
		return
	}
	defer b.stop(s)
	steps := b.script.steps
	if s.class.Exclusive {
		b.note("sessions are not run side by side: the environment is Exclusive")
		return
	}
	var alone []*record
	began := time.Now()
	for i := range sideBySide {
		r := b.alone(s, stepFrames, steps, seed+i)
		if r == nil {
			return
		}
		alone = append(alone, r)
	}
	hint := ""
	if time.Since(began) > 0 {
		hint = " Time passes in these steps; answers that tell the time differ for that alone."
	}
	for _, way := range []struct {
		name string
		play func(*served, []*seat, []step) ([]*record, error)
	}{
		{"taking turns, a step each", b.inTurns},
		{"all at once", b.atOnce},
	} {
		together := b.together(s, steps, way.play)
		if together == nil {
			return
		}
		for i, r := range together {
			p, found := differsInBytes(steps, alone[i], r)
			if !found {
				continue
			}
			b.problem("sessions disturb each other: with %d side by side, %s, the one with seed %d differs from the same one alone in %s (-alone +side by side):\n%s\n"+
				"Keep state in the environment's value, of which each session has its own, not in variables of the package or what New shares out. "+
				"(If the check of seeds fails too, look there first.)%s",
				sideBySide, way.name, seed+i, p.name, difference(p.a, p.b), hint)
			return
		}
	}
}

func (b *bench) together(s *served, steps []step, play func(*served, []*seat, []step) ([]*record, error)) []*record {
	var seats []*seat
	defer func() {
		for _, t := range seats {
			t.leave()
		}
	}()
	for i := range sideBySide {
		t, err := stepFrames.open(s)
		if err != nil {
			b.problem("session %d of %d side by side could not be opened: %v\nIf values cannot live side by side, set Exclusive.", i+1, sideBySide, err)
			return nil
		}
		seats = append(seats, t)
	}
	records, err := play(s, seats, steps)
	if err != nil {
		b.problem("sessions side by side: %v", err)
		return nil
	}
	return records
}

func (b *bench) inTurns(s *served, seats []*seat, steps []step) ([]*record, error) {
	records := make([]*record, len(seats))
	for i, t := range seats {
		records[i] = &record{}
		if err := b.reset(s, t, records[i], seed+i); err != nil {
			return nil, err
		}
	}
	for n, st := range steps {
		for i, t := range seats {
			if err := b.step(s, t, records[i], st); err != nil {
				return nil, fmt.Errorf("step %d, %s: %w", n+1, st, err)
			}
		}
	}
	for i, t := range seats {
		if err := b.readState(t, records[i]); err != nil {
			return nil, err
		}
	}
	return records, nil
}

func (b *bench) atOnce(s *served, seats []*seat, steps []step) ([]*record, error) {
	records, errs := make([]*record, len(seats)), make([]error, len(seats))
	var all sync.WaitGroup
	for i, t := range seats {
		all.Go(func() {
			quietly := &bench{mode: b.mode, config: b.config} // its notes are its own: they are the same
			records[i], errs[i] = quietly.play(s, t, steps, seed+i)
		})
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return records, nil
}
