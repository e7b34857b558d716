package wire

// A StepFrame is a step of the gym channel with a call of echo_message.
type StepFrame struct {
	Type string         `json:"type"`
	Data CallToolAction `json:"data"`
}

// A CallToolAction is the action of a [StepFrame].
type CallToolAction struct {
	Type      string    `json:"type"`
	ToolName  string    `json:"tool_name"`
	Arguments Arguments `json:"arguments"`
}

// Arguments are those of echo_message.
type Arguments struct {
	Message string `json:"message" jsonschema:"the text to echo"`
}

// An ObservationFrame is the reply to a [StepFrame].
type ObservationFrame struct {
	Type string          `json:"type"`
	Data ObservationData `json:"data"`
}

// ObservationData is the data of an [ObservationFrame].
type ObservationData struct {
	Observation Observation `json:"observation"`
	Reward      float64     `json:"reward"`
	Done        bool        `json:"done"`
}

// An Observation is that of a tool call.
type Observation struct {
	Metadata struct{} `json:"metadata"`
	ToolName string   `json:"tool_name"`
	Result   Result   `json:"result"`
	Error    *Error   `json:"error"`
}

// An Error is that of a tool call which failed.
type Error struct {
	Type    string `json:"error_type"`
	Message string `json:"message"`
}

// A Result is a tool's, as OpenEnv spells it.
type Result struct {
	Content    []TextContent `json:"content"`
	Structured Structured    `json:"structured_content"`
	Meta       Meta          `json:"meta"`
	Data       string        `json:"data"`
	IsError    bool          `json:"is_error"`
}

// TextContent is a text content.
type TextContent struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// Structured is the structured content of a tool that returns a string.
type Structured struct {
	Result string `json:"result"`
}

// Meta marks that the structured content wraps the result.
type Meta struct {
	FastMCP struct {
		WrapResult bool `json:"wrap_result"`
	} `json:"fastmcp"`
}

// Reward is what a step of the measured environments earns.
const Reward = 0.5

// NewStepFrame returns a step.
func NewStepFrame(message string) StepFrame {
	return StepFrame{"step", CallToolAction{"call_tool", "echo_message", Arguments{message}}}
}

// NewObservationFrame returns the reply to f.
func NewObservationFrame(f StepFrame) ObservationFrame {
	return ObservationFrame{"observation", ObservationData{
		Observation{ToolName: f.Data.ToolName, Result: newResult(f.Data.Arguments.Message)}, Reward, false,
	}}
}

func newResult(message string) Result {
	return Result{[]TextContent{{"text", message}}, Structured{message}, newMeta(), message, false}
}

func newMeta() (m Meta) {
	m.FastMCP.WrapResult = true
	return m
}

// A Call is the JSON-RPC request of a call of echo_message.
type Call struct {
	JSONRPC string     `json:"jsonrpc"`
	ID      int        `json:"id"`
	Method  string     `json:"method"`
	Params  CallParams `json:"params"`
}

// CallParams are those of a [Call].
type CallParams struct {
	SessionID string    `json:"session_id,omitempty"`
	Name      string    `json:"name"`
	Arguments Arguments `json:"arguments"`
}

// NewCall returns a call; session may be "".
func NewCall(session, message string, id int) Call {
	return Call{"2.0", id, "tools/call", CallParams{session, "echo_message", Arguments{message}}}
}

// A BareReply is the reply to a [Call] without a handshake: a result in both spellings, OpenEnv's and MCP's.
type BareReply struct {
	JSONRPC string     `json:"jsonrpc"`
	ID      int        `json:"id"`
	Result  BareResult `json:"result"`
}

// A BareResult is the result of a [BareReply].
type BareResult struct {
	Result
	MCPMeta       Meta       `json:"_meta"`
	MCPStructured Structured `json:"structuredContent"`
	MCPIsError    bool       `json:"isError"`
}

// NewBareReply returns the reply to c.
func NewBareReply(c Call) BareReply {
	m := c.Params.Arguments.Message
	return BareReply{"2.0", c.ID, BareResult{newResult(m), newMeta(), Structured{m}, false}}
}

// An MCPReply is the reply to a [Call] of a client that has initialised.
type MCPReply struct {
	JSONRPC string    `json:"jsonrpc"`
	ID      int       `json:"id"`
	Result  MCPResult `json:"result"`
}

// An MCPResult is the result of an [MCPReply].
type MCPResult struct {
	Meta       Meta          `json:"_meta"`
	Content    []TextContent `json:"content"`
	Structured Structured    `json:"structuredContent"`
}

// NewMCPReply returns the reply to c.
func NewMCPReply(c Call) MCPReply {
	m := c.Params.Arguments.Message
	return MCPReply{"2.0", c.ID, MCPResult{newMeta(), []TextContent{{"text", m}}, Structured{m}}}
}
