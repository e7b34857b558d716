package transport

import (
	"context"
	"errors"
	"math"
	"net/http"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/openenv-go/openenv-go/pkg/gym"
	"github.com/openenv-go/openenv-go/pkg/internal/strictjson"
	"github.com/openenv-go/openenv-go/pkg/tools"
)

// An error's words may repeat a file's name, which is of any bytes; what can be written of them is, by every door.
const latin1, mended = "open caf\xe9.txt: no such file", "open caf\uFFFD.txt: no such file"

func TestErrorsOfAnyBytes(t *testing.T) {
	for name, c := range map[string]struct {
		err     error
		kind    tools.ErrorType
		message string
	}{
		"any":              {errors.New(latin1), tools.ExecutionError, mended},
		"an input's":       {tools.Invalid("text.\xff", latin1), tools.InvalidArgs, "text.\uFFFD: " + mended},
		"a typed one":      {&tools.Error{Type: tools.TransportError, Message: latin1}, tools.TransportError, mended},
		"JSON-RPC's":       {&jsonrpc.Error{Code: rpcServer, Message: latin1}, tools.ExecutionError, mended},
		"JSON-RPC's, data": {&jsonrpc.Error{Code: rpcServer, Message: "no", Data: []byte(`{bad`)}, tools.ExecutionError, "no"},
	} {
		env := labEnv()
		env.Tools = tools.New(tools.Func("make", "Fails.", func(*lab, context.Context, tools.None) (string, error) { return "", c.err }))
		for _, d := range doors {
			t.Run(name+"/"+d.name, func(t *testing.T) {
				srv, base := startDoor(t, env, Options{}, d)
				call := d.open(t, srv, base)
				for range 2 { // the first has broken nothing
					if o := call("make", "{}"); o.Type != string(c.kind) || !strings.Contains(o.Message, c.message) {
						t.Errorf("got %+v", o)
					}
				}
			})
		}
	}
}

// What is no tool's, too.
func TestErrorsOfAnyBytesBesideTools(t *testing.T) {
	env := gym.Environment[*lab]{
		Name:  "failing",
		New:   func(context.Context, *gym.Session) (*lab, error) { return nil, errors.New(latin1) },
		Tools: tools.New[*lab](),
	}
	_, base := start(t, env, Options{})
	resets := labEnv()
	resets.Reset = gym.Reset(func(*lab, context.Context, gym.ResetRequest[tools.None]) (tools.None, error) {
		return tools.None{}, errors.New(latin1)
	})
	_, base2 := start(t, resets, Options{})
	_, create := post(t, base+"/mcp", `{"jsonrpc":"2.0","id":7,"method":"openenv/session/create"}`)
	_, temporary := request(t, http.MethodPost, base+"/reset", `{}`)
	_, reset := request(t, http.MethodPost, base2+"/reset", `{}`)
	for what, got := range map[string]string{
		"a factory over POST /mcp": create, "a factory over POST /reset": temporary, "a factory over /ws": dial(t, base+"/ws").ask(`{"type":"state"}`),
		"a reset over POST /reset": reset, "a reset over /ws": dial(t, base2+"/ws").ask(`{"type":"reset"}`),
	} {
		if !strings.Contains(got, mended) {
			t.Errorf("%s: %s", what, got)
		}
	}
}

// What cannot be written is answered all the same, to who asked.
func TestUnwritableAnswersKeepTheirIDs(t *testing.T) {
	for _, got := range [][]byte{
		encodeRPC(strictjson.Raw(`"a"`), math.NaN(), nil),
		encodeRPC(strictjson.Raw(`"a"`), nil, &rpcError{Code: rpcServer, Data: strictjson.Raw(`{bad`)}),
		encodeFrame(frame{"observation", math.NaN(), "a"}),
	} {
		if err := strictjson.Check(got, 10); err != nil || !strings.Contains(string(got), `id":"a"`) || !strings.Contains(string(got), "cannot be written") {
			t.Errorf("%s, %v", got, err)
		}
	}
}

// An error of a handler that is no tool's costs the client no more than that request.
func TestErrorsOfPromptsWithBadData(t *testing.T) {
	env := betweenEnv(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if method == "prompts/list" {
				return nil, &jsonrpc.Error{Code: rpcServer, Message: "no", Data: []byte(`{bad`)}
			}
			return next(ctx, method, req)
		}
	})
	_, base := start(t, env, Options{})
	c := dial(t, base+"/mcp")
	c.ask(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`)
	for range 2 {
		if got := c.ask(`{"jsonrpc":"2.0","id":2,"method":"prompts/list"}`); !strings.Contains(got, `"message":"no"`) {
			t.Errorf("got %s", got)
		}
	}
}

// Nor does it end a recording.
func TestErrorsOfAnyBytesAreRecorded(t *testing.T) {
	env := labEnv()
	env.Tools = tools.New(tools.Func("make", "Fails.", func(*lab, context.Context, tools.None) (string, error) { return "", errors.New(latin1) }))
	if text := recordedCalls(t, env, "make", "{}", "{}"); strings.Count(text, mended) != 2 {
		t.Errorf("recorded\n%s", text)
	}
}
