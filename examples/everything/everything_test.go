//lint:file-ignore SA1019 Clients of the revisions up to 2025-11-25 offer what 2026-07-28 deprecates.

package main

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/openenv-go/openenv-go/pkg/gym/gymtest"
	"github.com/openenv-go/openenv-go/pkg/transport"
)

// asking are the tools that ask the client: they fail for all others.
var asking = []string{
	"test_elicitation",
	"test_elicitation_sep1034_defaults",
	"test_elicitation_sep1330_enums",
	"test_input_required_result_capabilities",
	"test_input_required_result_elicitation",
	"test_input_required_result_list_roots",
	"test_input_required_result_multi_round",
	"test_input_required_result_multiple_inputs",
	"test_input_required_result_request_state",
	"test_input_required_result_sampling",
	"test_input_required_result_tampered_state",
	"test_missing_capability",
	"test_sampling",
	"test_streaming_elicitation",
}

func TestEnv(t *testing.T) { gymtest.Run(t, Env, gymtest.Skip(asking...)) }

const patience = 30 * time.Second

// A client is an MCP client that answers what it is asked, and what it was told.
type client struct {
	*mcp.ClientSession
	logged, progress, updated chan string
}

// connect serves the environment on the loopback interface and connects a client.
func connect(t *testing.T) client {
	t.Helper()
	srv, err := transport.New(t.Context(), Env, transport.Options{})
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(srv)
	t.Cleanup(func() {
		if err := srv.Close(context.Background()); err != nil {
			t.Error(err)
		}
		web.Close()
	})
	const room = 100 // more than any test is told
	c := client{logged: make(chan string, room), progress: make(chan string, room), updated: make(chan string, room)}
	m := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
		CreateMessageHandler: func(_ context.Context, req *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
			return &mcp.CreateMessageResult{Role: "assistant", Model: "test", Content: &mcp.TextContent{Text: "Hm."}}, nil
		},
		ElicitationHandler: func(_ context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: answers(req.Params.RequestedSchema)}, nil
		},
		LoggingMessageHandler: func(_ context.Context, req *mcp.LoggingMessageRequest) { c.logged <- fmt.Sprint(req.Params.Data) },
		ProgressNotificationHandler: func(_ context.Context, req *mcp.ProgressNotificationClientRequest) {
			c.progress <- fmt.Sprint(req.Params.Progress)
		},
		ResourceUpdatedHandler: func(_ context.Context, req *mcp.ResourceUpdatedNotificationRequest) { c.updated <- req.Params.URI },
	})
	m.AddRoots(&mcp.Root{URI: "file:///somewhere"})
	if c.ClientSession, err = m.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: web.URL + "/mcp"}, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// answers fills in those of the fields that the tools' forms must have.
func answers(schema any) map[string]any {
	filled := map[string]any{}
	properties, _ := schema.(map[string]any)["properties"].(map[string]any)
	for field, value := range map[string]any{"name": "Ada", "username": "ada", "email": "ada@example.com", "ok": true, "context": "sums"} {
		if _, asked := properties[field]; asked {
			filled[field] = value
		}
	}
	return filled
}

// call calls a tool and returns the texts of its result.
func (c client) call(t *testing.T, tool string, arguments any) (texts string, failed bool) {
	t.Helper()
	p := &mcp.CallToolParams{Name: tool, Arguments: arguments}
	p.SetProgressToken("token")
	res, err := c.CallTool(t.Context(), p)
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	for _, content := range res.Content {
		if text, ok := content.(*mcp.TextContent); ok {
			texts += text.Text
		}
	}
	return texts, res.IsError
}

func TestTools(t *testing.T) {
	c := connect(t)
	for _, test := range []struct {
		tool      string
		arguments any
		want      string
		fails     bool
	}{
		{tool: "test_simple_text", want: "A plain text."},
		{tool: "test_error_handling", want: "this tool always fails", fails: true},
		{tool: "test_reconnection", want: "welcome back"},
		{tool: "test_sampling", arguments: map[string]any{"prompt": "well?"}, want: "the model says: Hm."},
		{tool: "test_elicitation", arguments: map[string]any{"message": "?"}, want: `accept: {"email":"ada@example.com","username":"ada"}`},
		{tool: "test_elicitation_sep1034_defaults", want: `"name":"Ada"`},
		{tool: "test_elicitation_sep1034_defaults", want: `"score":95.5`},
		{tool: "test_input_required_result_elicitation", want: "Good morning, Ada."},
		{tool: "test_input_required_result_sampling", want: "Hm."},
		{tool: "test_input_required_result_list_roots", want: "roots: 1"},
		{tool: "test_input_required_result_request_state", want: "state-ok"},
		{tool: "test_input_required_result_multiple_inputs", want: "Hm. Ada, roots: 1"},
		{tool: "test_input_required_result_capabilities", want: "answers: 2"},
		{tool: "test_missing_capability", want: "this client has it"},
		{tool: "json_schema_2020_12_tool", arguments: map[string]any{"contactMethod": "phone", "phone": "123"}, want: "call 123"},
		{tool: "json_schema_2020_12_tool", arguments: map[string]any{"contactMethod": "phone", "email": "e"}, fails: true},
		{tool: "test_header_parameter", arguments: map[string]any{"region": "north"}, want: "the region is north"},
	} {
		if got, failed := c.call(t, test.tool, test.arguments); failed != test.fails || !strings.Contains(got, test.want) {
			t.Errorf("%s(%v): got %q, failed %t; want %q, %t", test.tool, test.arguments, got, failed, test.want, test.fails)
		}
	}
}

func TestNotifications(t *testing.T) {
	c := connect(t)
	if err := c.SetLoggingLevel(t.Context(), &mcp.SetLoggingLevelParams{Level: "info"}); err != nil {
		t.Fatal(err)
	}
	c.call(t, "test_tool_with_logging", nil)
	for _, want := range []string{"begun", "half done", "done"} {
		told(t, c.logged, want)
	}
	c.call(t, "test_tool_with_progress", nil)
	for _, want := range []string{"0", "50", "100"} {
		told(t, c.progress, want)
	}
	const uri = "test://watched-resource"
	if err := c.Subscribe(t.Context(), &mcp.SubscribeParams{URI: uri}); err != nil {
		t.Fatal(err)
	}
	c.call(t, "touch", nil)
	told(t, c.updated, uri)
	read, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
	if err != nil || read.Contents[0].Text != "touched: 1" {
		t.Errorf("got %+v, %v", read, err)
	}
}

func told(t *testing.T, by <-chan string, want string) {
	t.Helper()
	select {
	case got := <-by:
		if got != want {
			t.Errorf("was told %q, want %q", got, want)
		}
	case <-time.After(patience):
		t.Fatalf("was not told %q", want)
	}
}

func TestPromptsAndResources(t *testing.T) {
	c := connect(t)
	prompt, err := c.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "test_prompt_with_arguments", Arguments: map[string]string{"arg1": "Paris", "arg2": "Prague"}})
	if err != nil || prompt.Messages[0].Content.(*mcp.TextContent).Text != "How do I get from Paris to Prague?" {
		t.Errorf("got %+v, %v", prompt, err)
	}
	prompt, err = c.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "test_input_required_result_prompt"})
	if err != nil || prompt.Messages[0].Content.(*mcp.TextContent).Text != "Help me with sums." {
		t.Errorf("got %+v, %v", prompt, err)
	}
	completed, err := c.Complete(t.Context(), &mcp.CompleteParams{
		Ref:      &mcp.CompleteReference{Type: "ref/prompt", Name: "test_prompt_with_arguments"},
		Argument: mcp.CompleteParamsArgument{Name: "arg1", Value: "p"},
	})
	if err != nil || fmt.Sprint(completed.Completion.Values) != "[Paris Perth Prague]" {
		t.Errorf("got %+v, %v", completed, err)
	}
	read, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "test://template/123/data"})
	if err != nil || read.Contents[0].Text != `{"id":"123"}` || read.Contents[0].MIMEType != "application/json" {
		t.Errorf("got %+v, %v", read, err)
	}
	if read, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "test://nosuch"}); err == nil {
		t.Errorf("got %+v, want an error", read)
	}
}

// A state that was changed on its way, or that another session has signed, is refused.
func TestStatesAreSigned(t *testing.T) {
	a, b := &Everything{key: []byte("a")}, &Everything{key: []byte("b")}
	if err := a.verify(a.sign("x"), "x"); err != nil {
		t.Error(err)
	}
	for _, state := range []string{"", "x", a.sign("x") + "0", a.sign("y"), b.sign("x")} {
		if a.verify(state, "x") == nil {
			t.Errorf("%q was taken", state)
		}
	}
}
