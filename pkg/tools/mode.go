package tools

import (
	"context"
	"fmt"
)

// A Mode is the world that a server runs its environment in, fixed at start-up. The values are the wire's.
type Mode string

const (
	ModeSimulation Mode = "simulation" // episodes for training: reset, step and state are open, worlds may be recordings
	ModeProduction Mode = "production" // the live world: agents call tools, nobody resets
)

// ParseMode reads a mode as a flag or OPENENV_MODE gives it.
func ParseMode(s string) (Mode, error) {
	switch m := Mode(s); m {
	case ModeSimulation, ModeProduction:
		return m, nil
	}
	return "", fmt.Errorf("unknown mode %q: want %s or %s", s, ModeSimulation, ModeProduction)
}

// A Variant is what a tool does in one mode; [Simulation] and [Production] make it.
type Variant[E, In, Out any] struct {
	mode     Mode
	fn       func(E, context.Context, In) (Out, error)
	replay   bool
	cassette *Cassette // that it replays, if replay
}

// Simulation is a tool's variant in simulation mode: a function, or a [Replay] of its recorded calls. F, the function's own
// type, is always inferred.
func Simulation[E, In, Out any, F ~func(E, context.Context, In) (Out, error)](fn F) Variant[E, In, Out] {
	v := Variant[E, In, Out]{mode: ModeSimulation, fn: fn}
	if r, ok := any(fn).(Replayed[E, In, Out]); ok {
		v.replay, v.cassette = true, r.cassette()
	}
	return v
}

// Production is a tool's variant in production mode.
func Production[E, In, Out any](fn func(E, context.Context, In) (Out, error)) Variant[E, In, Out] {
	return Variant[E, In, Out]{mode: ModeProduction, fn: fn}
}
