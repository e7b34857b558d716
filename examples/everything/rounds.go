//lint:file-ignore SA1019 A tool may still ask for sampling and roots, which 2026-07-28 deprecates.

package main

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A tool asks by rounds when it answers a call with questions: the client calls again, with the answers. This is how
// revision 2026-07-28 has it. For clients of older ones the SDK asks the questions itself and calls the tool again, once.

var (
	elicitation = &mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapabilities{}}
	sampling    = &mcp.ClientCapabilities{Sampling: &mcp.SamplingCapabilities{}}
	roots       = &mcp.ClientCapabilities{RootsV2: &mcp.RootCapabilities{}}
	all         = &mcp.ClientCapabilities{Elicitation: elicitation.Elicitation, Sampling: sampling.Sampling, RootsV2: roots.RootsV2}
)

func (e *Everything) addRounds() {
	e.add("test_input_required_result_elicitation", "Ask for a name, and greet.", greet)
	e.add("test_streaming_elicitation", "Ask for a name, and greet.", greet)
	e.add("test_input_required_result_sampling", "Ask the client's model for a capital.", capital)
	e.add("test_input_required_result_list_roots", "Ask for the client's roots, and count them.", countRoots)
	e.add("test_input_required_result_request_state", "Ask to confirm, and know the question again.", e.confirm)
	e.add("test_input_required_result_tampered_state", "Ask to confirm, and refuse a state that was changed.", e.confirm)
	e.add("test_input_required_result_multiple_inputs", "Ask the person, the model and the client at once.", e.askAll)
	e.add("test_input_required_result_multi_round", "Ask for a name, then for a colour.", e.askTwice)
	e.add("test_input_required_result_capabilities", "Ask what the client can be asked.", askWhatItCan)
	e.add("test_missing_capability", "Need a client with sampling.", func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return text("this client has it"), need(req, sampling)
	})
}

// ask is a result that asks. What is in state comes back with the answers.
func ask(state string, questions mcp.InputRequestMap) *mcp.CallToolResult {
	return &mcp.CallToolResult{InputRequests: questions, RequestState: state}
}

// form asks the person for one field.
func form(message, field, typ string) *mcp.ElicitParams {
	return &mcp.ElicitParams{Mode: "form", Message: message, RequestedSchema: map[string]any{
		"type":       "object",
		"properties": map[string]any{field: map[string]any{"type": typ}},
		"required":   []string{field},
	}}
}

// filled is the field of a form that came back. An answer that does not fit is no answer: the tool asks again.
func filled[T any](answers mcp.InputResponseMap, question, field string) (value T, ok bool) {
	answer, ok := answers[question].(*mcp.ElicitResult)
	if !ok || answer.Action != "accept" {
		return value, false
	}
	value, ok = answer.Content[field].(T)
	return value, ok
}

func greet(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	if name, ok := filled[string](req.Params.InputResponses, "user_name", "name"); ok {
		return text("Good morning, " + name + "."), nil
	}
	return ask("", mcp.InputRequestMap{"user_name": form("Who is there?", "name", "string")}), need(req, elicitation)
}

func capital(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	if said, ok := modelSaid(req.Params.InputResponses["capital_question"]); ok {
		return text("the model says: " + said), nil
	}
	return ask("", mcp.InputRequestMap{"capital_question": question("Which city is the capital of France?")}), need(req, sampling)
}

// question asks the client's model.
func question(words string) *mcp.CreateMessageParams {
	return &mcp.CreateMessageParams{
		MaxTokens: 100,
		Messages:  []*mcp.SamplingMessage{{Role: "user", Content: &mcp.TextContent{Text: words}}},
	}
}

func modelSaid(answer mcp.InputResponse) (string, bool) {
	message, ok := answer.(*mcp.CreateMessageWithToolsResult)
	if !ok || len(message.Content) == 0 {
		return "", false
	}
	words, ok := message.Content[0].(*mcp.TextContent)
	if !ok {
		return "", false
	}
	return words.Text, true
}

func countRoots(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	if list, ok := req.Params.InputResponses["client_roots"].(*mcp.ListRootsResult); ok {
		return text(fmt.Sprintf("roots: %d", len(list.Roots))), nil
	}
	return ask("", mcp.InputRequestMap{"client_roots": &mcp.ListRootsParams{}}), need(req, roots)
}

// confirm gives its question a state, and takes an answer only with that state.
func (e *Everything) confirm(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	if _, ok := filled[bool](req.Params.InputResponses, "confirm", "ok"); ok {
		if err := e.verify(req.Params.RequestState, "confirm"); err != nil {
			return nil, err
		}
		return text("state-ok"), nil
	}
	return ask(e.sign("confirm"), mcp.InputRequestMap{"confirm": form("Shall I?", "ok", "boolean")}), need(req, elicitation)
}

func (e *Everything) askAll(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	answers := req.Params.InputResponses
	name, named := filled[string](answers, "user_name", "name")
	greeting, greeted := modelSaid(answers["greeting"])
	list, listed := answers["client_roots"].(*mcp.ListRootsResult)
	if named && greeted && listed {
		if err := e.verify(req.Params.RequestState, "all"); err != nil {
			return nil, err
		}
		return text(fmt.Sprintf("%s %s, roots: %d", greeting, name, len(list.Roots))), nil
	}
	return ask(e.sign("all"), mcp.InputRequestMap{
		"user_name":    form("Who is there?", "name", "string"),
		"greeting":     question("How does one greet?"),
		"client_roots": &mcp.ListRootsParams{},
	}), need(req, all)
}

// askTwice keeps in the state how far it is, so that the server need not remember.
func (e *Everything) askTwice(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	answers, state := req.Params.InputResponses, req.Params.RequestState
	if colour, ok := filled[string](answers, "step2", "color"); ok && e.verify(state, "step2") == nil {
		return text("you like " + colour), nil
	}
	if name, ok := filled[string](answers, "step1", "name"); ok && e.verify(state, "step1") == nil {
		return ask(e.sign("step2"), mcp.InputRequestMap{"step2": form("Which colour do you like, "+name+"?", "color", "string")}), nil
	}
	return ask(e.sign("step1"), mcp.InputRequestMap{"step1": form("Who is there?", "name", "string")}), need(req, elicitation)
}

func askWhatItCan(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	if len(req.Params.InputResponses) > 0 {
		return text(fmt.Sprintf("answers: %d", len(req.Params.InputResponses))), nil
	}
	questions := mcp.InputRequestMap{}
	if need(req, elicitation) == nil {
		questions["user_name"] = form("Who is there?", "name", "string")
	}
	if need(req, sampling) == nil {
		questions["greeting"] = question("How does one greet?")
	}
	if len(questions) == 0 {
		return nil, need(req, all)
	}
	return ask("", questions), nil
}

// sign makes a state that only this session can have made.
func (e *Everything) sign(state string) string {
	mac := hmac.New(sha256.New, e.key)
	mac.Write([]byte(state))
	return state + "." + hex.EncodeToString(mac.Sum(nil))
}

// verify refuses any state but the one that sign made of want.
func (e *Everything) verify(state, want string) error {
	if !hmac.Equal([]byte(state), []byte(e.sign(want))) {
		name, _, _ := strings.Cut(state, ".")
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("requestState %.20q is not what this tool gave out", name)}
	}
	return nil
}
