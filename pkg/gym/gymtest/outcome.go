package gymtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/openenv-go/openenv-go/pkg/gym"
)

// An outcome is what a step came to, the same for all spellings of it.
type outcome struct {
	Result      *result  // of a tool
	Error       *failure // why there is none
	Observation any      // of an action of the environment's own type
	Episode     episode  // after the step
}

type result struct {
	Content    any
	Structured any
	Meta       any
	IsError    bool
}

type failure struct{ Type, Message string }

// An episode is what the trainer may know of it, as the server counts.
type episode struct {
	Steps       int
	RewardTotal float64
	LastReward  string
	Done        bool
}

func episodeOf(e gym.Episode) episode {
	return episode{e.Steps, e.RewardTotal, jsonOf(e.LastReward), e.Done}
}

// errorType is the type of a step's error, or "".
func (o outcome) errorType() string {
	if o.Error == nil {
		return ""
	}
	return o.Error.Type
}

// observed is data of an observation frame, or the body of POST /step.
type observed struct {
	Observation json.RawMessage `json:"observation"`
	Reward      json.RawMessage `json:"reward"`
	Done        bool            `json:"done"`
}

// readObservation reads the answer of a step on the gym channel and over POST /step.
func readObservation(st step, raw json.RawMessage) (o outcome, err error) {
	var d observed
	if err := json.Unmarshal(raw, &d); err != nil {
		return o, fmt.Errorf("%w in %s", err, clip(string(raw)))
	}
	if st.own() {
		return o, json.Unmarshal(d.Observation, &o.Observation)
	}
	var call struct {
		Result *struct {
			Content    any  `json:"content"`
			Structured any  `json:"structured_content"`
			Meta       any  `json:"meta"`
			IsError    bool `json:"is_error"`
		} `json:"result"`
		Error *struct {
			Type    string `json:"error_type"`
			Message string `json:"message"`
		} `json:"error"`
	}
	if err := json.Unmarshal(d.Observation, &call); err != nil {
		return o, fmt.Errorf("%w in %s", err, clip(string(raw)))
	}
	if r := call.Result; r != nil {
		o.Result = &result{r.Content, r.Structured, r.Meta, r.IsError}
	}
	if e := call.Error; e != nil {
		o.Error = &failure{e.Type, e.Message}
	}
	if (o.Result == nil) == (o.Error == nil) {
		return o, fmt.Errorf("neither a result nor an error: %s", clip(string(raw)))
	}
	return o, nil
}

// readFrame reads the answer of a step frame.
func readFrame(st step, f frame) (outcome, error) {
	if f.Type == "observation" {
		return readObservation(st, f.Data)
	}
	var e struct{ Code, Message string }
	_ = json.Unmarshal(f.Data, &e)
	if st.own() && (e.Code == validationError || e.Code == executionError) {
		return outcome{Error: &failure{Type: e.Code}}, nil // its words are the door's own
	}
	return outcome{}, fmt.Errorf("the step was answered by a frame of type %s: %s", f.Type, clip(string(f.Data)))
}

const (
	validationError = "VALIDATION_ERROR"
	executionError  = "EXECUTION_ERROR"
)

// readStepReply reads the answer of POST /step.
func readStepReply(st step, status int, reply []byte) (outcome, error) {
	switch {
	case status == http.StatusOK:
		return readObservation(st, reply)
	case st.own() && status == http.StatusUnprocessableEntity:
		return outcome{Error: &failure{Type: validationError}}, nil
	case st.own() && (status == http.StatusInternalServerError || status == http.StatusGatewayTimeout):
		return outcome{Error: &failure{Type: executionError}}, nil
	}
	return outcome{}, fmt.Errorf("status %d: %s", status, clip(string(reply)))
}

// readRPC reads the answer of tools/call in JSON-RPC without a handshake.
func readRPC(raw []byte) (outcome, error) {
	var r struct {
		Result *struct {
			Content    any  `json:"content"`
			Structured any  `json:"structured_content"`
			Meta       any  `json:"meta"`
			IsError    bool `json:"is_error"`
		} `json:"result"`
		Error *struct {
			Message string `json:"message"`
			Data    struct {
				Type string `json:"error_type"`
			} `json:"data"`
		} `json:"error"`
	}
	if err := json.Unmarshal(raw, &r); err != nil {
		return outcome{}, fmt.Errorf("%w in %s", err, clip(string(raw)))
	}
	switch {
	case r.Result != nil:
		return outcome{Result: &result{r.Result.Content, r.Result.Structured, r.Result.Meta, r.Result.IsError}}, nil
	case r.Error != nil && r.Error.Data.Type != "":
		return outcome{Error: &failure{r.Error.Data.Type, r.Error.Message}}, nil
	}
	return outcome{}, fmt.Errorf("the call was answered by %s", clip(string(raw)))
}

// readMCP reads what the SDK's client returned.
func readMCP(res *mcp.CallToolResult, err error) (outcome, error) {
	var re *jsonrpc.Error
	if errors.As(err, &re) {
		var data struct {
			Type string `json:"error_type"`
		}
		if json.Unmarshal(re.Data, &data) == nil && data.Type != "" {
			return outcome{Error: &failure{data.Type, re.Message}}, nil
		}
	}
	if err != nil {
		return outcome{}, err
	}
	if typ, ok := res.Meta["openenv/error_type"].(string); ok {
		message := ""
		if len(res.Content) > 0 {
			if t, ok := res.Content[0].(*mcp.TextContent); ok {
				message = t.Text
			}
		}
		return outcome{Error: &failure{typ, message}}, nil
	}
	r := &result{Content: tree(res.Content), Structured: tree(res.StructuredContent), IsError: res.IsError}
	if len(res.Meta) > 0 {
		r.Meta = tree(res.Meta)
	}
	return outcome{Result: r}, nil
}
