package tools_test

import (
	"context"

	"github.com/openenv-go/openenv-go/pkg/tools"
)

type Game struct{ secret, guesses int }

type Guess struct {
	Number int `json:"number" minimum:"1" maximum:"100" jsonschema:"your guess"`
}

type Answer struct {
	Hint    string `json:"hint" enum:"lower,higher,right"`
	Guesses int    `json:"guesses"`
}

func (g *Game) Guess(ctx context.Context, in Guess) (Answer, error) {
	g.guesses++
	switch {
	case in.Number > g.secret:
		return Answer{"lower", g.guesses}, nil
	case in.Number < g.secret:
		return Answer{"higher", g.guesses}, nil
	}
	return Answer{"right", g.guesses}, nil
}

// A tool is a method of the environment value. Its schemas come from the types of its input and output, and calls that
// do not fit are refused before the method runs.
func ExampleFunc() {
	set := tools.New(
		tools.Func("guess", "Guess the number.", (*Game).Guess),
	)
	game := &Game{secret: 42}
	call(set, tools.ModeSimulation, game, "guess", `{"number": 50}`)
	call(set, tools.ModeSimulation, game, "guess", `{"number": 42.0}`)
	call(set, tools.ModeSimulation, game, "guess", `{"number": 101, "numbr": 1}`)
	// Output:
	// {"hint":"lower","guesses":1}
	// {"hint":"right","guesses":2}
	// error: calling "tools/call": invalid arguments: number: want at most 100; numbr: unknown field
}
