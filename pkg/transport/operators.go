package transport

import (
	"context"
	"net/http"
	"time"

	"github.com/openenv-go/openenv-go/pkg/internal/strictjson"
	"github.com/openenv-go/openenv-go/pkg/session"
)

// The operators' routes, for callers with the control role: GET /sessions, GET and DELETE /sessions/{id}, and
// POST /sessions/{id}/agents.

// A sessionInfo is a session as operators see it: the reference's five members, and what it says nothing of.
type sessionInfo struct {
	ID           string             `json:"session_id"`
	Created      float64            `json:"created_at"`       // Unix seconds
	LastActivity float64            `json:"last_activity_at"` // Unix seconds
	Steps        int                `json:"step_count"`       // since the session began; no reset sets it back
	Environment  string             `json:"environment_type"`
	State        string             `json:"state"`
	OpenedBy     string             `json:"opened_by"`
	Attachment   session.Attachment `json:"attachment"`
	Sockets      int                `json:"sockets"`
	Agent        bool               `json:"agent"`
	InFlight     []inFlight         `json:"in_flight"`
	Queue        int                `json:"queue_length"`
}

type inFlight struct {
	Call string  `json:"call"`
	Age  float64 `json:"age_s"`
}

func (s *Server) sessionInfo(i session.Info) sessionInfo {
	seconds := func(t time.Time) float64 { return float64(t.UnixMicro()) / 1e6 }
	out := sessionInfo{
		ID: i.ID, Created: seconds(i.Created), LastActivity: seconds(i.LastActivity), Steps: i.Steps,
		Environment: s.class.Metadata.Name, State: i.State, OpenedBy: i.Origin.String(), Attachment: i.Attachment,
		Sockets: i.Sockets, Agent: i.Agent, InFlight: []inFlight{}, Queue: i.Queued,
	}
	for _, r := range i.Running {
		out.InFlight = append(out.InFlight, inFlight{r.What, r.Age.Seconds()})
	}
	return out
}

func (s *Server) listSessions(w http.ResponseWriter, _ *http.Request) {
	list := []sessionInfo{}
	for _, i := range s.sessions.List() {
		list = append(list, s.sessionInfo(i))
	}
	waiting, ahead := s.sessions.Waiting()
	writeJSON(w, http.StatusOK, struct {
		Sessions []sessionInfo `json:"sessions"`
		Active   int           `json:"active_sessions"`
		Max      int           `json:"max_sessions"`
		Ahead    int           `json:"built_ahead"`
		Waiting  int           `json:"waiting"`
	}{list, s.sessions.Active(), s.sessions.Max(), ahead, waiting})
}

func (s *Server) getSession(w http.ResponseWriter, r *http.Request) {
	live, err := s.sessions.Find(r.PathValue("session"))
	if err != nil {
		httpError(w, err)
		return
	}
	writeJSON(w, http.StatusOK, s.sessionInfo(live.Info()))
}

// deleteSession ends a session, whoever holds it.
func (s *Server) deleteSession(w http.ResponseWriter, r *http.Request) {
	live, err := s.sessions.Find(r.PathValue("session"))
	if err != nil {
		httpError(w, err)
		return
	}
	wait, cancel := context.WithTimeout(r.Context(), closeWait)
	defer cancel()
	_ = live.Close(wait, "ended by an operator") // what the environment's Close returned is in the log
	if !live.Ended() {
		writeJSON(w, http.StatusAccepted, map[string]any{"session_id": live.ID, "closed": false, "closing": true})
		return
	}
	writeJSON(w, http.StatusOK, map[string]any{"session_id": live.ID, "closed": true})
}

func (s *Server) postAgents(w http.ResponseWriter, r *http.Request) {
	lasts, err := s.tokenLasts(w, r)
	var minted any
	if err == nil {
		minted, err = s.mintHandle(r.PathValue("session"), peer{caller: callerOf(r), base: s.baseURL(r)}, lasts)
	}
	if err != nil {
		httpError(w, err)
		return
	}
	writeJSON(w, http.StatusCreated, minted)
}

// tokenLasts reads the body of a request for a handle: {"token_s": SECONDS}, or nothing.
func (s *Server) tokenLasts(w http.ResponseWriter, r *http.Request) (time.Duration, error) {
	body, err := s.jsonBody(w, r, true)
	if err != nil || body == nil {
		return 0, err
	}
	var b struct {
		TokenLasts strictjson.Raw `json:"token_s"`
	}
	if err := extraKeys(body, "token_s"); err != nil {
		return 0, underBody(err)
	}
	if err := strictjson.Unmarshal(body, &b); err != nil {
		return 0, invalid([]any{"body"}, "value_error", err.Error(), body)
	}
	return secondsOf([]any{"body"}, "token_s", b.TokenLasts)
}
