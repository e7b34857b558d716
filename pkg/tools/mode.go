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
	mode Mode
	fn   func(E, context.Context, In) (Out, error)
}

// Simulation is a tool's variant in simulation mode.
func Simulation[E, In, Out any](fn func(E, context.Context, In) (Out, error)) Variant[E, In, Out] {
	return Variant[E, In, Out]{ModeSimulation, fn}
}

// Production is a tool's variant in production mode.
func Production[E, In, Out any](fn func(E, context.Context, In) (Out, error)) Variant[E, In, Out] {
	return Variant[E, In, Out]{ModeProduction, fn}
}
