//lint:file-ignore SA1019 Logs and samples are deprecated in MCP 2026-07-28; the revisions served here have them.

package golang_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/openenv-go/openenv-go/interop/internal/kit"
)

const many = 16

var toolNames = []string{
	"ask", "cancelled", "count", "echo", "error", "execute_code", "fail", "grow", "log", "picture", "place", "progress", "sample", "slow",
}

// A peer is a connection, with what the server has sent unasked.
type peer struct {
	*mcp.ClientSession

	mu        sync.Mutex
	logs      []string
	changes   int // of the list of tools
	questions []string
	answer    *mcp.ElicitResult
	progress  map[any][]float64 // by token
	onReport  func(at float64)
}

// connect connects a client. It leaves at the end of the test, or by its Close.
func connect(t *testing.T, url string) *peer {
	t.Helper()
	p := &peer{answer: &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": "Ada"}}, progress: map[any][]float64{}}
	c := mcp.NewClient(&mcp.Implementation{Name: "interop", Version: "1"}, &mcp.ClientOptions{
		ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.questions = append(p.questions, r.Params.Message)
			return p.answer, nil
		},
		CreateMessageHandler: func(_ context.Context, r *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
			if asked := r.Params.Messages[0].Content.(*mcp.TextContent).Text; asked != "Speak." {
				return nil, fmt.Errorf("asked to %q", asked)
			}
			return &mcp.CreateMessageResult{Role: "assistant", Model: "none", Content: &mcp.TextContent{Text: "so be it"}}, nil
		},
		LoggingMessageHandler: func(_ context.Context, r *mcp.LoggingMessageRequest) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.logs = append(p.logs, fmt.Sprint(r.Params.Level, " ", r.Params.Logger, " ", r.Params.Data))
		},
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.changes++
		},
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
			p.mu.Lock()
			p.progress[r.Params.ProgressToken] = append(p.progress[r.Params.ProgressToken], r.Params.Progress)
			onReport := p.onReport
			p.mu.Unlock()
			if onReport != nil {
				onReport(r.Params.Progress)
			}
		},
	})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var err error
	if p.ClientSession, err = c.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: url}, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

func (p *peer) call(t *testing.T, tool string, arguments any, token string) (*mcp.CallToolResult, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	params := &mcp.CallToolParams{Name: tool, Arguments: arguments}
	if token != "" {
		params.SetProgressToken(token)
	}
	return p.CallTool(ctx, params)
}

// text makes a call that must succeed with one text.
func (p *peer) text(t *testing.T, tool string, arguments any) string {
	t.Helper()
	res, err := p.call(t, tool, arguments, "")
	if err != nil || res.IsError || len(res.Content) != 1 {
		t.Errorf("%s: %+v, %v", tool, res, err)
		return ""
	}
	return res.Content[0].(*mcp.TextContent).Text
}

func (p *peer) toolNames(t *testing.T) []string {
	t.Helper()
	var names []string
	for tool, err := range p.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, tool.Name)
	}
	slices.Sort(names)
	return names
}

func (p *peer) saw(condition func() bool) func() bool {
	return func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return condition()
	}
}

func equal(t *testing.T, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestGoSDK(t *testing.T) {
	kit.Need(t)
	kit.DependOnSources(t)
	server := kit.Start(t, kit.Build(t, "./interop/mcp/server"))
	cutter := kit.NewCutter(t, server)
	resumable := sendsEventIDs(t, server.URL)
	for _, d := range doors {
		t.Run(d.name, func(t *testing.T) {
			play := func(name string, body func(t *testing.T, p *peer)) {
				t.Run(name, func(t *testing.T) { body(t, connect(t, d.address(t, server.URL))) })
			}
			play("initialize and list", testInitialize)
			play("results", testResults)
			play("errors", testErrors)
			play("prompt and resource", testPromptAndResource)
			play("progress", testProgress)
			play("cancel", testCancel)
			play("elicitation", testElicitation)
			play("sampling", func(t *testing.T, p *peer) {
				equal(t, "SO BE IT", p.text(t, "sample", map[string]any{"prompt": "Speak."}))
			})
			play("log", testLog)
			play("many calls at once", testManyCalls)
			t.Run("delete", func(t *testing.T) { testDelete(t, d, server) })
			t.Run("a new tool is announced", func(t *testing.T) {
				testNewTool(t, connect(t, d.address(t, server.URL)), connect(t, d.address(t, server.URL)))
			})
			t.Run("many sessions at once", func(t *testing.T) { testManySessions(t, d, server) })
			t.Run("resume", func(t *testing.T) {
				if !resumable {
					t.Skip("the server sends no event ids, so a stream cannot be resumed")
				}
				t.Run("a call", func(t *testing.T) { testResumeCall(t, connect(t, d.address(t, cutter.URL)), cutter) })
				t.Run("announcements", func(t *testing.T) { testResumeAnnouncements(t, connect(t, d.address(t, cutter.URL)), cutter) })
			})
		})
	}
	server.CheckEmpty(t)
}

func testInitialize(t *testing.T, p *peer) {
	hello := p.InitializeResult()
	equal(t, "2025-11-25", hello.ProtocolVersion)
	equal(t, "mcp_lab", hello.ServerInfo.Name)
	equal(t, "Try the tools.", hello.Instructions)
	equal(t, toolNames, p.toolNames(t))
}

func testResults(t *testing.T, p *peer) {
	equal(t, "héllo 👋\n", p.text(t, "echo", map[string]any{"text": "héllo 👋\n"}))
	placed, err := p.call(t, "place", nil, "")
	if err != nil {
		t.Fatal(err)
	}
	equal(t, any(map[string]any{"x": 3.0, "y": -4.0}), placed.StructuredContent)
	shown, err := p.call(t, "picture", nil, "")
	if err != nil {
		t.Fatal(err)
	}
	equal(t, []mcp.Content{&mcp.ImageContent{Data: []byte("\x89PNG\r\n\x1a\n"), MIMEType: "image/png"}}, shown.Content)
}

func testErrors(t *testing.T, p *peer) {
	_, err := p.call(t, "no_such_tool", nil, "")
	var protocol *jsonrpc.Error
	if !errors.As(err, &protocol) || protocol.Code != jsonrpc.CodeInvalidParams || !strings.Contains(protocol.Message, "no_such_tool") {
		t.Errorf("an unknown tool: %v", err)
	}
	for _, c := range []struct {
		tool      string
		arguments any
		kind      any
		text      string
	}{
		{"echo", map[string]any{}, "invalid_args", "text"},
		{"echo", map[string]any{"text": 3}, "invalid_args", "text"},
		{"echo", map[string]any{"text": "x", "colour": 1}, "invalid_args", "colour"},
		{"fail", nil, nil, "not today"},
		{"error", nil, "execution_error", "out of paper"},
	} {
		res, err := p.call(t, c.tool, c.arguments, "")
		if err != nil {
			t.Errorf("%s %v: %v", c.tool, c.arguments, err)
			continue
		}
		text := res.Content[0].(*mcp.TextContent).Text
		if !res.IsError || res.Meta["openenv/error_type"] != c.kind || !strings.Contains(text, c.text) {
			t.Errorf("%s %v: is error: %v, %v, %q", c.tool, c.arguments, res.IsError, res.Meta, text)
		}
	}
	equal(t, "still here", p.text(t, "echo", map[string]any{"text": "still here"}))
}

func testPromptAndResource(t *testing.T, p *peer) {
	prompt, err := p.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "greet", Arguments: map[string]string{"name": "Ada"}})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "Greet Ada.", prompt.Messages[0].Content.(*mcp.TextContent).Text)
	if _, err := p.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "no_such_prompt"}); err == nil {
		t.Error("an unknown prompt was found")
	}
	motto, err := p.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "lab://motto"})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "measure twice", motto.Contents[0].Text)
	if _, err := p.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "lab://nothing"}); err == nil {
		t.Error("an unknown resource was found")
	}
}

func testProgress(t *testing.T, p *peer) {
	res, err := p.call(t, "progress", map[string]any{"steps": 3}, "token")
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "3 steps, 0 reports unsent", res.Content[0].(*mcp.TextContent).Text)
	eventually(t, p.saw(func() bool { return slices.Equal(p.progress["token"], []float64{1, 2, 3}) }))
}

func testCancel(t *testing.T, p *peer) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second) // far less than the call's time
	defer cancel()
	running, changedMind := context.WithCancel(ctx)
	p.onReport = func(float64) { changedMind() }
	params := &mcp.CallToolParams{Name: "slow", Arguments: map[string]any{"ms": 25_000}}
	params.SetProgressToken("token")
	if _, err := p.CallTool(running, params); !errors.Is(err, context.Canceled) {
		t.Errorf("the cancelled call: %v", err)
	}
	// Calls of one session wait for one another, so that this is after the end of the slow one.
	res, err := p.CallTool(ctx, &mcp.CallToolParams{Name: "cancelled"})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "1", res.Content[0].(*mcp.TextContent).Text)
}

func testElicitation(t *testing.T, p *peer) {
	equal(t, "Hello, Ada.", p.text(t, "ask", nil))
	equal(t, []string{"What is your name?"}, p.questions)
	for _, action := range []string{"decline", "cancel"} {
		p.mu.Lock()
		p.answer = &mcp.ElicitResult{Action: action}
		p.mu.Unlock()
		equal(t, action, p.text(t, "ask", nil))
	}
}

func testLog(t *testing.T, p *peer) {
	for _, c := range []struct {
		level mcp.LoggingLevel
		want  []string
	}{
		{"warning", []string{"warning lab x"}},
		{"debug", []string{"warning lab x", "debug lab x", "warning lab x"}},
	} {
		if err := p.SetLoggingLevel(t.Context(), &mcp.SetLoggingLevelParams{Level: c.level}); err != nil {
			t.Fatal(err)
		}
		equal(t, "logged", p.text(t, "log", map[string]any{"text": "x"}))
		eventually(t, p.saw(func() bool { return slices.Equal(p.logs, c.want) }))
	}
}

func testNewTool(t *testing.T, p, other *peer) {
	// It grows after a while: what is announced before the client listens is lost.
	equal(t, "planted", p.text(t, "grow", map[string]any{"name": "sprout", "ms": 300}))
	eventually(t, p.saw(func() bool { return p.changes > 0 }))
	equal(t, slices.Sorted(slices.Values(append(slices.Clone(toolNames), "sprout"))), p.toolNames(t))
	equal(t, "I am sprout", p.text(t, "sprout", nil))
	equal(t, toolNames, other.toolNames(t))
	other.mu.Lock()
	defer other.mu.Unlock()
	equal(t, 0, other.changes)
}

func testManyCalls(t *testing.T, p *peer) {
	var calls sync.WaitGroup
	for n := range many {
		calls.Go(func() {
			equal(t, fmt.Sprint(n), p.text(t, "echo", map[string]any{"text": fmt.Sprint(n)}))
			steps, token := n%3+1, fmt.Sprint("token ", n)
			if _, err := p.call(t, "progress", map[string]any{"steps": steps}, token); err != nil {
				t.Error(err)
			}
		})
	}
	calls.Wait()
	for n := range many {
		want := []float64{1, 2, 3}[:n%3+1]
		eventually(t, p.saw(func() bool { return slices.Equal(p.progress[fmt.Sprint("token ", n)], want) }))
	}
}

func testManySessions(t *testing.T, d door, server kit.Server) {
	peers := make([]*peer, many)
	for n := range peers {
		peers[n] = connect(t, d.address(t, server.URL))
	}
	var all sync.WaitGroup
	for n, p := range peers {
		all.Go(func() {
			for i := range n + 1 {
				equal(t, fmt.Sprint(i+1), p.text(t, "count", nil))
			}
		})
	}
	all.Wait()
}

func testDelete(t *testing.T, d door, server kit.Server) {
	before := sessions(t, server)
	url := d.address(t, server.URL)
	p := connect(t, url)
	after := sessions(t, server)
	maps.DeleteFunc(after, func(id string, _ session) bool { _, old := before[id]; return old })
	if len(after) != 1 {
		t.Fatalf("%d sessions are new, want one", len(after))
	}
	for id, s := range after {
		equal(t, session{id, d.openedBy, true}, s)
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		eventually(t, func() bool {
			s, there := sessions(t, server)[id]
			return !s.Agent && there == (d.openedBy == "create")
		})
	}
	status, _, _ := request(t, http.MethodPost, url, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`,
		"Mcp-Session-Id", p.ID(), "Accept", "application/json, text/event-stream")
	equal(t, http.StatusNotFound, status)
	if d.openedBy == "create" { // another client has the session as it was left
		equal(t, "1", connect(t, url).text(t, "count", nil))
	}
}

func testResumeCall(t *testing.T, p *peer, cutter *kit.Cutter) {
	p.onReport = func(at float64) {
		if at == 1 && cutter.Cut() == 0 {
			t.Error("there was nothing to cut")
		}
	}
	res, err := p.call(t, "progress", map[string]any{"steps": 4, "ms": 300}, "token")
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "4 steps, 0 reports unsent", res.Content[0].(*mcp.TextContent).Text)
	eventually(t, p.saw(func() bool { return slices.Equal(p.progress["token"], []float64{1, 2, 3, 4}) }))
	equal(t, "1", p.text(t, "count", nil)) // the session is the same
}

func testResumeAnnouncements(t *testing.T, p *peer, cutter *kit.Cutter) {
	// One that arrives before the cut tells the client where to go on.
	p.text(t, "grow", map[string]any{"name": "sprout"})
	eventually(t, p.saw(func() bool { return p.changes == 1 }))
	p.text(t, "grow", map[string]any{"name": "branch", "ms": 200})
	if cutter.Cut() == 0 {
		t.Error("there was nothing to cut")
	}
	eventually(t, p.saw(func() bool { return p.changes == 2 }))
}
