package transport_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/openenv-go/openenv-go/pkg/gym"
	"github.com/openenv-go/openenv-go/pkg/tools"
	"github.com/openenv-go/openenv-go/pkg/transport"
)

// Parrot repeats.
type Parrot struct{}

// Phrase is what it is told.
type Phrase struct {
	Text string `json:"text"`
}

// Repeat is its tool.
func (*Parrot) Repeat(_ context.Context, in Phrase) (string, error) { return in.Text, nil }

// A server is an http.Handler, for programs that want more than Main.
func ExampleNew() {
	srv, err := transport.New(context.Background(), gym.Environment[*Parrot]{
		Name:  "parrot",
		New:   func(context.Context, *gym.Session) (*Parrot, error) { return &Parrot{}, nil },
		Tools: tools.New(tools.Func("repeat", "Repeat a phrase.", (*Parrot).Repeat)),
	}, transport.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer srv.Close(context.Background())
	web := httptest.NewServer(srv)
	defer web.Close()

	res, err := http.Post(web.URL+"/step", "application/json",
		strings.NewReader(`{"action":{"type":"call_tool","tool_name":"repeat","arguments":{"text":"hello"}}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(string(body))
	// Output:
	// {"observation":{"metadata":{},"tool_name":"repeat","result":{"content":[{"type":"text","text":"hello"}],"structured_content":{"result":"hello"},"meta":{"fastmcp":{"wrap_result":true}},"data":"hello","is_error":false},"error":null},"reward":null,"done":false,"metadata":null}
}

// Main is all that an environment's program needs.
func ExampleMain() {
	main := func() {
		transport.Main(gym.Environment[*Parrot]{
			Name:  "parrot",
			New:   func(context.Context, *gym.Session) (*Parrot, error) { return &Parrot{}, nil },
			Tools: tools.New(tools.Func("repeat", "Repeat a phrase.", (*Parrot).Repeat)),
		})
	}
	_ = main // it would serve until it is told to stop
}
