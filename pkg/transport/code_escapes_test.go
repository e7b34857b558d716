//go:build linux && (amd64 || arm64)

package transport

import (
	"context"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/openenv-go/openenv-go/pkg/codemode"
	"github.com/openenv-go/openenv-go/pkg/codemode/codemodetest"
	"github.com/openenv-go/openenv-go/pkg/gym"
	"github.com/openenv-go/openenv-go/pkg/internal/strictjson"
	"github.com/openenv-go/openenv-go/pkg/tools"
)

const codeCorpus = "../codemode/testdata"

// harbourEnv has the tools of the corpus, by an SDK server of each value's own.
func harbourEnv(t *testing.T, limits codemode.Limits) gym.Environment[*mcp.Server] {
	return gym.Environment[*mcp.Server]{
		Name: "harbour", CodeMode: &limits,
		Server: func(srv *mcp.Server) *mcp.Server { return srv },
		New: func(context.Context, *gym.Session) (*mcp.Server, error) {
			h, err := codemodetest.NewHarbour(codeCorpus)
			if err != nil {
				return nil, err
			}
			h.Patience = limits.Time / 5
			srv := mcp.NewServer(&mcp.Implementation{Name: "harbour", Version: "1"}, nil)
			for _, tool := range h.Tools() {
				srv.AddTool(&mcp.Tool{Name: tool.Name, Description: tool.Description, InputSchema: tool.Input}, harbourTool(h))
			}
			return srv, nil
		},
	}
}

func harbourTool(h *codemodetest.Harbour) mcp.ToolHandler {
	return func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		a, err := h.Call(ctx, req.Params.Name, req.Params.Arguments)
		switch {
		case err != nil:
			return nil, err
		case a.Failure != nil && a.Failure.Type == codemode.Failure:
			return tools.FailureResult(a.Failure.Message), nil
		case a.Failure != nil:
			return nil, &tools.Error{Type: tools.ErrorType(a.Failure.Type), Tool: req.Params.Name, Message: a.Failure.Message}
		}
		wrapped := append(append([]byte(`{"value":`), a.Value...), '}') // structured content is an object
		return &mcp.CallToolResult{StructuredContent: tools.Structured{Value: strictjson.Raw(wrapped)}, Content: []mcp.Content{}}, nil
	}
}

// TestFiftyEscapesBesideASession: fifty sessions run what code may try, all at once, and each comes to its end in its time. What
// all processes take stays within the bound, and a session that steps beside them gets its answers.
func TestFiftyEscapesBesideASession(t *testing.T) {
	if RaceDetector {
		t.Skip("under the race detector code is twenty times slower, and has the same time")
	}
	escapes, err := codemodetest.Escapes(codeCorpus)
	if err != nil {
		t.Fatal(err)
	}
	const (
		sessions  = 50
		processes = 4
		limit     = 2 * time.Second
	)
	o := Options{Code: gym.CodeOptions{Processes: processes}}
	o.Sessions.ToolTimeout = time.Minute
	srv, base := start(t, harbourEnv(t, codemode.Limits{Time: limit}), o)
	peak := codemodetest.Watch()
	todo := make(chan codemodetest.Escape)
	var runs sync.WaitGroup
	for range sessions {
		c := dial(t, base+"/ws")
		runs.Go(func() {
			for e := range todo {
				frame := `{"type":"step","timeout_s":300,"data":{"type":"execute_code","code":` + jsonOf(t, e.Code) + `}}`
				o := codeOutcomeOf(t, c.ask(frame))
				// So many at once may run out of time before they run out of anything else.
				if err := e.Check(o); err != nil && (o.Error == nil || o.Error.Limit != "time") {
					t.Errorf("%s: %v", e.Name, err)
				}
			}
		})
	}
	stop, stepped := make(chan struct{}), make(chan []time.Duration)
	beside := dial(t, base+"/ws")
	go func() {
		var took []time.Duration
		for {
			select {
			case <-stop:
				stepped <- took
				return
			default:
			}
			begin := time.Now()
			if reply := beside.ask(stepFrame("tide", `{"hour":6}`)); !strings.Contains(reply, `"is_error":false`) {
				t.Errorf("the session beside got %s", reply)
			}
			took = append(took, time.Since(begin))
		}
	}()
	for _, e := range escapes {
		if !strings.HasPrefix(e.Name, "state-") && e.Name != "attribute-after-shadow" { // which want to be run after another
			todo <- e
		}
	}
	close(todo)
	runs.Wait()
	close(stop)
	took := <-stepped
	slices.Sort(took)
	all, one := peak()
	t.Logf("%d steps beside them: median %v, 99%% within %v, the longest %v", len(took), took[len(took)/2], took[len(took)*99/100], took[len(took)-1])
	t.Logf("the processes took %d MiB, one of them %d MiB, this one has %d MiB", all>>20, one>>20, ownMemory(t)>>20)
	if bound := srv.class.CodeBound(); all > bound {
		t.Errorf("the processes took %d MiB, more than %d", all>>20, bound>>20)
	}
	if n := srv.Sessions().Active(); n != sessions+1 {
		t.Errorf("%d sessions are there, want %d", n, sessions+1)
	}
}

// codeOutcomeOf reads what a step of code came to.
func codeOutcomeOf(t *testing.T, reply string) codemode.Outcome {
	var f struct {
		Data struct {
			Observation struct {
				Result struct {
					Structured struct {
						Result json.RawMessage
						Stdout string
						Calls  int `json:"tool_calls"`
						Error  *codemode.Error
					} `json:"structured_content"`
				}
			}
		}
	}
	if err := json.Unmarshal([]byte(reply), &f); err != nil || f.Data.Observation.Result.Structured.Result == nil {
		t.Errorf("no outcome: %.300s", reply)
	}
	s := f.Data.Observation.Result.Structured
	return codemode.Outcome{Result: s.Result, Stdout: s.Stdout, Calls: s.Calls, Error: s.Error}
}

// ownMemory is what this process takes, in bytes.
func ownMemory(t *testing.T) int64 {
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	var size, resident int64
	if err := json.Unmarshal([]byte("["+strings.Join(strings.Fields(string(b))[:2], ",")+"]"), &[]*int64{&size, &resident}); err != nil {
		t.Fatal(err)
	}
	return resident * int64(os.Getpagesize())
}
