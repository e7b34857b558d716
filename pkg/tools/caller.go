//lint:file-ignore SA1019 log messages and sampling are deprecated from revision 2026-07-28 on; clients before it have them.

package tools

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// What a tool can tell and ask its caller while it runs. The functions take the context that the tool was given, or one
// made from it. Whether a caller can be told or asked depends on the client and its door: an MCP client that has
// initialised may, a trainer on /ws and bare JSON-RPC may not. What a caller cannot be told is dropped; what it cannot be
// asked is an [*UnsupportedError]. While a tool waits for an answer it keeps its turn, and its deadline runs: see
// [Deadline].

type requestKey struct{}

func withRequest(ctx context.Context, req *mcp.CallToolRequest) context.Context {
	return context.WithValue(ctx, requestKey{}, req)
}

// Request is the request that a tool is serving, for what makes calls in its name; nil outside of a tool.
func Request(ctx context.Context) *mcp.CallToolRequest {
	req, _ := ctx.Value(requestKey{}).(*mcp.CallToolRequest)
	return req
}

// caller is the SDK session of the client that has made the call, with its request; nil where none that has initialised is
// known.
func caller(ctx context.Context) (*mcp.ServerSession, *mcp.CallToolRequest) {
	req := Request(ctx)
	if req == nil || req.Session == nil || req.Session.InitializeParams() == nil {
		return nil, nil
	}
	return req.Session, req
}

// Progress tells the caller how far the call is: done of total, in any unit; a total of 0 is unknown. done must grow from
// one to the next. A caller who has not asked for progress is not told.
func Progress(ctx context.Context, done, total float64, message string) {
	session, req := caller(ctx)
	if session == nil {
		return
	}
	if token := req.Params.GetProgressToken(); token != nil {
		_ = session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
			ProgressToken: token, Progress: done, Total: total, Message: message,
		}) // a client that has gone is noticed by the context
	}
}

// Log sends the caller a log message: data is any value that encoding/json writes. A caller who has not set a level, or
// one above level, is not sent it. It is for the model's side; the server's own log is gym.Session's Logger.
func Log(ctx context.Context, level mcp.LoggingLevel, data any) {
	session, req := caller(ctx)
	if session == nil {
		return
	}
	raw, err := json.Marshal(data)
	if err != nil {
		raw, _ = json.Marshal(fmt.Sprintf("a log message that cannot be written as JSON: %v", err))
	}
	_ = session.Log(ctx, &mcp.LoggingMessageParams{Level: level, Logger: req.Params.Name, Data: json.RawMessage(raw)})
}

// An UnsupportedError is a question that the caller cannot be asked.
type UnsupportedError struct{ Feature string } // elicitation or sampling

func (e *UnsupportedError) Error() string {
	return "the caller of this tool cannot be asked: it does not support " + e.Feature
}

// A DeclinedError is a question that the caller's user did not answer.
type DeclinedError struct{ Action string } // decline or cancel

func (e *DeclinedError) Error() string {
	if e.Action == "cancel" {
		return "the user has closed the question without an answer"
	}
	return "the user has declined to answer"
}

// Elicit asks the caller's user for an Answer, a flat struct of strings, numbers and booleans, whose schema is derived as
// that of an input. The error is an [*UnsupportedError], a [*DeclinedError], an [*InputError] for an answer that does not
// fit, or that of the context or the connection.
func Elicit[Answer any](ctx context.Context, message string) (answer Answer, err error) {
	in, err := NewInput[Answer](nil)
	if err != nil {
		return answer, fmt.Errorf("the type of an answer: %w", err)
	}
	session, _ := caller(ctx)
	if session == nil || !elicits(session.InitializeParams()) {
		return answer, &UnsupportedError{"elicitation"}
	}
	res, err := session.Elicit(ctx, &mcp.ElicitParams{Message: message, RequestedSchema: flat(in.Schema)})
	switch {
	case err != nil:
		return answer, fmt.Errorf("asking the caller: %w", err)
	case res.Action != "accept":
		return answer, &DeclinedError{res.Action}
	}
	raw, err := json.Marshal(res.Content)
	if err != nil {
		return answer, err
	}
	if res.Content == nil {
		raw = nil
	}
	return in.Decode(raw)
}

// flat is a schema as questions have it: MCP allows an object with properties and required, and no other keyword there.
func flat(s *jsonschema.Schema) *jsonschema.Schema {
	return &jsonschema.Schema{Type: "object", Properties: s.Properties, Required: s.Required, PropertyOrder: s.PropertyOrder}
}

// Sample has the caller's model complete params. The error is an [*UnsupportedError], or that of the context, the
// connection or the client.
func Sample(ctx context.Context, params *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) {
	session, _ := caller(ctx)
	if session == nil || !samples(session.InitializeParams()) {
		return nil, &UnsupportedError{"sampling"}
	}
	res, err := session.CreateMessage(ctx, params)
	if err != nil {
		return nil, fmt.Errorf("asking the caller's model: %w", err)
	}
	return res, nil
}

// withoutRequests is the first revision of MCP in which a server cannot send requests.
const withoutRequests = "2026-07-28"

// CanBeAsked reports whether a client that has initialised so can be asked anything.
func CanBeAsked(p *mcp.InitializeParams) bool { return p == nil || elicits(p) || samples(p) }

func elicits(p *mcp.InitializeParams) bool {
	if p.Capabilities == nil || p.Capabilities.Elicitation == nil || p.ProtocolVersion >= withoutRequests {
		return false
	}
	e := p.Capabilities.Elicitation
	return e.Form != nil || e.URL == nil
}

func samples(p *mcp.InitializeParams) bool {
	return p.Capabilities != nil && p.Capabilities.Sampling != nil && p.ProtocolVersion < withoutRequests
}
