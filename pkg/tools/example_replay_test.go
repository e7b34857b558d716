package tools_test

import (
	"context"
	"errors"
	"strings"

	"github.com/openenv-go/openenv-go/pkg/tools"
)

// Forecast asks a service that training must not depend on.
type Forecast struct{}

type Place struct {
	Name string `json:"name"`
	Days int    `json:"days" default:"1"`
	Key  string `json:"key,omitempty" secret:"true"`
}

func (Forecast) live(ctx context.Context, in Place) (string, error) {
	return "", errors.New("the service is down")
}

// What a run with -record wrote; mostly a file, for tools.OpenCassette.
const recorded = `{"openenv_cassette":1}
{"session":1,"episode":0,"tool":"forecast","arguments":{"key":"[secret]","name":"Ghent"},"value":"rain"}
{"session":1,"episode":0,"tool":"forecast","arguments":{"days":3,"name":"Oz"},"failure":"no such place"}
`

// In simulation the tool answers as it did when it was recorded. Defaults may be spelled out or left out, and secrets are
// not looked at.
func ExampleReplay() {
	cassette := tools.ReadCassette(strings.NewReader(recorded))
	set := tools.New(
		tools.Modes("forecast", "Tell the weather to come.",
			tools.Simulation(tools.Replay(cassette, Forecast.live)), tools.Production(Forecast.live)),
	)
	call(set, tools.ModeSimulation, Forecast{}, "forecast", `{"days": 1, "name": "Ghent"}`)
	call(set, tools.ModeSimulation, Forecast{}, "forecast", `{"name": "Oz", "days": 3}`)
	call(set, tools.ModeSimulation, Forecast{}, "forecast", `{"name": "Bruges"}`)
	call(set, tools.ModeProduction, Forecast{}, "forecast", `{"name": "Ghent"}`)
	// Output:
	// rain
	// failed: no such place
	// error: calling "tools/call": the recording has no call of tool "forecast" with the arguments {"days":1,"name":"Bruges"}; call it as it was recorded, or record this call
	// error: calling "tools/call": the service is down
}
