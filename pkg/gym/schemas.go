package gym

import (
	"maps"

	"github.com/google/jsonschema-go/jsonschema"
)

// Schemas are what GET /schema publishes. Each accepts what is really sent and received: an observation's schema takes
// the wire's data.observation, with or without reward and done.
type Schemas struct {
	Action           *jsonschema.Schema `json:"action"`
	Observation      *jsonschema.Schema `json:"observation"`
	State            *jsonschema.Schema `json:"state"`
	ResetObservation *jsonschema.Schema `json:"reset_observation"`
}

// stateFields are the members of every state; an environment's own stand beside them.
var stateFields = []string{"episode_id", "step_count", "reward_total", "last_reward", "done"}

func object(title, description string, required []string, props map[string]*jsonschema.Schema) *jsonschema.Schema {
	return &jsonschema.Schema{
		Title: title, Description: description, Type: "object", Properties: props, Required: required,
		AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}},
	}
}

func metadataSchema(of string) *jsonschema.Schema {
	return &jsonschema.Schema{Type: "object", Description: "additional data about the " + of}
}

func rewardSchema() *jsonschema.Schema {
	return &jsonschema.Schema{Types: []string{"number", "boolean", "null"}, Description: "what the step earned"}
}

func doneSchema() *jsonschema.Schema {
	return &jsonschema.Schema{Type: "boolean", Description: "whether the episode is over"}
}

func constant(v string) *jsonschema.Schema {
	return &jsonschema.Schema{Type: "string", Enum: []any{v}}
}

// observationSchema adds to an observation's own fields those that every observation may have.
func observationSchema(own *jsonschema.Schema) *jsonschema.Schema {
	s := own.CloneSchemas()
	if s.Properties == nil {
		s.Properties = map[string]*jsonschema.Schema{}
	}
	if s.Properties["metadata"] == nil {
		s.Properties["metadata"] = metadataSchema("observation")
	}
	s.Properties["reward"], s.Properties["done"] = rewardSchema(), doneSchema()
	return s
}

// emptyObservation is that of a reset without a function of its own.
func emptyObservation() *jsonschema.Schema {
	return observationSchema(object("Observation", "The state of the world after a reset.", nil, nil))
}

func stateSchema(own *jsonschema.Schema) *jsonschema.Schema {
	s := object("State", "The episode as the trainer sees it.", stateFields, map[string]*jsonschema.Schema{
		"episode_id":   {Type: "string", Description: "the episode's id"},
		"step_count":   {Type: "integer", Minimum: new(float64), Description: "steps since the last reset"},
		"reward_total": {Type: "number", Description: "sum of the episode's rewards"},
		"last_reward":  rewardSchema(),
		"done":         doneSchema(),
	})
	if own != nil {
		maps.Copy(s.Properties, own.Properties)
		s.Required = append(append([]string{}, stateFields...), own.Required...)
		s.Defs = own.Defs
	}
	return s
}

func toolName() *jsonschema.Schema {
	return &jsonschema.Schema{Type: "string", Description: "the tool to call"}
}

// callToolAction and listToolsAction are the two actions of a tool environment, each by itself.
func callToolAction() *jsonschema.Schema {
	return object("CallToolAction", "Call a tool.", []string{"tool_name"}, map[string]*jsonschema.Schema{
		"type":      constant("call_tool"),
		"tool_name": toolName(),
		"arguments": {Type: "object", Description: "the tool's arguments"},
		"metadata":  metadataSchema("action"),
	})
}

func listToolsAction() *jsonschema.Schema {
	return object("ListToolsAction", "List the tools.", []string{"type"}, map[string]*jsonschema.Schema{
		"type":     constant("list_tools"),
		"metadata": metadataSchema("action"),
	})
}

// executeCodeAction is the action of code mode, by itself.
func executeCodeAction() *jsonschema.Schema {
	return object("ExecuteCodeAction", "Run code that calls tools.", []string{"type", "code"}, map[string]*jsonschema.Schema{
		"type":      constant(CodeTool),
		"code":      {Type: "string", Description: "the code"},
		"timeout_s": {Types: []string{"number", "null"}, ExclusiveMinimum: new(float64), Description: "seconds that it may take"},
		"metadata":  metadataSchema("action"),
	})
}

// toolAction is the schema that a tool environment publishes. Trainers know such environments by its title.
func toolAction(code bool) *jsonschema.Schema {
	s := callToolAction()
	s.Description = "Call a tool, or list the tools with type list_tools."
	s.Required = nil
	kinds := []any{"call_tool", "list_tools"}
	calls := &jsonschema.Schema{Required: []string{"tool_name"}}
	if code {
		s.Description = "Call a tool, list the tools with type list_tools, or run code with type execute_code."
		kinds = append(kinds, CodeTool)
		own := executeCodeAction().Properties
		s.Properties["code"], s.Properties["timeout_s"] = own["code"], own["timeout_s"]
		calls = &jsonschema.Schema{
			If:   ofType(CodeTool),
			Then: &jsonschema.Schema{Required: []string{"code"}, Not: anyOfMembers("tool_name", "arguments")},
			Else: &jsonschema.Schema{Required: []string{"tool_name"}, Not: anyOfMembers("code", "timeout_s")},
		}
	}
	s.Properties["type"] = &jsonschema.Schema{
		Type: "string", Enum: kinds, Default: []byte(`"call_tool"`), Description: "the kind of action",
	}
	s.If = ofType("list_tools")
	others := []string{"tool_name", "arguments"}
	if code {
		others = append(others, "code", "timeout_s")
	}
	s.Then = &jsonschema.Schema{Not: anyOfMembers(others...)}
	s.Else = calls
	return s
}

// ofType takes actions of a type.
func ofType(kind string) *jsonschema.Schema {
	return &jsonschema.Schema{Required: []string{"type"}, Properties: map[string]*jsonschema.Schema{"type": constant(kind)}}
}

// anyOfMembers takes objects that have any of the members.
func anyOfMembers(names ...string) *jsonschema.Schema {
	s := &jsonschema.Schema{}
	for _, name := range names {
		s.AnyOf = append(s.AnyOf, &jsonschema.Schema{Required: []string{name}})
	}
	return s
}

// toolObservation takes the answers of both tool actions.
func toolObservation() *jsonschema.Schema {
	errorTypes := []any{"execution_error", "invalid_args", "transport_error", "tool_not_found", "timeout"}
	s := observationSchema(object("CallToolObservation", "The answer of a tool call, or the list of tools.", nil, map[string]*jsonschema.Schema{
		"tool_name": toolName(),
		"result": {
			Types: []string{"object", "null"}, Description: "what the tool answered, or null if the call failed",
			Properties: map[string]*jsonschema.Schema{
				"content":            {Type: "array", Items: &jsonschema.Schema{Type: "object"}},
				"structured_content": {Types: []string{"object", "array", "string", "number", "boolean", "null"}},
				"meta":               {Types: []string{"object", "null"}},
				"data":               {Description: "the answer as one value"},
				"is_error":           {Type: "boolean", Description: "whether the tool reports a failure"},
			},
			Required: []string{"content", "structured_content", "meta", "data", "is_error"},
		},
		"error": {
			Types: []string{"object", "null"}, Description: "why the call failed, or null",
			Properties: map[string]*jsonschema.Schema{
				"error_type": {Type: "string", Enum: errorTypes},
				"message":    {Type: "string"},
			},
			Required: []string{"error_type", "message"},
		},
		"tools": {Type: "array", Items: object("Tool", "", []string{"name", "description", "input_schema"}, map[string]*jsonschema.Schema{
			"name": {Type: "string"}, "description": {Type: "string"}, "input_schema": {Type: "object"},
		})},
	}))
	s.AnyOf = []*jsonschema.Schema{{Required: []string{"tool_name", "result", "error"}}, {Required: []string{"tools"}}}
	return s
}
