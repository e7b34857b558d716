package transport

import (
	"bytes"
	_ "embed"
	"html/template"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/openenv-go/openenv-go/pkg/access"
	"github.com/openenv-go/openenv-go/pkg/internal/strictjson"
)

// documents are what the server says about itself, made once.
type documents struct {
	metadata, schema, openapi, page []byte
}

// object is a JSON object under construction.
type object = map[string]any

func (s *face) document() (d documents, err error) {
	if d.metadata, err = strictjson.Marshal(s.class.Metadata); err != nil {
		return d, err
	}
	if d.schema, err = strictjson.Marshal(s.class.Schemas); err != nil {
		return d, err
	}
	if d.openapi, err = strictjson.Marshal(s.openAPI()); err != nil {
		return d, err
	}
	d.page, err = s.docsPage(d.schema, s.class.Tools)
	return d, err
}

// A route is one HTTP operation as the OpenAPI document and the page have it.
type route struct {
	Method, Path, Summary, Description string
	simulation                         bool // served in simulation mode only
	body                               object
	bodyOptional                       bool
	examples                           object   // of bodies
	ok                                 object   // schema of the answer to success
	session                            bool     // takes ?session_id=
	operators                          bool     // served on the control listener only
	named                              bool     // the path names a session
	open                               bool     // asks nobody for a token
	parameters                         []object // further ones
	errors                             []string // besides those of everyRoute
	fault                              object   // schema of the errors; nil: Error
	status                             []string // of a success; none: 200
	answers                            object   // by status, those that are not as the rest says
}

func ref(name string) object { return object{"$ref": "#/components/schemas/" + name} }

func (s *face) routeList() []route {
	onSession, withBody := []string{"404", "409", "500", "503", "504"}, []string{"408", "413", "415", "422"}
	all := []route{
		{Method: "post", Path: "/reset", Summary: "Begin an episode", simulation: true, session: true,
			Description: "Begins an episode and returns its first observation. Members other than seed and episode_id are options of the environment.",
			body:        ref("ResetRequest"), bodyOptional: true, ok: ref("ResetResponse"), errors: slices.Concat(onSession, withBody)},
		{Method: "post", Path: "/step", Summary: "Take a step", simulation: true, session: true,
			Description: "Takes one step and returns its observation, reward and whether the episode is over.",
			body:        ref("StepRequest"), ok: ref("StepResponse"), errors: slices.Concat(onSession, withBody)},
		{Method: "get", Path: "/state", Summary: "Read the state", simulation: true, session: true,
			Description: "Returns the episode's counters and the environment's own state.",
			ok:          ref("State"), errors: onSession},
		{Method: "get", Path: "/health", open: true, Summary: "Probe the server", Description: "Says whether the server is well.", ok: ref("Health"),
			answers: object{"503": object{"description": "The server is stopping.", "content": jsonContent(ref("Health"))}}},
		{Method: "get", Path: "/metadata", open: true, Summary: "Read the metadata", Description: "Says what the environment is.", ok: ref("Metadata")},
		{Method: "get", Path: "/schema", open: true, Summary: "Read the schemas", Description: "Returns the JSON Schemas of action, observation, reset observation and state.", ok: ref("Schemas")},
		{Method: "get", Path: "/sessions", Summary: "List the sessions", operators: true, Description: "Lists all sessions, the oldest first.", ok: ref("Sessions"), errors: []string{"503"}},
		{Method: "get", Path: "/sessions/{session}", Summary: "Look at a session", operators: true, named: true,
			Description: "Says what a session does and who holds it.", ok: ref("Session"), errors: []string{"404", "503"}},
		{Method: "delete", Path: "/sessions/{session}", Summary: "End a session", operators: true, named: true,
			Description: "Ends a session, whoever holds it.", ok: ref("Closed"), status: []string{"200", "202"}, errors: []string{"404", "503"}},
		{Method: "post", Path: "/sessions/{session}/agents", Summary: "Let an agent in", operators: true, named: true,
			Description: "Mints a handle that opens the session's tools and nothing else.",
			body:        ref("HandleRequest"), bodyOptional: true, ok: ref("Handle"), status: []string{"201"}, errors: slices.Concat([]string{"404", "409", "503"}, withBody)},
	}
	all = slices.Concat(all, mcpRoutes(), []route{gymSocketRoute()})
	return slices.DeleteFunc(all, func(r route) bool {
		return r.simulation && s.shows < access.Trainer || r.operators && s.shows < access.Control
	})
}

// errorMeanings are the statuses of errors.
var errorMeanings = map[string]string{
	"400": "The query or the body cannot be read, or a header asks for what is not served.",
	"401": "The server asks for a token.",
	"403": "The Host is not one of the server's, the request comes from a web page of another origin, or the token does not allow it.",
	"404": "No session has that id, or the route is not for this caller.",
	"405": "The method needs what the request lacks.",
	"406": "The Accept header excludes the answer.",
	"408": "The body did not arrive in time.",
	"409": "The session is being built, is held by another, or has minted all the handles it may.",
	"413": "The body is too long.",
	"415": "The body has a Content-Type or a Content-Encoding that is not served.",
	"422": "The request does not fit its schema.",
	"426": "The request is no WebSocket handshake.",
	"429": "Too many requests; try again.",
	"500": "The environment failed.",
	"503": "Every session is in use, the server is stopping, or the token cannot be checked now; try again.",
	"504": "The environment did not answer in time.",
}

// errorHeaders are those that come with an error.
var errorHeaders = map[string]object{
	"401": header("WWW-Authenticate", "What token to send."),
	"405": header("Allow", "The methods that need less."),
	"426": header("Upgrade", "What to ask for: websocket."),
	"429": header("Retry-After", "Seconds after which to try again."),
	"503": header("Retry-After", "Seconds after which to try again."),
}

func header(name, description string) object {
	return object{name: object{"description": description, "required": true, "schema": object{"type": "string"}}}
}

// openAPI is the OpenAPI 3.1 document, with the routes of the server's mode.
func (s *face) openAPI() object {
	paths := object{}
	for _, r := range s.routeList() {
		op := object{"summary": r.Summary, "description": r.Description, "operationId": r.operation(), "responses": responses(r, s.everyRoute(r))}
		if s.guarded() && !r.open {
			op["security"] = []object{{"token": []string{}}}
		}
		if r.body != nil {
			content := jsonContent(r.body)
			if r.examples != nil {
				content["application/json"].(object)["examples"] = r.examples
			}
			op["requestBody"] = object{"required": !r.bodyOptional, "content": content}
		}
		if parameters := r.allParameters(); len(parameters) > 0 {
			op["parameters"] = parameters
		}
		item, ok := paths[r.Path].(object)
		if !ok {
			item = object{}
			paths[r.Path] = item
		}
		item[r.Method] = op
	}
	components := object{"schemas": s.components()}
	if s.guarded() {
		components["securitySchemes"] = object{"token": object{"type": "http", "scheme": "bearer"}}
	}
	return object{
		"openapi": "3.1.0",
		"info": object{
			"title": s.class.Metadata.Name, "version": s.class.Metadata.Version,
			"description": "An environment served by openenv-go in " + string(s.opts.Mode) + " mode. " + s.class.Metadata.Description,
		},
		"paths":      paths,
		"components": components,
	}
}

// everyRoute are the errors that a route has for whatever it does.
func (s *face) everyRoute(r route) []string {
	all := []string{"400", "403"}
	switch {
	case !s.guarded() || r.open:
	case r.least() <= s.everyone():
		all = append(all, "401")
	default: // it is absent for those without a token
		all = append(all, "404")
	}
	if s.opts.RequestsPerSecond > 0 {
		all = append(all, "429")
	}
	if r.Method != "post" { // a body that is passed over
		all = append(all, "408", "413")
	}
	return all
}

// least is the role that a route asks for.
func (r *route) least() access.Role {
	switch {
	case r.operators:
		return access.Control
	case r.simulation:
		return access.Trainer
	}
	return access.Agent
}

func (r *route) operation() string {
	return r.Method + "_" + strings.NewReplacer("/", "_", "{", "", "}", "").Replace(r.Path[1:])
}

func (r *route) allParameters() []object {
	all := slices.Clone(r.parameters)
	if r.session {
		all = append(all, parameter("query", "session_id", "A live session; without it a temporary one serves the call.", object{"type": "string"}))
	}
	if r.named {
		all = append(all, required(parameter("path", "session", "The session's id.", object{"type": "string"})))
	}
	return all
}

func parameter(in, name, description string, schema object) object {
	return object{"in": in, "name": name, "description": description, "required": false, "schema": schema}
}

func required(parameter object) object {
	parameter["required"] = true
	return parameter
}

func responses(r route, errors []string) object {
	out := object{}
	if r.status == nil && r.ok != nil {
		r.status = []string{"200"}
	}
	for _, status := range r.status {
		out[status] = object{"description": "The answer.", "content": jsonContent(r.ok)}
	}
	if r.fault == nil {
		r.fault = ref("Error")
	}
	for _, status := range slices.Concat(errors, r.errors) {
		schema := r.fault
		if status == "422" {
			schema = ref("ValidationError")
		}
		answer := object{"description": errorMeanings[status], "content": jsonContent(schema)}
		if headers := errorHeaders[status]; headers != nil {
			answer["headers"] = headers
		}
		out[status] = answer
	}
	maps.Copy(out, r.answers)
	return out
}

func jsonContent(schema object) object {
	return object{"application/json": object{"schema": schema}}
}

func (s *face) components() object {
	text, nullableText := object{"type": "string"}, object{"type": []string{"string", "null"}}
	reward := object{"type": []string{"number", "boolean", "null"}}
	response := func(observation object) object {
		return object{"type": "object", "required": []string{"observation", "reward", "done", "metadata"}, "properties": object{
			"observation": observation, "reward": reward, "done": object{"type": "boolean"}, "metadata": object{"type": []string{"object", "null"}},
		}}
	}
	out := object{
		"Error": object{"type": "object", "required": []string{"detail"}, "properties": object{"detail": text}},
		"ValidationError": object{"type": "object", "required": []string{"detail"}, "properties": object{"detail": object{
			"type": "array", "items": object{"type": "object", "required": []string{"type", "loc", "msg"}, "properties": object{
				"type": text, "loc": object{"type": "array", "items": object{"type": []string{"string", "integer"}}}, "msg": text, "input": object{},
			}},
		}}},
		"Health": object{"type": "object", "required": []string{"status"}, "properties": object{
			"status": object{"type": "string", "enum": []string{"healthy", "degraded", "unhealthy"}},
		}},
		"Metadata": object{"type": "object", "required": []string{"name", "description"}, "properties": object{
			"name": text, "description": text, "version": text, "readme_content": nullableText, "author": nullableText, "documentation_url": nullableText,
		}},
		"Schemas": object{"type": "object", "required": []string{"action", "observation", "state"}, "properties": object{
			"action": object{"type": "object"}, "observation": object{"type": "object"}, "state": object{"type": "object"}, "reset_observation": object{"type": "object"},
		}},
	}
	maps.Copy(out, rpcSchemas())
	if s.shows >= access.Trainer {
		maps.Copy(out, object{
			"Action":           s.class.Schemas.Action,
			"Observation":      s.class.Schemas.Observation,
			"ResetObservation": s.class.Schemas.ResetObservation,
			"State":            s.class.Schemas.State,
			"ResetRequest": object{"type": "object", "properties": object{
				"seed":       object{"type": []string{"integer", "null"}, "minimum": 0},
				"episode_id": object{"type": []string{"string", "null"}, "maxLength": 255},
			}},
			"StepRequest": object{"type": "object", "required": []string{"action"}, "properties": object{
				"action":     ref("Action"),
				"timeout_s":  object{"type": []string{"number", "null"}, "exclusiveMinimum": 0},
				"request_id": object{"type": []string{"string", "null"}, "maxLength": maxRequestID},
			}},
			"ResetResponse": response(ref("ResetObservation")),
			"StepResponse":  response(ref("Observation")),
		})
	}
	if s.shows >= access.Control {
		integer, boolean, number := object{"type": "integer"}, object{"type": "boolean"}, object{"type": "number"}
		maps.Copy(out, object{
			"Session": object{"type": "object", "properties": object{
				"session_id": text, "created_at": number, "last_activity_at": number, "step_count": integer, "environment_type": text,
				"state": text, "opened_by": text, "attachment": text, "sockets": integer, "agent": boolean, "queue_length": integer,
				"in_flight": object{"type": "array", "items": object{"type": "object", "properties": object{"call": text, "age_s": number}}},
			}},
			"Sessions": object{"type": "object", "properties": object{
				"sessions": object{"type": "array", "items": ref("Session")}, "active_sessions": integer, "max_sessions": integer,
				"built_ahead": integer, "waiting": integer,
			}},
			"Closed": object{"type": "object", "properties": object{"session_id": text, "closed": boolean, "closing": boolean}},
			"HandleRequest": object{"type": "object", "additionalProperties": false, "properties": object{
				"token_s": object{"type": []string{"number", "null"}, "exclusiveMinimum": 0, "description": "How long the handle's token is to last."},
			}},
			"Handle": object{"type": "object", "required": []string{"handle", "url"}, "properties": object{"handle": text, "url": text, "token": text, "expires_at": integer}},
		})
	}
	return out
}

//go:embed docs.html
var docsHTML string

var docsTemplate = template.Must(template.New("docs").Parse(docsHTML))

// docsPage renders the page of GET /docs. It needs nothing from elsewhere, so it works offline.
func (s *face) docsPage(schemas []byte, list []*mcp.Tool) ([]byte, error) {
	indented := strictjson.Raw(slices.Clone(schemas))
	if err := indented.Indent(); err != nil {
		return nil, err
	}
	type tool struct{ Name, Description, Input string }
	var shown []tool
	for _, t := range list {
		input, err := strictjson.Marshal(t.InputSchema)
		if err != nil {
			return nil, err
		}
		shown = append(shown, tool{t.Name, t.Description, string(input)})
	}
	var page bytes.Buffer
	err := docsTemplate.Execute(&page, map[string]any{
		"Tools": shown, "Meta": s.class.Metadata, "Mode": s.opts.Mode, "Routes": s.routeList(), "Schemas": string(indented), "Simulation": s.shows >= access.Trainer,
	})
	return page.Bytes(), err
}

func (s *face) getDocs(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
	w.Write(s.docs.page)
}
