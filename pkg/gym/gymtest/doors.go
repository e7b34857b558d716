package gymtest

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A seat is a client on one session, by one door. It is not for concurrent use.
type seat struct {
	id    string
	reset func(raw json.RawMessage) (answer []byte, err error) // refused in production mode, as state is
	// play plays one step; raw is the answer as it came, on doors that show it.
	play  func(st step) (o outcome, raw []byte, err error)
	list  func() ([]listed, error)
	state func() (json.RawMessage, error)
	leave func()
}

// A door is one of the ways to the tools, or to actions of the environment's own type.
type door struct {
	name string
	gym  bool // the gym channel and POST /step: the trainer's, and the doors of actions
	open func(s *served) (*seat, error)
}

var (
	stepFrames = door{"/ws step frames", true, openGym}
	mcpFrames  = door{"/ws mcp frames", false, openFrames} // on the same socket, in production mode too
)

var doors = []door{
	stepFrames,
	mcpFrames,
	{"the WebSocket on /mcp", false, openRPCSocket},
	{"POST /mcp", false, openPost},
	{"MCP Streamable HTTP", false, openStreamable},
	{"POST /step", true, openStep},
}

// openGym takes a session of the socket's own: tools by step frames, or, where actions are of the environment's own type, by
// mcp frames beside them.
func openGym(s *served) (*seat, error) {
	k, err := s.dial("/ws")
	if err != nil {
		return nil, err
	}
	seat, err := k.gymSeat()
	if err != nil {
		return nil, err
	}
	seat.play = func(st step) (outcome, []byte, error) {
		if !st.own() && s.class.OwnActions() {
			return k.callByFrame(st)
		}
		f, raw, err := k.exchange("step", action(st))
		if err != nil {
			return outcome{}, raw, err
		}
		o, err := readFrame(st, f)
		return o, raw, err
	}
	seat.list = func() ([]listed, error) {
		data, _, err := k.expect("step", json.RawMessage(`{"type":"list_tools"}`), "observation")
		if err != nil {
			return nil, err
		}
		return readObservedTools(data)
	}
	return seat, nil
}

// gymSeat is the trainer's part of a seat on the socket's own session. Production serves no more than the id.
func (k *socket) gymSeat() (*seat, error) {
	id, err := k.sessionID()
	if err != nil {
		k.cut()
		return nil, err
	}
	return &seat{
		id: id,
		reset: func(raw json.RawMessage) ([]byte, error) {
			data, _, err := k.expect("reset", raw, "observation")
			return data, err
		},
		state: func() (json.RawMessage, error) {
			data, _, err := k.expect("state", nil, "state")
			return data, err
		},
		leave: k.close,
	}, nil
}

// close takes leave as a client should.
func (k *socket) close() {
	_ = k.send([]byte(`{"type":"close"}`))
	ctx, cancel := bounded()
	defer cancel()
	_, _, _ = k.conn.Read(ctx) // the server closes
	k.cut()
}

// action is a step as the gym channel takes it.
func action(st step) json.RawMessage {
	if st.own() {
		return st.value
	}
	return json.RawMessage(jsonOf(struct {
		Type      string          `json:"type"`
		ToolName  string          `json:"tool_name"`
		Arguments json.RawMessage `json:"arguments"`
	}{"call_tool", st.tool, st.value}))
}

type callParams struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
	SessionID string          `json:"session_id,omitempty"`
}

func rpcCall(st step, session string) []byte {
	return rpcRequest("tools/call", callParams{st.tool, st.value, session})
}

func (k *socket) callByFrame(st step) (outcome, []byte, error) {
	data, raw, err := k.expect("mcp", rpcCall(st, ""), "mcp")
	if err != nil {
		return outcome{}, raw, err
	}
	o, err := readRPC(data)
	return o, raw, err
}

// openFrames is the gym channel's socket with tools by mcp frames; it is there in production mode too.
func openFrames(s *served) (*seat, error) {
	k, err := s.dial("/ws")
	if err != nil {
		return nil, err
	}
	seat, err := k.gymSeat()
	if err != nil {
		return nil, err
	}
	seat.play = k.callByFrame
	seat.list = func() ([]listed, error) {
		data, _, err := k.expect("mcp", rpcRequest("tools/list", nil), "mcp")
		if err != nil {
			return nil, err
		}
		return readTools(data)
	}
	return seat, nil
}

// openCreated makes a session and the trainer's part of a seat on it, by HTTP.
func openCreated(s *served) (*seat, error) {
	id, err := s.createSession()
	if err != nil {
		return nil, err
	}
	return &seat{
		id: id,
		reset: func(raw json.RawMessage) ([]byte, error) {
			status, reply, err := s.request(http.MethodPost, "/reset?session_id="+id, raw)
			if err == nil && status != http.StatusOK {
				err = fmt.Errorf("POST /reset: status %d: %s", status, clip(string(reply)))
			}
			return reply, err
		},
		state: func() (state json.RawMessage, err error) { return state, s.get("/state?session_id="+id, &state) },
		leave: func() {
			_, _, _ = s.request(http.MethodPost, "/mcp", rpcRequest("openenv/session/close", map[string]string{"session_id": id}))
		},
	}, nil
}

func openRPCSocket(s *served) (*seat, error) {
	seat, err := openCreated(s)
	if err != nil {
		return nil, err
	}
	k, err := s.dial("/mcp?session_id=" + seat.id)
	if err != nil {
		return nil, err
	}
	seat.play = func(st step) (outcome, []byte, error) {
		raw, err := k.ask(rpcCall(st, ""))
		if err != nil {
			return outcome{}, raw, err
		}
		o, err := readRPC(raw)
		return o, raw, err
	}
	seat.list = func() ([]listed, error) {
		raw, err := k.ask(rpcRequest("tools/list", nil))
		if err != nil {
			return nil, err
		}
		return readTools(raw)
	}
	end := seat.leave
	seat.leave = func() { k.cut(); end() }
	return seat, nil
}

func openPost(s *served) (*seat, error) {
	seat, err := openCreated(s)
	if err != nil {
		return nil, err
	}
	seat.play = func(st step) (outcome, []byte, error) {
		_, raw, err := s.request(http.MethodPost, "/mcp", rpcCall(st, seat.id))
		if err != nil {
			return outcome{}, raw, err
		}
		o, err := readRPC(raw)
		return o, raw, err
	}
	seat.list = func() ([]listed, error) {
		_, raw, err := s.request(http.MethodPost, "/mcp", rpcRequest("tools/list", map[string]string{"session_id": seat.id}))
		if err != nil {
			return nil, err
		}
		return readTools(raw)
	}
	return seat, nil
}

func openStreamable(s *served) (*seat, error) {
	seat, err := openCreated(s)
	if err != nil {
		return nil, err
	}
	client, err := s.agent(seat.id)
	if err != nil {
		return nil, err
	}
	seat.play = func(st step) (outcome, []byte, error) {
		ctx, cancel := bounded()
		defer cancel()
		o, err := readMCP(client.CallTool(ctx, &mcp.CallToolParams{Name: st.tool, Arguments: st.value}))
		return o, nil, err
	}
	seat.list = func() (out []listed, err error) {
		ctx, cancel := bounded()
		defer cancel()
		for t, err := range client.Tools(ctx, nil) {
			if err != nil {
				return nil, err
			}
			out = append(out, listed{t.Name, t.Description, tree(t.InputSchema), tree(t.OutputSchema)})
		}
		return out, nil
	}
	end := seat.leave
	seat.leave = func() { _ = client.Close(); end() }
	return seat, nil
}

func openStep(s *served) (*seat, error) {
	seat, err := openCreated(s)
	if err != nil {
		return nil, err
	}
	post := func(action json.RawMessage) (int, []byte, error) {
		return s.request(http.MethodPost, "/step?session_id="+seat.id, []byte(jsonOf(map[string]any{"action": action})))
	}
	seat.play = func(st step) (outcome, []byte, error) {
		status, raw, err := post(action(st))
		if err != nil {
			return outcome{}, raw, err
		}
		o, err := readStepReply(st, status, raw)
		return o, raw, err
	}
	seat.list = func() ([]listed, error) {
		_, raw, err := post(json.RawMessage(`{"type":"list_tools"}`))
		if err != nil {
			return nil, err
		}
		return readObservedTools(raw)
	}
	return seat, nil
}

// A listed is a tool as a door lists it. The gym channel shows no output schema.
type listed struct {
	Name        string
	Description string
	Input       any
	Output      any
}

func readTools(raw []byte) ([]listed, error) {
	var r struct {
		Result struct {
			Tools []struct {
				Name, Description string
				InputSchema       any `json:"inputSchema"`
				OutputSchema      any `json:"outputSchema"`
			} `json:"tools"`
		} `json:"result"`
	}
	if err := json.Unmarshal(raw, &r); err != nil {
		return nil, fmt.Errorf("%w in %s", err, clip(string(raw)))
	}
	var out []listed
	for _, t := range r.Result.Tools {
		out = append(out, listed{t.Name, t.Description, t.InputSchema, t.OutputSchema})
	}
	return out, nil
}

func readObservedTools(raw []byte) ([]listed, error) {
	var d struct {
		Observation struct {
			Tools []struct {
				Name, Description string
				InputSchema       any `json:"input_schema"`
			} `json:"tools"`
		} `json:"observation"`
	}
	if err := json.Unmarshal(raw, &d); err != nil {
		return nil, fmt.Errorf("%w in %s", err, clip(string(raw)))
	}
	var out []listed
	for _, t := range d.Observation.Tools {
		out = append(out, listed{Name: t.Name, Description: t.Description, Input: t.InputSchema})
	}
	return out, nil
}

// episodeOf is the session's episode as the server counts it.
func (s *served) episodeOf(id string) (episode, error) {
	found, err := s.srv.Sessions().Get(id)
	if err != nil {
		return episode{}, err
	}
	return episodeOf(found.Episode()), nil
}
