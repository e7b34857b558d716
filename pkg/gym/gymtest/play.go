package gymtest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	gocmp "github.com/google/go-cmp/cmp"
)

// seed is that of the first episode of each check.
const seed = 42

// resetOf is a reset's request: the author's options, a seed, and an id, so that episodes can be compared.
func (c *config) resetOf(seed int) (json.RawMessage, error) {
	raw, err := encode(c.reset)
	if err != nil {
		return nil, fmt.Errorf("gymtest.ResetOptions: %w", err)
	}
	var request map[string]json.RawMessage
	if err := json.Unmarshal(raw, &request); err != nil {
		return nil, err
	}
	request["seed"] = json.RawMessage(jsonOf(seed))
	request["episode_id"] = json.RawMessage(`"gymtest"`)
	return json.RawMessage(jsonOf(request)), nil
}

// A record is a played script.
type record struct {
	reset    []byte // the first observation; nil in production mode
	outcomes []outcome
	raws     [][]byte // the answers as they came; nil by doors that do not show them
	state    json.RawMessage
}

// play resets, in simulation mode, plays the steps, and reads the state. The error says at which step the session could
// not be played on.
func (b *bench) play(s *served, t *seat, steps []step, seed int) (*record, error) {
	r := &record{}
	if b.simulated() {
		if err := b.reset(s, t, r, seed); err != nil {
			return nil, err
		}
	}
	for i, st := range steps {
		if err := b.step(s, t, r, st); err != nil {
			return nil, fmt.Errorf("step %d, %s: %w", i+1, st, err)
		}
	}
	if b.simulated() {
		return r, b.readState(t, r)
	}
	return r, nil
}

func (b *bench) reset(s *served, t *seat, r *record, seed int) error {
	request, err := b.config.resetOf(seed)
	if err != nil {
		return err
	}
	s.clock.restart()
	if r.reset, err = t.reset(request); err != nil {
		return fmt.Errorf("the reset %s failed: %w", clip(string(request)), err)
	}
	return nil
}

func (b *bench) step(s *served, t *seat, r *record, st step) error {
	o, raw, err := t.play(st)
	if err != nil {
		return err
	}
	if o.Episode, err = s.episodeOf(t.id); err != nil {
		return err
	}
	r.outcomes, r.raws = append(r.outcomes, o), append(r.raws, raw)
	b.hint(st, o)
	return nil
}

func (b *bench) readState(t *seat, r *record) (err error) {
	if r.state, err = t.state(); err != nil {
		return fmt.Errorf("reading the state: %w", err)
	}
	return nil
}

func (b *bench) simulated() bool { return slices.Contains(simulation, b.mode) }

// hint notes failures that are no faults, and are often not meant. Panics are told otherwise.
func (b *bench) hint(st step, o outcome) {
	if o.Error != nil && strings.Contains(o.Error.Message, "panicked") {
		return
	}
	switch o.errorType() {
	case "execution_error", executionError:
		b.note("%s failed: %s. If the model should read it, return tools.Fail", st, clip(cmp.Or(o.Error.Message, o.Error.Type)))
	case "timeout":
		b.note("%s did not return in time", st)
	case "invalid_args", validationError:
		b.note("%s was refused: %s", st, clip(cmp.Or(o.Error.Message, o.Error.Type)))
	}
}

// alone plays the steps on a session of its own, while no other is there, and reports why it cannot.
func (b *bench) alone(s *served, d door, steps []step, seed int) *record {
	s.clock.restart()
	t, err := d.open(s)
	if err != nil {
		b.problem("%s: no session could be opened: %v", d.name, err)
		return nil
	}
	r, err := b.play(s, t, steps, seed)
	t.leave()
	if err == nil {
		err = s.settled()
	}
	if err != nil {
		b.problem("%s: %v", d.name, err)
		return nil
	}
	return r
}

// A part is what two records may differ in: the reset, a step, or the state.
type part struct {
	name string
	a, b any
}

// narrowed goes down to where the values differ in more than one member.
func (p part) narrowed() part {
	a, aIs := p.a.(map[string]any)
	b, bIs := p.b.(map[string]any)
	if !aIs || !bIs || len(a) != len(b) {
		return p
	}
	var name string
	for key := range a {
		if other, ok := b[key]; !ok {
			return p
		} else if !gocmp.Equal(a[key], other) {
			if name != "" {
				return p
			}
			name = key
		}
	}
	if name == "" {
		return p
	}
	sep := "."
	if !strings.Contains(p.name, ", at ") {
		sep = ", at "
	}
	return part{p.name + sep + name, a[name], b[name]}.narrowed()
}

// differs finds the first part in which two records of the same steps differ, as they are understood.
func differs(steps []step, a, b *record) (p part, found bool) {
	parts := []part{{"the observation of the reset", tree(observationIn(a.reset)), tree(observationIn(b.reset))}}
	for i, st := range steps {
		parts = append(parts, part{fmt.Sprintf("step %d of %d, %s", i+1, len(steps), st), a.outcomes[i], b.outcomes[i]})
	}
	parts = append(parts, part{"the state at the end", tree(a.state), tree(b.state)})
	for _, p := range parts {
		if !gocmp.Equal(p.a, p.b) {
			return p, true
		}
	}
	return part{}, false
}

// differsInBytes finds the first part in which the answers differ as they came.
func differsInBytes(steps []step, a, b *record) (p part, found bool) {
	bytesOf := func(name string, x, y []byte) part {
		p := part{name, exactTree(x), exactTree(y)}
		if gocmp.Equal(p.a, p.b) { // other bytes of the same value
			p.a, p.b = string(x), string(y)
		}
		return p.narrowed()
	}
	if string(a.reset) != string(b.reset) {
		return bytesOf("the reset", a.reset, b.reset), true
	}
	for i, st := range steps {
		name := fmt.Sprintf("step %d of %d, %s", i+1, len(steps), st)
		if string(a.raws[i]) != string(b.raws[i]) {
			return bytesOf(name, a.raws[i], b.raws[i]), true
		}
		if a.outcomes[i].Episode != b.outcomes[i].Episode {
			return part{name, a.outcomes[i].Episode, b.outcomes[i].Episode}, true
		}
	}
	if string(a.state) != string(b.state) {
		return bytesOf("the state at the end", a.state, b.state), true
	}
	return part{}, false
}

// exactTree is decoded JSON with its numbers as they are written.
func exactTree(raw []byte) (v any) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	_ = dec.Decode(&v)
	return v
}
