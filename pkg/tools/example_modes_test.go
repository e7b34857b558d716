package tools_test

import (
	"context"

	"github.com/openenv-go/openenv-go/pkg/tools"
)

type Weather struct{}

type City struct {
	Name string `json:"name"`
}

func (Weather) recorded(ctx context.Context, in City) (string, error) {
	return "sunny in " + in.Name + ", as always in the recording", nil
}

func (Weather) live(ctx context.Context, in City) (string, error) {
	return "rain in " + in.Name, nil
}

// One name, one input, one output; what it does depends on the world that the server runs in.
func ExampleModes() {
	set := tools.New(
		tools.Modes("weather", "Tell the weather.", tools.Simulation(Weather.recorded), tools.Production(Weather.live)),
	)
	call(set, tools.ModeSimulation, Weather{}, "weather", `{"name": "Ghent"}`)
	call(set, tools.ModeProduction, Weather{}, "weather", `{"name": "Ghent"}`)
	// Output:
	// sunny in Ghent, as always in the recording
	// rain in Ghent
}
