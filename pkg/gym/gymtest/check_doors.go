package gymtest

import "strings"

// checkDoors plays the same steps by every door, each on a session of its own, and holds the doors to one another.
func checkDoors(b *bench) {
	s := b.serve()
	if s == nil {
		return
	}
	defer b.stop(s)
	steps := b.script.steps
	if s.class.OwnActions() {
		// Tools go by the doors of agents, actions by those of the trainer.
		b.compareDoors(s, only(steps, false), func(d door) bool { return !d.gym })
		b.compareDoors(s, only(steps, true), func(d door) bool { return d.gym && b.simulated() })
		return
	}
	b.compareDoors(s, steps, func(d door) bool { return !d.gym || b.simulated() })
}

func (b *bench) compareDoors(s *served, steps []step, take func(door) bool) {
	if len(steps) == 0 {
		return
	}
	var first, other door
	var want *record
	var apart part
	var more []string // doors that differ too
	for _, d := range doors {
		if !take(d) {
			continue
		}
		got := b.alone(s, d, steps, seed)
		if got == nil {
			return
		}
		if want == nil {
			if again := b.alone(s, d, steps, seed); again == nil {
				return
			} else if p, found := differs(steps, got, again); found {
				b.note("the doors are not compared: two plays by %s differ already, in %s. The check of seeds looks at that", d.name, p.name)
				return
			}
			first, want = d, got
			continue
		}
		p, found := differs(steps, want, got)
		switch {
		case found && other.open == nil:
			other, apart = d, p
		case found:
			more = append(more, d.name)
		}
	}
	if other.open == nil {
		return
	}
	also := ""
	if len(more) > 0 {
		also = "So do " + strings.Join(more, ", ") + ". "
	}
	b.problem("%s and %s differ in %s (-%s +%s):\n%s\n"+
		"%sThe same calls must come to the same by every door. Keep state in the environment's value, and look at nothing that "+
		"belongs to the caller's connection: the context's values, the MCP session, its client.",
		first.name, other.name, apart.name, first.name, other.name, difference(apart.a, apart.b), also)
}
