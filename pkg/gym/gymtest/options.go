package gymtest

import (
	"encoding/json"
	"fmt"
)

// An Option changes what [Run] does. Options are for one call of Run.
type Option func(*config)

type config struct {
	script     []Step
	scripted   bool
	generate   int // argument sets for each tool; negative: the default
	reset      any
	skip       map[string]bool
	production bool
}

// defaultGenerate is how many argument sets each tool gets where there is no script.
const defaultGenerate = 4

func configOf(opts []Option) *config {
	c := &config{generate: -1, skip: map[string]bool{}}
	for _, o := range opts {
		o(c)
	}
	if c.generate < 0 {
		c.generate = defaultGenerate
		if c.scripted {
			c.generate = 0
		}
	}
	return c
}

// A Step is one step of a [Script]: a [Call] or an [Act].
type Step struct {
	tool  string // "" for an action
	value any
}

// Call is a call of a tool. args is any Go value that marshals to the arguments, JSON as a string, a []byte or a
// json.RawMessage, or nil for none.
func Call(tool string, args any) Step { return Step{tool, args} }

// Act is an action of the environment's own type, given as [Call] takes arguments.
func Act(action any) Step { return Step{"", action} }

// Script gives the steps to play, in their order, instead of generated ones. They may be good or bad ones: what they come
// to must be the same everywhere. Several Scripts are played one after another. [Generate] has generated steps played
// after them.
func Script(steps ...Step) Option {
	return func(c *config) { c.script, c.scripted = append(c.script, steps...), true }
}

// Generate sets how many argument sets are generated for each tool; 0 for none. Without it there are 4, or none beside a
// [Script].
func Generate(n int) Option { return func(c *config) { c.generate = max(n, 0) } }

// ResetOptions are the options of every reset, beside the seed, given as [Call] takes arguments.
func ResetOptions(options any) Option { return func(c *config) { c.reset = options } }

// Skip leaves tools alone in both modes: they are listed and never called.
func Skip(tools ...string) Option {
	return func(c *config) {
		for _, t := range tools {
			c.skip[t] = true
		}
	}
}

// CallProduction has the tools made by [tools.Modes] called in production mode too. Without it they only get arguments
// that they must refuse there.
func CallProduction() Option { return func(c *config) { c.production = true } }

// encode writes what an author gave as an object of JSON.
func encode(v any) (json.RawMessage, error) {
	var raw json.RawMessage
	switch v := v.(type) {
	case nil:
		raw = json.RawMessage("{}")
	case string:
		raw = json.RawMessage(v)
	case []byte:
		raw = json.RawMessage(v)
	default:
		var err error
		if raw, err = json.Marshal(v); err != nil {
			return nil, err
		}
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(raw, &object); err != nil || object == nil {
		return nil, fmt.Errorf("%.200s is no JSON object", raw)
	}
	return compact(raw), nil
}
