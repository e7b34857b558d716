package gym

import (
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"

	"github.com/openenv-go/openenv-go/pkg/internal/strictjson"
	"github.com/openenv-go/openenv-go/pkg/tools"
)

// An Action is one checked action of a step, from [Class.ParseAction].
type Action struct {
	Kind      ActionKind
	Tool      string          // CallTool: the tool's name
	Arguments json.RawMessage // CallTool: an object, or empty
	own       any             // OwnAction: the author's type
}

// An ActionKind says what an action asks for.
type ActionKind int

const (
	ListTools ActionKind = iota
	CallTool
	OwnAction
)

// toolActions checks the actions of tool environments.
type toolActions struct {
	call, list *tools.Validator
	code       *tools.Validator // nil: no code mode
}

func newToolActions(code bool) (*toolActions, error) {
	var t toolActions
	var errs [3]error
	t.call, errs[0] = tools.NewValidator(callToolAction())
	t.list, errs[1] = tools.NewValidator(listToolsAction())
	if code {
		t.code, errs[2] = tools.NewValidator(executeCodeAction())
	}
	return &t, errors.Join(errs[:]...)
}

// parse reads a tool action; a missing type is call_tool, as in the reference. What is not fine at a glance goes through
// the schema, for errors that name the field.
func (t *toolActions) parse(raw []byte) (Action, error) {
	if a, ok := plainCall(raw); ok {
		return a, nil
	}
	var a struct {
		Type      strictjson.Raw `json:"type"`
		ToolName  string         `json:"tool_name"`
		Arguments strictjson.Raw `json:"arguments"`
	}
	// What does not fit a is found by the schema below, unless it is about the type.
	err := strictjson.Unmarshal(raw, &a)
	typ := "call_tool"
	if a.Type != nil {
		typ, _ = strictjson.String(a.Type)
	}
	switch typ {
	case "call_tool":
		if err := t.call.Validate(raw); err != nil {
			return Action{}, err
		}
		return Action{Kind: CallTool, Tool: a.ToolName, Arguments: json.RawMessage(a.Arguments)}, err
	case "list_tools":
		return Action{Kind: ListTools}, t.list.Validate(raw)
	case CodeTool:
		if t.code != nil {
			return t.parseCode(raw)
		}
	}
	want := `want "call_tool" or "list_tools"`
	if t.code != nil {
		want = `want "call_tool", "list_tools" or "execute_code"`
	}
	return Action{}, fieldError([]any{"type"}, "literal_error", want, a.Type)
}

// parseCode reads an action that runs code: it is a call of that tool, with the arguments beside the type.
func (t *toolActions) parseCode(raw []byte) (Action, error) {
	if err := t.code.Validate(raw); err != nil {
		return Action{}, err
	}
	type arguments struct { // as they were sent: the tool reads them
		Code     strictjson.Raw `json:"code"`
		TimeoutS strictjson.Raw `json:"timeout_s,omitzero"`
	}
	var a struct {
		Type     strictjson.Raw `json:"type"`
		Metadata strictjson.Raw `json:"metadata"`
		arguments
	}
	if err := strictjson.Unmarshal(raw, &a); err != nil {
		return Action{}, err
	}
	args, err := strictjson.Marshal(a.arguments)
	return Action{Kind: CallTool, Tool: CodeTool, Arguments: args}, err
}

// plainCall takes a call that is fine at a glance.
func plainCall(raw []byte) (a Action, ok bool) {
	a.Kind = CallTool
	m, ok := strictjson.MembersOf(raw)
	named := false
	for ok {
		name, value, more := m.Next()
		if !more {
			break
		}
		switch string(name) {
		case "type":
			ok = string(value) == `"call_tool"`
		case "tool_name":
			a.Tool, named = strictjson.String(value)
			ok = named
		case "arguments":
			a.Arguments = json.RawMessage(value)
			ok = value.Kind() == '{'
		case "metadata":
			ok = value.Kind() == '{'
		default:
			ok = false
		}
	}
	return a, ok && named
}

// ResetParams are the checked parameters of a reset, from [Class.ParseReset]. The zero value asks for a new episode
// without a seed or options.
type ResetParams struct {
	Seed      *int64
	EpisodeID string // "": none given
	options   any
}

// maxHTTPEpisodeID is how long an episode id may be over HTTP, in characters; over WebSockets any length passes. (The
// reference's ResetRequest has this bound, its frames have none.)
const maxHTTPEpisodeID = 255

// resetMembers reads seed and episode_id, and leaves the rest as options.
func resetMembers(raw []byte) (p ResetParams, options map[string]strictjson.Raw, err error) {
	if len(raw) == 0 {
		return p, nil, nil
	}
	if strictjson.Raw(raw).Kind() != '{' {
		return p, nil, fieldError(nil, "dict_type", "want an object", raw)
	}
	if err := strictjson.Unmarshal(raw, &options); err != nil {
		return p, nil, fieldError(nil, "value_error", err.Error(), raw)
	}
	if v, ok := options["seed"]; ok && v.Kind() != 'n' {
		n, err := integerOf(v)
		if err != nil {
			return p, nil, err
		}
		p.Seed = &n
	}
	if v, ok := options["episode_id"]; ok && v.Kind() != 'n' {
		if p.EpisodeID, ok = strictjson.String(v); !ok {
			return p, nil, fieldError([]any{"episode_id"}, "string_type", "want a string", v)
		}
	}
	delete(options, "seed")
	delete(options, "episode_id")
	return p, options, nil
}

// integerOf reads a seed. Seeds from the unsigned half of 64 bits are taken by their bits.
func integerOf(v strictjson.Raw) (int64, error) {
	seed := []any{"seed"}
	if v.Kind() != '0' {
		return 0, fieldError(seed, "int_type", "want an integer", v)
	}
	if u, err := strconv.ParseUint(string(v), 10, 64); err == nil && u > math.MaxInt64 {
		return int64(u), nil
	}
	var n int64
	if err := strictjson.UnmarshalIntegers(v, &n); err != nil {
		typ, msg := "int_parsing", "want an integer of at most 64 bits"
		if strings.Contains(string(v), ".") {
			typ, msg = "int_type", "want an integer"
		}
		return 0, fieldError(seed, typ, msg, v)
	}
	return n, nil
}

// bound holds a reset to the limits of HTTP.
func (p ResetParams) bound() error {
	if p.Seed != nil && *p.Seed < 0 {
		return fieldError([]any{"seed"}, "greater_than_equal", "want at least 0", []byte(strconv.FormatInt(*p.Seed, 10)))
	}
	if n := len([]rune(p.EpisodeID)); n > maxHTTPEpisodeID {
		return fieldError([]any{"episode_id"}, "string_too_long", "want at most 255 characters, got "+strconv.Itoa(n), []byte(`"…"`))
	}
	return nil
}

func fieldError(loc []any, typ, msg string, input []byte) error {
	if loc == nil {
		loc = []any{}
	}
	fe := tools.FieldError{Type: typ, Loc: loc, Msg: msg}
	if v, _, err := strictjson.Parse(input); err == nil && len(input) <= 200 {
		fe.Input = v
	}
	return &tools.InputError{Fields: []tools.FieldError{fe}}
}
