package tools_test

import (
	"context"
	"fmt"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/openenv-go/openenv-go/pkg/tools"
)

type Canvas struct{}

// A Shape is a union: a circle or a rectangle, told apart by their members.
type Shape struct {
	Radius *float64 `json:"radius,omitempty"`
	Width  *float64 `json:"width,omitempty"`
	Height *float64 `json:"height,omitempty"`
}

// JSONSchema makes Shape a tools.Schemer.
func (Shape) JSONSchema() *jsonschema.Schema {
	sizes := func(names ...string) *jsonschema.Schema {
		s := &jsonschema.Schema{Type: "object", Required: names, Properties: map[string]*jsonschema.Schema{}}
		for _, name := range names {
			s.Properties[name] = &jsonschema.Schema{Type: "number", ExclusiveMinimum: new(float64)}
		}
		return s
	}
	return &jsonschema.Schema{OneOf: []*jsonschema.Schema{sizes("radius"), sizes("width", "height")}}
}

type Drawing struct {
	Shapes []Shape `json:"shapes"`
}

func (Canvas) Draw(ctx context.Context, in Drawing) (string, error) {
	return fmt.Sprintf("%d shapes drawn", len(in.Shapes)), nil
}

// A type whose schema does not follow from its fields says it itself.
func ExampleSchemer() {
	set := tools.New(
		tools.Func("draw", "Draw shapes.", Canvas.Draw),
	)
	call(set, tools.ModeSimulation, Canvas{}, "draw", `{"shapes": [{"radius": 1}, {"width": 2, "height": 3}]}`)
	call(set, tools.ModeSimulation, Canvas{}, "draw", `{"shapes": [{"radius": 1}, {"width": 2}]}`)
	// Output:
	// 2 shapes drawn
	// error: calling "tools/call": invalid arguments: shapes.1: fits none of the alternatives
}
