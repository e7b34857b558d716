package gymtest

import (
	"cmp"
	"encoding/json"
	"slices"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/openenv-go/openenv-go/pkg/tools"
)

// checkSchema holds what is sent and received to what is published, and the doors' lists of tools to one another.
func checkSchema(b *bench) {
	s := b.serve()
	if s == nil {
		return
	}
	defer b.stop(s)
	b.compareLists(s)
	d := mcpFrames
	if b.simulated() {
		d = stepFrames
	}
	t, err := d.open(s)
	if err != nil {
		b.problem("%s: no session could be opened: %v", d.name, err)
		return
	}
	defer t.leave()
	steps := b.script.steps
	if !b.simulated() {
		steps = only(steps, false)
	}
	r, err := b.play(s, t, steps, seed)
	if err != nil {
		b.problem("%s: %v", d.name, err)
		return
	}
	outputs := map[string]*published{}
	for _, tool := range s.class.Tools {
		if tool.OutputSchema != nil {
			outputs[tool.Name] = b.compile("the output schema of tool "+tool.Name, tool.OutputSchema)
		}
	}
	for i, st := range steps {
		if res := r.outcomes[i].Result; res != nil && !res.IsError && outputs[st.tool] != nil {
			if res.Structured == nil {
				b.problem("%s returned no structured content, though the tool publishes an output schema.\nMCP clients refuse such an answer.", st)
				continue
			}
			b.holds(outputs[st.tool], "the result of "+st.String(), jsonBytes(res.Structured))
		}
	}
	if b.simulated() {
		b.holdGym(s, steps, r)
	}
}

// holdGym holds the trainer's side to GET /schema.
func (b *bench) holdGym(s *served, steps []step, r *record) {
	var doc map[string]any
	if err := s.get("/schema", &doc); err != nil {
		b.problem("GET /schema: %v", err)
		return
	}
	schemas := map[string]*published{}
	for _, name := range []string{"action", "observation", "reset_observation", "state"} {
		if schemas[name] = b.compile(name+" of GET /schema", doc[name]); schemas[name] == nil {
			return
		}
	}
	first := json.RawMessage(r.reset)
	b.holds(schemas["reset_observation"], "the observation of a reset", observationIn(first))
	b.holds(schemas["state"], "the state at the end", r.state)
	for i, st := range steps {
		if !st.own() && s.class.OwnActions() {
			continue // it went by an mcp frame
		}
		if r.outcomes[i].errorType() != validationError {
			b.holds(schemas["action"], "the action of "+st.String(), action(st))
		}
		var f frame
		if json.Unmarshal(r.raws[i], &f) == nil && f.Type == "observation" {
			b.holds(schemas["observation"], "the observation of "+st.String(), observationIn(f.Data))
		}
	}
}

// observationIn is the observation in an answer that has reward and done beside it.
func observationIn(data json.RawMessage) json.RawMessage {
	var d observed
	_ = json.Unmarshal(data, &d)
	return d.Observation
}

type published struct {
	name  string
	check *tools.Validator
}

func (b *bench) compile(name string, schema any) *published {
	v, err := tools.NewValidator(schema)
	if err != nil {
		b.problem("%s is no schema: %v", name, err)
		return nil
	}
	return &published{name, v}
}

func (b *bench) holds(p *published, what string, raw json.RawMessage) {
	if err := p.check.Validate(raw); err != nil {
		b.problem("%s does not fit %s: %v\n%s\nChange what is sent, or the type or schema that it is published by.", what, p.name, err, indent(clip(string(raw))))
	}
}

// compareLists lists the tools by every door, the gym channel's last, since they show no output schemas.
func (b *bench) compareLists(s *served) {
	var first string
	var want []listed
	for _, d := range slices.Concat(doors[1:], doors[:1]) {
		if d.gym && (!b.simulated() || s.class.OwnActions()) {
			continue
		}
		t, err := d.open(s)
		if err != nil {
			b.problem("%s: no session could be opened: %v", d.name, err)
			return
		}
		got, err := t.list()
		t.leave()
		if err == nil {
			err = s.settled() // an Exclusive environment has room for one
		}
		if err != nil {
			b.problem("%s: the tools could not be listed: %v", d.name, err)
			return
		}
		slices.SortFunc(got, func(a, b listed) int { return cmp.Compare(a.Name, b.Name) })
		if first == "" {
			first, want = d.name, got
			continue
		}
		expected := want
		if d.gym {
			expected = withoutOutputs(want)
		}
		if !gocmp.Equal(expected, got) {
			b.problem("%s and %s list different tools (-%s +%s):\n%s\nA list of tools must not depend on who asks, nor change from value to value.",
				first, d.name, first, d.name, difference(expected, got))
			return
		}
	}
}

func withoutOutputs(list []listed) []listed {
	out := slices.Clone(list)
	for i := range out {
		out[i].Output = nil
	}
	return out
}

func jsonBytes(v any) json.RawMessage { return json.RawMessage(jsonOf(v)) }
