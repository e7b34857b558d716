package transport

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The doors of the suite: how a tool is called by each, and how its answer is read.

type dialect int

const (
	gymChannel dialect = iota
	bare
	initialized
)

type caller func(tool, args string) outcome

type door struct {
	name      string
	dialect   dialect
	temporary bool // each call has a session of its own
	// open makes the door's client on a server whose first session is, or will be, the one that is called.
	open func(t *testing.T, srv *Server, base string) caller
}

var doors = []door{
	{name: "ws step", dialect: gymChannel, open: openStep},
	{name: "ws mcp frame", dialect: bare, open: openMCPFrame},
	{name: "ws mcp frame attached", dialect: bare, open: func(t *testing.T, srv *Server, base string) caller {
		return mcpFrameCaller(t, dial(t, base+"/ws?session_id="+createSession(t, base)))
	}},
	{name: "ws /mcp", dialect: bare, open: func(t *testing.T, _ *Server, base string) caller {
		return rpcSocketCaller(t, dial(t, base+"/mcp"))
	}},
	{name: "ws /mcp joined", dialect: bare, open: func(t *testing.T, _ *Server, base string) caller {
		return rpcSocketCaller(t, dial(t, base+"/mcp?session_id="+createSession(t, base)))
	}},
	{name: "POST /mcp", dialect: bare, open: func(t *testing.T, _ *Server, base string) caller {
		return rpcPostCaller(t, base, createSession(t, base))
	}},
	{name: "POST /mcp temporary", dialect: bare, temporary: true, open: func(t *testing.T, _ *Server, base string) caller {
		return rpcPostCaller(t, base, "")
	}},
	{name: "streamable", dialect: initialized, open: func(t *testing.T, _ *Server, base string) caller {
		return streamableCaller(t, base+"/mcp")
	}},
	{name: "streamable joined", dialect: initialized, open: func(t *testing.T, _ *Server, base string) caller {
		return streamableCaller(t, base+"/mcp?session_id="+createSession(t, base))
	}},
	{name: "POST /mcp handle", dialect: bare, open: func(t *testing.T, _ *Server, base string) caller {
		return rpcPostCaller(t, base, mint(t, base, createSession(t, base)))
	}},
	{name: "POST /mcp/handle", dialect: bare, open: func(t *testing.T, _ *Server, base string) caller {
		url := base + "/mcp/" + mint(t, base, createSession(t, base))
		return func(tool, args string) outcome {
			status, reply := post(t, url, rpcCall(tool, args, ""))
			if status != http.StatusOK {
				t.Fatalf("status %d: %s", status, reply)
			}
			return readRPC(t, reply)
		}
	}},
	{name: "ws /mcp/handle", dialect: bare, open: func(t *testing.T, _ *Server, base string) caller {
		return rpcSocketCaller(t, dial(t, base+"/mcp/"+mint(t, base, createSession(t, base))))
	}},
	{name: "streamable handle", dialect: initialized, open: func(t *testing.T, _ *Server, base string) caller {
		return streamableCaller(t, base+"/mcp/"+mint(t, base, createSession(t, base)))
	}},
	{name: "ws /mcp initialized", dialect: initialized, open: func(t *testing.T, _ *Server, base string) caller {
		return clientCaller(t, connectOver(t, nil, socketTransport{base + "/mcp"}))
	}},
	{name: "ws /mcp initialized joined", dialect: initialized, open: func(t *testing.T, _ *Server, base string) caller {
		return clientCaller(t, connectOver(t, nil, socketTransport{base + "/mcp?session_id=" + createSession(t, base)}))
	}},
	{name: "ws /mcp initialized handle", dialect: initialized, open: func(t *testing.T, _ *Server, base string) caller {
		return clientCaller(t, connectOver(t, nil, socketTransport{base + "/mcp/" + mint(t, base, createSession(t, base))}))
	}},
	{name: "stdio", dialect: initialized, open: func(t *testing.T, srv *Server, _ string) caller {
		return clientCaller(t, connectOver(t, nil, pipes(t, srv).transport()))
	}},
	{name: "stdio bare", dialect: bare, open: func(t *testing.T, srv *Server, _ string) caller {
		c := pipes(t, srv)
		return func(tool, args string) outcome { c.send(rpcCall(tool, args, "")); return readRPC(t, c.receive()) }
	}},
	{name: "stateless joined", dialect: initialized, open: func(t *testing.T, _ *Server, base string) caller {
		return clientCaller(t, connectAs(t, base+"/mcp?session_id="+createSession(t, base), stateless))
	}},
	{name: "stateless handle", dialect: initialized, open: func(t *testing.T, _ *Server, base string) caller {
		return clientCaller(t, connectAs(t, base+"/mcp/"+mint(t, base, createSession(t, base)), stateless))
	}},
	{name: "POST /step", dialect: gymChannel, open: func(t *testing.T, _ *Server, base string) caller {
		return stepPostCaller(t, base+"/step?session_id="+createSession(t, base))
	}},
	{name: "POST /step temporary", dialect: gymChannel, temporary: true, open: func(t *testing.T, _ *Server, base string) caller {
		return stepPostCaller(t, base+"/step")
	}},
}

func openStep(t *testing.T, _ *Server, base string) caller {
	c := dial(t, base+"/ws")
	return func(tool, args string) outcome {
		var f struct {
			Type string
			Data json.RawMessage
		}
		unmarshal(t, c.ask(stepFrame(tool, args)), &f)
		if f.Type != "observation" {
			t.Fatalf("got a frame of type %s: %s", f.Type, f.Data)
		}
		return readObservation(t, tool, string(f.Data))
	}
}

func stepPostCaller(t *testing.T, url string) caller {
	return func(tool, args string) outcome {
		body := `{"action":{` + withArguments(`"type":"call_tool","tool_name":"`+tool+`"`, "arguments", args) + `}}`
		status, reply := post(t, url, body)
		if status != http.StatusOK {
			t.Fatalf("status %d: %s", status, reply)
		}
		return readObservation(t, tool, reply)
	}
}

// readObservation reads the data of an observation frame, and holds it to its form.
func readObservation(t *testing.T, tool, text string) outcome {
	t.Helper()
	var d struct {
		Observation struct {
			Metadata json.RawMessage `json:"metadata"`
			ToolName string          `json:"tool_name"`
			Result   *wireResult     `json:"result"`
			Error    *struct {
				Type    string `json:"error_type"`
				Message string `json:"message"`
			} `json:"error"`
		} `json:"observation"`
		Reward   *float64        `json:"reward"`
		Done     *bool           `json:"done"`
		Metadata json.RawMessage `json:"metadata"`
	}
	strict(t, text, &d)
	o := d.Observation
	wantReward := o.Error == nil || o.Error.Type != "timeout"
	switch {
	case o.ToolName != tool || string(o.Metadata) != "{}" || d.Done == nil || *d.Done:
		t.Errorf("observation: %s", text)
	case (o.Result == nil) == (o.Error == nil):
		t.Errorf("want either result or error: %s", text)
	case wantReward != (d.Reward != nil) || wantReward && *d.Reward != labReward:
		t.Errorf("wrong reward: %s", text)
	}
	if o.Error != nil {
		return outcome{Type: o.Error.Type, Message: o.Error.Message}
	}
	return o.Result.outcome(t)
}

// wireResult is a result in OpenEnv's spelling.
type wireResult struct {
	Content    []json.RawMessage `json:"content"`
	Structured json.RawMessage   `json:"structured_content"`
	Meta       json.RawMessage   `json:"meta"`
	Data       json.RawMessage   `json:"data"`
	IsError    bool              `json:"is_error"`
}

const wrapMark = `{"fastmcp":{"wrap_result":true}}`

func (r wireResult) outcome(t *testing.T) outcome {
	t.Helper()
	data, structured := string(r.Data), string(r.Structured)
	switch {
	case r.Content == nil:
		t.Error("content must be a list")
	case r.IsError && structured != "null": // code that failed says where
		if !strings.HasPrefix(structured, "{") || string(r.Meta) != "null" {
			t.Errorf("structured %s and meta %s, want an object and null", structured, r.Meta)
		}
	case r.IsError || data == "null":
		if structured != "null" || string(r.Meta) != "null" {
			t.Errorf("structured %s and meta %s, want null", structured, r.Meta)
		}
	case strings.HasPrefix(data, "{"):
		if structured != data || string(r.Meta) != "null" {
			t.Errorf("an object must be its own structured content: %s, meta %s", structured, r.Meta)
		}
	default:
		if structured != `{"result":`+data+`}` || string(r.Meta) != wrapMark {
			t.Errorf("structured %s and meta %s, want %s wrapped and marked", structured, r.Meta, data)
		}
	}
	return outcome{Data: data, Failed: r.IsError}
}

func openMCPFrame(t *testing.T, _ *Server, base string) caller {
	return mcpFrameCaller(t, dial(t, base+"/ws"))
}

func mcpFrameCaller(t *testing.T, c wsClient) caller {
	return func(tool, args string) outcome {
		var f struct {
			Type string          `json:"type"`
			Data json.RawMessage `json:"data"`
		}
		strict(t, c.ask(`{"type":"mcp","data":`+rpcCall(tool, args, "")+`}`), &f)
		if f.Type != "mcp" {
			t.Fatalf("got a frame of type %s: %s", f.Type, f.Data)
		}
		return readRPC(t, string(f.Data))
	}
}

func rpcSocketCaller(t *testing.T, c wsClient) caller {
	return func(tool, args string) outcome { return readRPC(t, c.ask(rpcCall(tool, args, ""))) }
}

func rpcPostCaller(t *testing.T, base, session string) caller {
	return func(tool, args string) outcome {
		status, reply := post(t, base+"/mcp", rpcCall(tool, args, session))
		if status != http.StatusOK {
			t.Fatalf("status %d: %s", status, reply)
		}
		return readRPC(t, reply)
	}
}

// readRPC reads the answer of a bare tools/call, and holds it to its form: both spellings, no reward.
func readRPC(t *testing.T, text string) outcome {
	t.Helper()
	var r struct {
		JSONRPC string `json:"jsonrpc"`
		ID      int    `json:"id"`
		Result  *struct {
			wireResult
			MCPStructured json.RawMessage `json:"structuredContent"`
			MCPIsError    *bool           `json:"isError"`
			MCPMeta       json.RawMessage `json:"_meta"`
		} `json:"result"`
		Error *struct {
			Code    int    `json:"code"`
			Message string `json:"message"`
			Data    struct {
				Type string `json:"error_type"`
			} `json:"data"`
		} `json:"error"`
	}
	strict(t, text, &r)
	if r.JSONRPC != "2.0" || r.ID != 7 || (r.Result == nil) == (r.Error == nil) {
		t.Fatalf("not an answer to the call: %s", text)
	}
	if r.Error != nil {
		return outcome{Type: r.Error.Data.Type, Code: r.Error.Code, Message: r.Error.Message}
	}
	o := r.Result.outcome(t)
	mcpStructured := string(r.Result.MCPStructured)
	if mcpStructured == "" {
		mcpStructured = "null"
	}
	if mcpStructured != string(r.Result.Structured) || r.Result.MCPIsError == nil || *r.Result.MCPIsError != o.Failed {
		t.Errorf("the two spellings differ: %s", text)
	}
	return o
}

// connectMCP connects the Go SDK's client, which initialises.
func connectMCP(t *testing.T, url string) *mcp.ClientSession {
	t.Helper()
	return connectAs(t, url, statefulVersions[0])
}

// connectAs connects the Go SDK's client with a version of MCP.
func connectAs(t *testing.T, url, version string) *mcp.ClientSession {
	t.Helper()
	return connectClient(t, mcp.NewClient(&mcp.Implementation{Name: "suite", Version: "1"}, nil), url, version)
}

func connectClient(t *testing.T, client *mcp.Client, url, version string) *mcp.ClientSession {
	t.Helper()
	web := &http.Client{Transport: &http.Transport{}}
	cs, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: url, HTTPClient: web}, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cs.Close()
		web.CloseIdleConnections()
	})
	return cs
}

func streamableCaller(t *testing.T, url string) caller { return clientCaller(t, connectMCP(t, url)) }

func clientCaller(t *testing.T, cs *mcp.ClientSession) caller {
	return func(tool, args string) outcome {
		params := &mcp.CallToolParams{Name: tool}
		if args != "" {
			params.Arguments = json.RawMessage(args)
		}
		res, err := cs.CallTool(t.Context(), params)
		var re *jsonrpc.Error
		switch {
		case errors.As(err, &re):
			var data struct {
				Type string `json:"error_type"`
			}
			unmarshal(t, string(re.Data), &data)
			return outcome{Type: data.Type, Code: int(re.Code), Message: re.Message}
		case err != nil:
			t.Fatal(err)
		}
		return readMCPResult(t, res)
	}
}

func readMCPResult(t *testing.T, res *mcp.CallToolResult) outcome {
	t.Helper()
	text := ""
	if len(res.Content) > 0 {
		text = res.Content[0].(*mcp.TextContent).Text
	}
	if typ, ok := res.Meta["openenv/error_type"].(string); ok {
		if !res.IsError {
			t.Error("a failed call must be marked as an error")
		}
		return outcome{Type: typ, Message: text}
	}
	if res.IsError {
		return outcome{Data: jsonOf(t, text), Failed: true}
	}
	if res.StructuredContent == nil {
		return outcome{Data: "null"}
	}
	var buf bytes.Buffer
	if err := json.Compact(&buf, []byte(jsonOf(t, res.StructuredContent))); err != nil {
		t.Fatal(err)
	}
	data := buf.String()
	if _, wrapped := res.Meta["fastmcp"]; wrapped {
		data = strings.TrimSuffix(strings.TrimPrefix(data, `{"result":`), "}")
	}
	asText := text
	if strings.HasPrefix(data, `"`) {
		asText = jsonOf(t, text)
	}
	if diff := cmp.Diff(parsed(t, data), parsed(t, asText)); diff != "" {
		t.Errorf("text and structured content differ:\n%s", diff)
	}
	return outcome{Data: data}
}

// parsed is a JSON text's value.
func parsed(t *testing.T, text string) (v any) {
	t.Helper()
	unmarshal(t, text, &v)
	return v
}
