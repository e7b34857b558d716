package transport

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/openenv-go/openenv-go/pkg/access"
	"github.com/openenv-go/openenv-go/pkg/gym"
	"github.com/openenv-go/openenv-go/pkg/internal/strictjson"
	"github.com/openenv-go/openenv-go/pkg/session"
	"github.com/openenv-go/openenv-go/pkg/tools"
)

// The gym channel: text frames {"type": T, "data": {…}}, one reply to each but close.

// Error codes of the channel (the reference's WSErrorCode, and NotAllowed of our own).
const (
	codeInvalidJSON = "INVALID_JSON"
	codeUnknownType = "UNKNOWN_TYPE"
	codeValidation  = "VALIDATION_ERROR"
	codeExecution   = "EXECUTION_ERROR"
	codeCapacity    = "CAPACITY_REACHED"
	codeFactory     = "FACTORY_ERROR"
	codeSession     = "SESSION_ERROR"
	codeNotAllowed  = "NOT_ALLOWED"
)

type frame struct {
	Type      string `json:"type"`
	Data      any    `json:"data"`
	RequestID string `json:"request_id,omitempty"` // the request's, if it had one
}

// frameSize is what most frames fit in.
const frameSize = 512

// AppendJSON writes the frame.
func (f frame) AppendJSON(b []byte) (_ []byte, err error) {
	b = append(b, `{"type":"`...)
	b = append(b, f.Type...)
	b = append(b, `","data":`...)
	if b, err = strictjson.Append(b, f.Data); err == nil && f.RequestID != "" {
		b = append(b, `,"request_id":`...)
		b, err = strictjson.AppendString(b, f.RequestID)
	}
	return append(b, '}'), err
}

// AppendJSON writes the data without reflection: it goes out at every step.
func (d observationData) AppendJSON(b []byte) (_ []byte, err error) {
	b = append(b, `{"observation":`...)
	if b, err = strictjson.Append(b, d.Observation); err != nil {
		return b, err
	}
	b = append(b, `,"reward":`...)
	if b, err = d.Reward.AppendJSON(b); err != nil {
		return b, err
	}
	b = append(b, `,"done":`...)
	b = strconv.AppendBool(b, d.Done)
	if len(d.Metadata) > 0 {
		b = append(b, `,"metadata":`...)
		b = append(b, d.Metadata...)
	}
	return append(b, '}'), nil
}

// errorData is the data of an error frame.
type errorData struct {
	Message string             `json:"message"`
	Code    string             `json:"code"`
	Errors  []tools.FieldError `json:"errors,omitempty"`
	Active  *int               `json:"active_sessions,omitempty"`
	Max     *int               `json:"max_sessions,omitempty"`
	Factory string             `json:"factory_name,omitempty"`
}

// AppendJSON writes the data, whatever is in its words.
func (d errorData) AppendJSON(b []byte) ([]byte, error) {
	raw, err := strictjson.MarshalFault(d)
	return append(b, raw...), err
}

// observationData is the data of an observation frame, and the answer of POST /reset and /step.
type observationData struct {
	Observation any            `json:"observation"`
	Reward      gym.Reward     `json:"reward"`
	Done        bool           `json:"done"`
	Metadata    strictjson.Raw `json:"metadata,omitempty"`
}

func newObservationData(o gym.Observation) observationData {
	return observationData{o.Fields, o.Reward, o.Done, o.Metadata}
}

func (s *Server) serveWS(w http.ResponseWriter, r *http.Request) {
	s.serveSocket(w, r, func(k *socket) {
		k.origin = session.ByGymSocket
		k.answer, k.refuse = k.answerFrame, func(err error) []byte { return encodeFrame(frameError(err)) }
		k.goodbye = func(text []byte) bool {
			q, err := s.parseFrame(text)
			return err == nil && q.typ == "close"
		}
	})
}

// encodeFrame never fails: what cannot be written becomes an error frame.
func encodeFrame(f frame) []byte {
	b, err := f.AppendJSON(make([]byte, 0, frameSize))
	if err == nil {
		return b
	}
	fault := errorData{Message: "the answer cannot be written as JSON: " + err.Error(), Code: codeExecution}
	b, _ = frame{"error", fault, f.RequestID}.AppendJSON(nil) // which has none but words in it
	return b
}

// frameError maps an error to its frame.
func frameError(err error) frame {
	d := errorData{Message: err.Error(), Code: codeExecution}
	var (
		syntax *strictjson.SyntaxError
		input  *tools.InputError
		refuse *frameRefused
		se     *session.Error
	)
	switch {
	case errors.As(err, &refuse):
		d.Code = refuse.code
	case errors.As(err, &syntax):
		d.Code = codeInvalidJSON
	case errors.As(err, &input):
		d.Code, d.Errors = codeValidation, input.Fields
		d.Message = "Invalid message: " + input.Error()
	case errors.As(err, &se):
		d.Code = codeSession
		switch se.Code {
		case session.CapacityReached:
			d.Code, d.Active, d.Max = codeCapacity, &se.Active, &se.Max
		case session.FactoryFailed:
			d.Code, d.Factory = codeFactory, se.Factory
		}
	}
	return frame{Type: "error", Data: d}
}

// A frameRefused is a frame that is not served, whatever its data.
type frameRefused struct{ code, message string }

func (e *frameRefused) Error() string { return e.message }

// A gymRequest is a frame that has been checked.
type gymRequest struct {
	typ  string
	data strictjson.Raw // nil or an object
	// id and limit are extensions, beside type: the reply repeats the id, and is given again to who sends it again; the
	// deadline takes the server's place.
	id    string
	limit time.Duration
}

// answerFrame answers one text message of the gym channel.
func (k *socket) answerFrame(ctx context.Context, text []byte, reply replyFunc) (here bool) {
	q, err := k.s.parseFrame(text)
	switch {
	case err != nil:
		reply(encodeFrame(k.frameError(err)), false, true)
	case q.typ == "close":
		reply(nil, true, true)
	case q.id != "":
		reply(k.answerOnce(q), false, true)
	case q.typ == "step" && k.caller.Role >= access.Trainer:
		return k.step(ctx, q, reply)
	default:
		reply(k.encodeOutcome(k.serveFrame(ctx, q)), false, true)
	}
	return true
}

// answerOnce answers a request that has an id: it is served once, however often it is sent, and goes on when its socket is
// lost.
func (k *socket) answerOnce(q gymRequest) []byte {
	failed := func(err error) []byte {
		f := k.frameError(err)
		f.RequestID = q.id
		return encodeFrame(f)
	}
	r, err := k.session.Once(k.guest(), q.id, func(ctx context.Context) []byte {
		return k.contained(func() []byte {
			f, err := k.serveFrame(ctx, q)
			if err != nil {
				return failed(err)
			}
			f.RequestID = q.id
			return encodeFrame(f)
		})
	})
	if err != nil {
		return failed(err)
	}
	return r.Wait(k.ctx)
}

// guest tells callers who are no trainers apart; "" for a trainer.
func (k *socket) guest() string {
	if k.caller.Role >= access.Trainer {
		return ""
	}
	return "guest " + k.caller.Name // which is empty where no tokens are asked for
}

func (k *socket) encodeOutcome(f frame, err error) []byte {
	if err != nil {
		f = k.frameError(err)
	}
	return encodeFrame(f)
}

// frameError is the function of that name, and tells the log of a frame that was not served.
func (k *socket) frameError(err error) frame {
	f := frameError(err)
	switch code := f.Data.(errorData).Code; code {
	case codeInvalidJSON, codeUnknownType, codeValidation, codeNotAllowed:
		k.logRefused(code, err)
	}
	return f
}

func (k *socket) step(ctx context.Context, q gymRequest, reply replyFunc) (here bool) {
	a, err := k.s.class.ParseAction(q.data)
	if err != nil {
		reply(encodeFrame(k.frameError(err)), false, true)
		return true
	}
	return k.session.StepThen(ctx, a, q.limit, func(o gym.Observation, err error, here bool) {
		text := k.contained(func() []byte { return k.encodeOutcome(frame{Type: "observation", Data: k.observed(o)}, err) })
		reply(text, false, here)
	})
}

// observed is the data of an observation frame. A client that has asked for the session's id finds it in the first one.
func (k *socket) observed(o gym.Observation) observationData {
	if o.Fields != nil && k.tell.Load() && k.tell.CompareAndSwap(true, false) {
		o.Observed = o.WithMetadata("session_id", k.session.ID)
	}
	return newObservationData(o)
}

func (k *socket) serveFrame(ctx context.Context, q gymRequest) (frame, error) {
	if q.typ != "mcp" && k.caller.Role < access.Trainer {
		return frame{}, &frameRefused{codeNotAllowed, q.typ + " belongs to the trainer: " + k.s.howToControl()}
	}
	switch q.typ {
	case "reset":
		p, err := k.s.class.ParseReset(q.data, false)
		if err != nil {
			return frame{}, err
		}
		o, err := k.session.Reset(ctx, p, q.limit)
		return frame{Type: "observation", Data: k.observed(o)}, err
	case "step":
		a, err := k.s.class.ParseAction(q.data)
		if err != nil {
			return frame{}, err
		}
		o, err := k.session.Step(ctx, a, q.limit)
		return frame{Type: "observation", Data: k.observed(o)}, err
	case "state":
		state, err := k.session.State(ctx, q.limit)
		return frame{Type: "state", Data: strictjson.Raw(state)}, err
	default: // mcp: parseFrame knows no other
		from := k.peer()
		from.limit = q.limit
		reply := k.s.rpcChecked(ctx, q.data, from)
		if reply == nil { // a notification, but every frame has its reply
			reply = rpcNothing
		}
		return frame{Type: "mcp", Data: strictjson.Raw(reply)}, nil
	}
}

// dataRule says what a frame type's data must be.
type dataRule int

const (
	noData dataRule = iota
	optionalData
	requiredData
)

var frameTypes = map[string]dataRule{
	"reset": optionalData, "step": requiredData, "state": noData, "close": noData, "mcp": requiredData,
}

// parseFrame checks a text message and takes it apart.
func (s *Server) parseFrame(text []byte) (q gymRequest, err error) {
	if err := strictjson.Check(text, s.opts.MaxDepth); err != nil {
		return q, err
	}
	if typ, data, ok := plainFrame(text); ok {
		return gymRequest{typ: typ, data: data}, nil
	}
	var f struct {
		Type    strictjson.Raw `json:"type"`
		Data    strictjson.Raw `json:"data"`
		ID      strictjson.Raw `json:"request_id"`
		Timeout strictjson.Raw `json:"timeout_s"`
	}
	known := strictjson.UnmarshalKnown(text, &f)
	if strictjson.Raw(text).Kind() != '{' {
		return q, invalid(nil, "dict_type", "want an object with type and data", text)
	}
	if known != nil { // unknown keys; the type may be fine
		if err := strictjson.Unmarshal(text, &f); err != nil {
			return q, invalid(nil, "value_error", err.Error(), text)
		}
	}
	typ, isString := strictjson.String(f.Type)
	rule, ok := frameTypes[typ]
	switch {
	case !ok || !isString:
		what := "the message has no type"
		if f.Type != nil {
			what = fmt.Sprintf("unknown message type %.100s", f.Type)
		}
		return q, &frameRefused{codeUnknownType, what + "; want reset, step, state, mcp or close"}
	case known != nil:
		return q, extraKeys(text, "type", "data", "request_id", "timeout_s")
	case f.Data == nil && rule == requiredData:
		return q, invalid([]any{"data"}, "missing", "field required", text)
	case f.Data != nil && rule == noData:
		return q, invalid([]any{"data"}, "extra_forbidden", "unknown field", f.Data)
	case f.Data != nil && f.Data.Kind() != '{':
		return q, invalid([]any{"data"}, "dict_type", "want an object", f.Data)
	}
	q = gymRequest{typ: typ, data: f.Data}
	if q.id, err = requestID(nil, f.ID); err == nil {
		q.limit, err = secondsOf(nil, "timeout_s", f.Timeout)
	}
	return q, err
}

// plainFrame takes a frame with data that is fine at a glance.
func plainFrame(text []byte) (typ string, data strictjson.Raw, ok bool) {
	m, ok := strictjson.MembersOf(text)
	for ok {
		name, value, more := m.Next()
		if !more {
			break
		}
		switch string(name) {
		case "type":
			switch string(value) {
			case `"step"`:
				typ = "step"
			case `"mcp"`:
				typ = "mcp"
			default:
				ok = false
			}
		case "data":
			data = value
		default:
			ok = false
		}
	}
	return typ, data, ok && typ != "" && data.Kind() == '{'
}

// extraKeys names the members of a checked object that are not known; nil: there are none.
func extraKeys(object []byte, known ...string) error {
	var members map[string]strictjson.Raw
	if err := strictjson.Unmarshal(object, &members); err != nil {
		return invalid(nil, "value_error", err.Error(), object)
	}
	e := &tools.InputError{}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if !slices.Contains(known, name) && len(e.Fields) < tools.MaxFieldErrors {
			e.Fields = append(e.Fields, fieldError([]any{shorten(name)}, "extra_forbidden", "unknown field", members[name]))
		}
	}
	if len(e.Fields) == 0 {
		return nil
	}
	return e
}

func invalid(loc []any, typ, msg string, input []byte) error {
	return &tools.InputError{Fields: []tools.FieldError{fieldError(loc, typ, msg, input)}}
}

// maxShownInput bounds what an error repeats of its input, in bytes.
const maxShownInput = 200

func shorten(name string) string {
	if len(name) <= maxShownInput {
		return name
	}
	return strings.ToValidUTF8(name[:maxShownInput], "") + "…"
}

func fieldError(loc []any, typ, msg string, input []byte) tools.FieldError {
	if loc == nil {
		loc = []any{}
	}
	fe := tools.FieldError{Type: typ, Loc: loc, Msg: msg, Input: "…"}
	if len(input) <= maxShownInput {
		fe.Input = json.RawMessage(input)
	}
	return fe
}
