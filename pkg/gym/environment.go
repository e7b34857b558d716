package gym

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/openenv-go/openenv-go/pkg/codemode"
	"github.com/openenv-go/openenv-go/pkg/tools"
)

// An Environment is what an author writes: metadata and functions over the environment value E, usually a pointer to a
// struct. The zero value of each field but Name and New means "none".
type Environment[E any] struct {
	Name        string // required; published by GET /metadata
	Description string
	Version     string // published in /metadata and /openapi.json and told to MCP clients; "" is published as "0.0.0"
	Author      string
	Readme      string // Markdown
	DocsURL     string

	// New builds the value for one session, ready for tool calls: production never resets. It may take its time; other
	// sessions are not held up. ctx ends when the caller gives up.
	New func(ctx context.Context, s *Session) (E, error)

	// Tools are the environment's tools. An environment has Tools, Mounts, a Server or an Act; Act goes beside any of them.
	Tools *tools.Set[E]

	// Server returns the value's own MCP server, built with the SDK, as another way to have tools. It is asked once per
	// value, and once more at start-up, for a value that is only asked for its tools and closed. Arguments are held to the published
	// schemas before a tool runs.
	Server func(E) *mcp.Server

	// Mounts add the tools of other MCP servers to Tools, or are all the tools there are. They do not go with a Server.
	Mounts []Mount

	// CodeMode offers the tool execute_code, by which one piece of code calls several tools, within these limits; zeros stand
	// for the defaults, and flags go before. nil: there is none. See docs/code-mode.md.
	CodeMode *codemode.Limits

	// Exclusive says that two values cannot live side by side: they share a device, a port, a directory. The server then
	// has one session at most, and asking it for more is a start-up error.
	Exclusive bool

	// Stateless says that calls need not know of each other. A client of MCP's stateless revision (2026-07-28) that names
	// no session then has each call served by a value of its own; else it is sent to initialize, so that it does not lose
	// state unawares.
	Stateless bool

	// Instructions tell agents how to use the tools; MCP clients get them when they connect. A Server has its own.
	Instructions string

	// Clock is what the session's Now tells in simulation, so that an episode can be replayed. Production has the wall clock.
	Clock Clock

	Reset Resetter[E] // from [Reset]; none: reset gives an empty observation
	Act   Actor[E]    // from [Act]; none: actions are list_tools and call_tool
	State Stater[E]   // from [StateOf]; none: the state has the episode's fields only

	// After gives reward and end of the episode after every tool call that counts as a step, failed ones included,
	// whichever door it came by. It does not run after a time-out. ctx carries the call's deadline.
	After func(env E, ctx context.Context, call ToolCall) Score

	// Close releases what the value holds. It runs once, after the last call has returned.
	Close func(E) error
}

// A ToolCall is what After is told.
type ToolCall struct {
	Name      string
	Arguments json.RawMessage     // as they were sent; may be empty
	Result    *mcp.CallToolResult // nil if the call failed; IsError is set when the tool reported its own failure
	Err       *tools.Error        // why the call failed, or nil
	Calls     []ToolCall          // where Name is [CodeTool]: those that the code made, in order
}

// A ResetRequest is what the trainer asks of a reset.
type ResetRequest[Options any] struct {
	Seed      *int64 // nil: none given; the session's Rand is seeded already. Seeds of 2^63 and more come by their bits
	EpisodeID string // as given, else a new one; never empty
	Options   Options
}

// A Resetter is the reset function of environments of type E.
type Resetter[E any] struct {
	build func() (*reset[E], error)
}

// Reset makes a [Resetter] of fn. Options must be a struct or a map: it holds the members of the reset request other
// than seed and episode_id; members that it does not know are ignored, since trainers send whatever their data sets
// hold. Observation must be a struct without fields named reward or done.
func Reset[E, Options, Observation any](fn func(E, context.Context, ResetRequest[Options]) (Observation, error)) Resetter[E] {
	return Resetter[E]{func() (*reset[E], error) {
		in, err := tools.NewOpenInput[Options](nil)
		if err != nil {
			return nil, err
		}
		for _, taken := range []string{"seed", "episode_id"} {
			if in.Schema.Properties[taken] != nil {
				return nil, fmt.Errorf("the options cannot have a field named %s in JSON: it is in the request beside them", taken)
			}
		}
		out, err := newObservation[Observation]()
		if err != nil {
			return nil, err
		}
		return &reset[E]{
			options:     in.Schema,
			observation: out.schema,
			parse:       func(raw []byte) (any, error) { return in.Decode(raw) },
			run: func(ctx context.Context, env E, r ResetParams) (*Observed, error) {
				options, ok := r.options.(Options)
				if !ok { // not from ParseReset: no options
					var err error
					if options, err = in.Decode(nil); err != nil {
						return nil, err
					}
				}
				o, err := fn(env, ctx, ResetRequest[Options]{r.Seed, r.EpisodeID, options})
				if err != nil {
					return nil, err
				}
				return out.encode(o)
			},
		}, nil
	}}
}

// An Actor is the step function of environments of type E that have an action type of their own.
type Actor[E any] struct {
	build func() (*act[E], error)
}

// Act makes an [Actor] of fn. Action must be a struct or a map; each action is held to its schema before fn runs, and fn
// may refuse it with [tools.Invalid] as long as it has changed nothing: a refused action is no step. Observation is as
// for [Reset]. Actions of type call_tool get no detour in such an environment; its tools are for the MCP doors.
func Act[E, Action, Observation any](fn func(E, context.Context, Action) (Observation, Score, error)) Actor[E] {
	return Actor[E]{func() (*act[E], error) {
		in, err := newAction[Action]()
		if err != nil {
			return nil, err
		}
		out, err := newObservation[Observation]()
		if err != nil {
			return nil, err
		}
		return &act[E]{
			action:      in.Schema,
			observation: out.schema,
			parse:       func(raw []byte) (any, error) { return in.Decode(raw) },
			run: func(ctx context.Context, env E, a any) (*Observed, Score, error) {
				o, score, err := fn(env, ctx, a.(Action))
				if err != nil {
					return nil, Score{}, err
				}
				obs, err := out.encode(o)
				return obs, score, err
			},
		}, nil
	}}
}

// A Stater is the state function of environments of type E.
type Stater[E any] struct {
	build func() (*stateOf[E], error)
}

// StateOf makes a [Stater] of fn. State must be a struct; its fields go out beside episode_id, step_count, reward_total,
// last_reward and done, so it has none of these names.
func StateOf[E, State any](fn func(E) State) Stater[E] {
	return Stater[E]{func() (*stateOf[E], error) {
		out, err := newState[State]()
		if err != nil {
			return nil, err
		}
		return &stateOf[E]{
			schema: out.Schema,
			run:    func(env E) ([]byte, error) { return out.Encode(fn(env)) },
		}, nil
	}}
}
