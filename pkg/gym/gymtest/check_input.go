package gymtest

import (
	"cmp"
	"encoding/json"
	"slices"
)

// maxMisfits is how many bad inputs each tool gets.
const maxMisfits = 40

// checkInput sends what the schemas refuse, over /ws, and then the script, on one session.
func checkInput(b *bench) {
	s := b.serve()
	if s == nil {
		return
	}
	defer b.stop(s)
	d := mcpFrames
	if b.simulated() && s.class.OwnActions() {
		d = stepFrames // takes tools by mcp frames and actions by step frames
	}
	t, err := d.open(s)
	if err != nil {
		b.problem("%s: no session could be opened: %v", d.name, err)
		return
	}
	defer t.leave()
	r := &record{}
	if b.simulated() {
		if err := b.reset(s, t, r, seed); err != nil {
			b.problem("%v", err)
			return
		}
	}
	steps := b.script.steps
	if !b.simulated() {
		steps = only(steps, false)
	}
	for _, tool := range s.class.Tools {
		if !b.config.skip[tool.Name] && !b.refuses(s, t, tool.Name, tool.InputSchema, "invalid_args") {
			return
		}
	}
	if b.simulated() && s.class.OwnActions() && !b.refuses(s, t, "", s.class.Schemas.Action, validationError) {
		return
	}
	if len(s.class.Tools) > 0 && !b.refused(s, t, step{"gymtest_unknown", json.RawMessage("{}")}, "there is no such tool", "tool_not_found") {
		return
	}
	for _, st := range steps {
		o, _, err := t.play(st)
		if err != nil {
			b.problem("after bad input the session no longer works: %s: %v", st, err)
			return
		}
		b.hint(st, o)
	}
}

// refuses sends misfits of a schema, and tells whether the session still answers.
func (b *bench) refuses(s *served, t *seat, tool string, schema any, want string) bool {
	var bases []json.RawMessage
	for _, st := range b.script.steps {
		if st.tool == tool && len(bases) < 3 {
			bases = append(bases, st.value)
		}
	}
	if len(bases) == 0 {
		// It is not called with good arguments, and bad ones are made of good ones all the same.
		bases, _ = generate(tool, schema, 2)
	}
	if len(bases) == 0 {
		bases = []json.RawMessage{json.RawMessage("{}")}
	}
	var sent []string
	for _, base := range bases {
		bad, err := misfits(schema, base, maxMisfits/len(bases))
		if err != nil {
			b.problem("the input schema of %s: %v", nameOf(tool), err)
			return true
		}
		for _, m := range bad {
			if slices.Contains(sent, string(m.value)) {
				continue
			}
			sent = append(sent, string(m.value))
			if !b.refused(s, t, step{tool, m.value}, m.what, want) {
				return false
			}
		}
	}
	if len(sent) == 0 {
		b.note("%s takes anything: no arguments were found that its schema refuses", nameOf(tool))
	}
	return true
}

func nameOf(tool string) string {
	if tool == "" {
		return "actions"
	}
	return "tool " + tool
}

// refused sends one bad step, and tells whether the session still answers.
func (b *bench) refused(s *served, t *seat, st step, what, want string) bool {
	before, err := s.episodeOf(t.id)
	if err != nil {
		b.problem("the session has ended: %v", err)
		return false
	}
	o, raw, err := t.play(st)
	if err != nil {
		b.problem("bad input, %s (%s), is not answered as such: %v", st, what, err)
		return false
	}
	if got := o.errorType(); got != want {
		b.problem("bad input is not refused: %s (%s) does not fit the published schema; want %s, got %s\n%s",
			st, what, want, cmp.Or(got, "a result"), indent(clip(string(raw))))
		return true
	}
	after, err := s.episodeOf(t.id)
	if err != nil {
		b.problem("bad input, %s (%s), has ended the session: %v", st, what, err)
		return false
	}
	if st.own() && after != before {
		b.problem("a refused action, %s (%s), counted as a step:\n%s", st, what, difference(before, after))
	}
	return true
}
