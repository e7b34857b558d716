package tools_test

import (
	"context"
	"errors"

	"github.com/openenv-go/openenv-go/pkg/tools"
)

type Library struct{ closed bool }

type Book struct {
	Title string `json:"title"`
}

func (l *Library) Lend(ctx context.Context, in Book) (string, error) {
	if l.closed {
		return "", errors.New("the catalogue cannot be read") // the call has failed
	}
	if in.Title != "Emma" {
		return "", tools.Failf("there is no book %q; try another title", in.Title) // the model reads this and tries again
	}
	return "here it is", nil
}

// A failure that the model should read and act on is a result of the tool; any other error says that the call failed.
func ExampleFail() {
	set := tools.New(
		tools.Func("lend", "Borrow a book.", (*Library).Lend),
	)
	call(set, tools.ModeSimulation, &Library{}, "lend", `{"title": "Emma"}`)
	call(set, tools.ModeSimulation, &Library{}, "lend", `{"title": "Ema"}`)
	call(set, tools.ModeSimulation, &Library{closed: true}, "lend", `{"title": "Emma"}`)
	// Output:
	// here it is
	// failed: there is no book "Ema"; try another title
	// error: calling "tools/call": the catalogue cannot be read
}
