package gymtest

import "time"

// checkSeeds plays one episode three times over /ws: twice on one session, and once on a fresh server days later.
func checkSeeds(b *bench) {
	s := b.serve()
	if s == nil {
		return
	}
	defer b.stop(s)
	steps := b.script.steps
	t, err := stepFrames.open(s)
	if err != nil {
		b.problem("%s: no session could be opened: %v", stepFrames.name, err)
		return
	}
	var plays []*record
	for range 2 {
		r, err := b.play(s, t, steps, seed)
		if err != nil {
			b.problem("%s: %v", stepFrames.name, err)
			t.leave()
			return
		}
		plays = append(plays, r)
	}
	t.leave()
	b.stop(s)
	time.Sleep(50*time.Hour + 7*time.Second) // whoever asks time.Now gets another answer
	if s = b.serve(); s == nil {
		return
	}
	fresh := b.alone(s, stepFrames, steps, seed)
	if fresh == nil {
		return
	}
	if p, found := differsInBytes(steps, plays[0], fresh); found {
		b.problem("an episode cannot be repeated: reset with seed %d on two sessions, one after another, the same steps differ in %s (-first +second):\n%s\n"+
			"Take random numbers from Session.Rand() and the time from Session.Now(), sort what comes from a map, keep ids of sessions out of answers, "+
			"and keep state in the environment's value, not in variables of the package.",
			seed, p.name, difference(p.a, p.b))
		return
	}
	if p, found := differsInBytes(steps, plays[0], plays[1]); found {
		b.problem("a reset leaves something of the episode before it: reset with seed %d twice on one session, the same steps differ in %s (-first +second):\n%s\n"+
			"Give the environment a Reset, and have it put back all that calls have changed. On a session of its own the second episode is as the first.",
			seed, p.name, difference(p.a, p.b))
	}
}
