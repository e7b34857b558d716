package transport

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/openenv-go/openenv-go/pkg/gym"
	"github.com/openenv-go/openenv-go/pkg/internal/strictjson"
	"github.com/openenv-go/openenv-go/pkg/session"
	"github.com/openenv-go/openenv-go/pkg/tools"
)

// POST /reset, POST /step, GET /state: each on a temporary session, or on the one that ?session_id= names.

func (s *Server) postReset(w http.ResponseWriter, r *http.Request) {
	body, err := s.jsonBody(w, r, true)
	var p gym.ResetParams
	if err == nil {
		if p, err = s.class.ParseReset(body, true); err != nil {
			err = underBody(err)
		}
	}
	if err != nil {
		httpError(w, err)
		return
	}
	s.answer(w, r, func(live *session.Session) (gym.Observation, error) { return live.Reset(r.Context(), p, 0) })
}

func (s *Server) postStep(w http.ResponseWriter, r *http.Request) {
	body, err := s.jsonBody(w, r, false)
	var (
		req stepRequest
		a   gym.Action
	)
	if err == nil {
		req, err = parseStep(body)
	}
	if err == nil {
		a, err = s.class.ParseAction(req.action)
	}
	if err != nil {
		httpError(w, err)
		return
	}
	s.answer(w, r, func(live *session.Session) (gym.Observation, error) { return live.Step(r.Context(), a, req.timeout) })
}

func (s *Server) answer(w http.ResponseWriter, r *http.Request, f func(*session.Session) (gym.Observation, error)) {
	var o gym.Observation
	err := s.withSession(r.Context(), r.URL.Query().Get("session_id"), callerOf(r), func(live *session.Session) (err error) {
		o, err = f(live)
		return err
	})
	if err != nil {
		httpError(w, err)
		return
	}
	d := newObservationData(o)
	if d.Metadata == nil {
		d.Metadata = strictjson.Raw("null") // as the reference answers over HTTP
	}
	writeJSON(w, http.StatusOK, d)
}

func (s *Server) getState(w http.ResponseWriter, r *http.Request) {
	var state json.RawMessage
	err := s.withSession(r.Context(), r.URL.Query().Get("session_id"), callerOf(r), func(live *session.Session) (err error) {
		letWatch()
		state, err = live.State(r.Context(), 0)
		return err
	})
	if err != nil {
		httpError(w, err)
		return
	}
	writeJSON(w, http.StatusOK, state)
}

func (s *Server) getHealth(w http.ResponseWriter, _ *http.Request) {
	status, health := http.StatusOK, "healthy"
	if s.sessions.Stopping() {
		status, health = http.StatusServiceUnavailable, "degraded"
	}
	writeJSON(w, status, map[string]string{"status": health})
}

// jsonBody reads and checks a body, which must be an object unless it is optional and empty.
func (s *Server) jsonBody(w http.ResponseWriter, r *http.Request, optional bool) ([]byte, error) {
	body, err := s.readBody(w, r)
	if err != nil {
		return nil, &bodyError{err}
	}
	if len(body) == 0 && optional {
		return nil, nil
	}
	if err := strictjson.Check(body, s.opts.MaxDepth); err != nil {
		return nil, err
	}
	if strictjson.Raw(body).Kind() != '{' {
		return nil, invalid([]any{"body"}, "dict_type", "want an object", body)
	}
	return body, nil
}

// A bodyError is a body that could not be read.
type bodyError struct{ err error }

func (e *bodyError) Error() string { return e.err.Error() }

type stepRequest struct {
	action  []byte
	timeout time.Duration // 0: the server's
}

// maxRequestID is how long a request_id may be, in characters (the reference's StepRequest).
const maxRequestID = 255

// parseStep reads the body of a step; members that it does not know are ignored, as in the reference.
func parseStep(body []byte) (req stepRequest, err error) {
	var b struct {
		Action    strictjson.Raw `json:"action"`
		Timeout   strictjson.Raw `json:"timeout_s"`
		RequestID strictjson.Raw `json:"request_id"`
	}
	if err := strictjson.Unmarshal(body, &b); err != nil {
		return req, invalid([]any{"body"}, "value_error", err.Error(), body)
	}
	switch {
	case b.Action == nil:
		return req, invalid([]any{"body", "action"}, "missing", "field required", body)
	case b.Action.Kind() != '{':
		return req, invalid([]any{"body", "action"}, "dict_type", "want an object", b.Action)
	}
	req.action = b.Action
	under := []any{"body"}
	if req.timeout, err = secondsOf(under, "timeout_s", b.Timeout); err != nil {
		return req, err
	}
	_, err = requestID(under, b.RequestID)
	return req, err
}

// secondsOf reads a member that is a number of seconds more than 0; 0 stands for none. under is where it stands.
func secondsOf(under []any, name string, raw strictjson.Raw) (time.Duration, error) {
	if raw == nil || raw.Kind() == 'n' {
		return 0, nil
	}
	at := append(slices.Clone(under), name)
	var seconds float64
	if raw.Kind() != '0' || strictjson.Unmarshal(raw, &seconds) != nil {
		return 0, invalid(at, "float_type", "want a number of seconds", raw)
	}
	if seconds <= 0 {
		return 0, invalid(at, "greater_than", "want more than 0", raw)
	}
	return max(time.Duration(min(seconds*float64(time.Second), float64(math.MaxInt64/2))), 1), nil
}

// requestID reads request_id, a string; "" stands for none.
func requestID(under []any, raw strictjson.Raw) (string, error) {
	if raw == nil || raw.Kind() == 'n' {
		return "", nil
	}
	at := append(slices.Clone(under), "request_id")
	id, ok := strictjson.String(raw)
	switch {
	case !ok:
		return "", invalid(at, "string_type", "want a string", raw)
	case utf8.RuneCountInString(id) > maxRequestID:
		return "", invalid(at, "string_too_long", fmt.Sprintf("want at most %d characters", maxRequestID), raw)
	}
	return id, nil
}

// underBody puts the locations of an input's faults below "body", where HTTP has them.
func underBody(err error) error {
	var input *tools.InputError
	if !errors.As(err, &input) {
		return err
	}
	out := &tools.InputError{}
	for _, f := range input.Fields {
		f.Loc = slices.Concat([]any{"body"}, f.Loc)
		out.Fields = append(out.Fields, f)
	}
	return out
}

// httpError maps an error to its answer, {"detail": …} as FastAPI has it.
func httpError(w http.ResponseWriter, err error) {
	var (
		syntax  *strictjson.SyntaxError
		input   *tools.InputError
		unread  *bodyError
		timeout *session.TimeoutError
		se      *session.Error
	)
	switch {
	case errors.As(err, &syntax):
		writeJSON(w, http.StatusUnprocessableEntity, map[string]any{"detail": []tools.FieldError{
			{Type: "json_invalid", Loc: []any{"body", syntax.Offset}, Msg: syntax.Error(), Input: map[string]any{}},
		}})
	case errors.As(err, &input):
		writeJSON(w, http.StatusUnprocessableEntity, map[string]any{"detail": input.Fields})
	case errors.As(err, &unread):
		status, message := bodyStatus(unread.err)
		retryLater(w, status)
		writeDetail(w, status, message)
	case errors.As(err, &timeout):
		writeDetail(w, http.StatusGatewayTimeout, err.Error())
	case errors.As(err, &se):
		status := statusOf(err)
		retryLater(w, status)
		writeDetail(w, status, err.Error())
	default:
		writeDetail(w, http.StatusInternalServerError, err.Error())
	}
}

// retryLater says when to come again to who is answered that it cannot be served now.
func retryLater(w http.ResponseWriter, status int) {
	if status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
}

func tooLong(e *http.MaxBytesError) string {
	return fmt.Sprintf("the body is longer than %d bytes, the most that such a request may have", e.Limit)
}

func writeDetail(w http.ResponseWriter, status int, message string) {
	writeJSON(w, status, map[string]string{"detail": message})
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	marshal := strictjson.Marshal
	if status >= http.StatusBadRequest {
		marshal = strictjson.MarshalFault
	}
	b, err := marshal(v)
	if err != nil {
		status, b = http.StatusInternalServerError, []byte(`{"detail":"the answer cannot be written as JSON"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(b)
}

// serveJSON serves a document that does not change.
func serveJSON(doc []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Write(doc)
	}
}
