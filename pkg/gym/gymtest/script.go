package gymtest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/openenv-go/openenv-go/pkg/gym"
	"github.com/openenv-go/openenv-go/pkg/tools"
)

// A step is a step as it is sent.
type step struct {
	tool  string // "" for an action of the environment's own type
	value json.RawMessage
}

func (s step) String() string {
	if s.tool == "" {
		return "action " + clip(string(s.value))
	}
	return s.tool + "(" + clip(string(s.value)) + ")"
}

func (s step) own() bool { return s.tool == "" }

// shown is how much of a value a message shows.
const shown = 300

func clip(text string) string {
	if len(text) > shown {
		return strings.ToValidUTF8(text[:shown], "") + "…"
	}
	return text
}

// A script is what is played on one class.
type script struct {
	steps []step
	notes []string // for the author: what is not played, and why
}

// scriptOf makes the script for a class: the author's steps, then generated ones, the tools taking turns.
func scriptOf(class *gym.Class, c *config) (script, error) {
	var out script
	for i, s := range c.script {
		raw, err := encode(s.value)
		if err != nil {
			return out, fmt.Errorf("step %d of the Script, %s: %w", i, cmp.Or(s.tool, "an action"), err)
		}
		out.steps = append(out.steps, step{s.tool, raw})
	}
	if err := knows(class, out.steps); err != nil {
		return out, err
	}
	var sets [][]step
	for _, t := range class.Tools {
		values, err := generate(t.Name, t.InputSchema, c.generate)
		if err != nil {
			return out, fmt.Errorf("the input schema of tool %q: %w", t.Name, err)
		}
		if len(values) == 0 && c.generate > 0 {
			out.note("tool %q is not called: no arguments were found that fit its schema. Give some with gymtest.Script", t.Name)
		}
		sets = append(sets, stepsOf(t.Name, values))
	}
	if class.OwnActions() {
		// Actions take the place of all the calls of a tool environment, so there are more of them.
		values, err := generate("", class.Schemas.Action, 2*c.generate)
		if err != nil {
			return out, fmt.Errorf("the schema of actions: %w", err)
		}
		if len(values) == 0 && c.generate > 0 {
			out.note("no actions were found that fit their schema. Give some with gymtest.Script and gymtest.Act")
		}
		sets = append(sets, stepsOf("", values))
	}
	for i := range 2 * c.generate {
		for _, set := range sets {
			if i < len(set) {
				out.steps = append(out.steps, set[i])
			}
		}
	}
	out.steps = slices.DeleteFunc(out.steps, func(s step) bool { return !s.own() && !callable(class, c, s.tool) })
	for _, t := range class.Tools {
		switch {
		case c.skip[t.Name]:
			out.note("tool %q is not called: gymtest.Skip", t.Name)
		case !callable(class, c, t.Name):
			out.note("tool %q is not called in production mode, where tools.Modes gives it another variant; gymtest.CallProduction has it called", t.Name)
		case !slices.ContainsFunc(out.steps, func(s step) bool { return s.tool == t.Name }) && c.generate == 0:
			out.note("tool %q is not called: the Script has no call of it", t.Name)
		}
	}
	return out, nil
}

func (s *script) note(format string, args ...any) {
	s.notes = append(s.notes, fmt.Sprintf(format, args...))
}

func stepsOf(tool string, values []json.RawMessage) []step {
	var out []step
	for _, v := range values {
		out = append(out, step{tool, v})
	}
	return out
}

// callable reports whether a tool of the class may be called with good arguments.
func callable(class *gym.Class, c *config, tool string) bool {
	if class.Mode == tools.ModeProduction && class.Traits(tool).ByMode && !c.production {
		return false
	}
	return !c.skip[tool] && hasTool(class, tool)
}

func hasTool(class *gym.Class, name string) bool {
	return slices.ContainsFunc(class.Tools, func(t *mcp.Tool) bool { return t.Name == name })
}

func elsewhere(class *gym.Class, name string) bool {
	_, ok := class.ElsewhereOnly(name)
	return ok
}

// knows holds an author's steps to what the environment has. A tool of the other mode only is not played in this one.
func knows(class *gym.Class, steps []step) error {
	for _, s := range steps {
		switch {
		case s.own() && !class.OwnActions():
			return errors.New("the Script has a gymtest.Act, and the environment has no action type of its own: use gymtest.Call")
		case !s.own() && !hasTool(class, s.tool) && !elsewhere(class, s.tool):
			var names []string
			for _, t := range class.Tools {
				names = append(names, t.Name)
			}
			return fmt.Errorf("the Script calls tool %q, which the environment does not have; it has %s", s.tool, cmp.Or(strings.Join(names, ", "), "none"))
		}
	}
	return nil
}

// only are the steps of one kind.
func only(steps []step, own bool) []step {
	return slices.DeleteFunc(slices.Clone(steps), func(s step) bool { return s.own() != own })
}

func compact(raw json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return raw
	}
	return b.Bytes()
}

// jsonOf writes what is known to be writable.
func jsonOf(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}
