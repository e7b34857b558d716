package main

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/openenv-go/openenv-go/pkg/gym"
	"github.com/openenv-go/openenv-go/pkg/gym/gymtest"
	"github.com/openenv-go/openenv-go/pkg/session"
	"github.com/openenv-go/openenv-go/pkg/tools"
)

func TestEnv(t *testing.T) { gymtest.Run(t, Env) }

// TestRewardRule holds the rule that the README states.
func TestRewardRule(t *testing.T) {
	class, err := Env.Compile(t.Context(), tools.ModeSimulation)
	if err != nil {
		t.Fatal(err)
	}
	defer class.Close()
	m := session.NewManager(class, session.Options{})
	defer m.Shutdown(context.Background())
	s, err := m.Open(t.Context(), session.ByCreate, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ action, want string }{
		{`{"type":"call_tool","tool_name":"echo_message","arguments":{"message":"hello"}}`, "0.5"},
		{`{"type":"call_tool","tool_name":"echo_with_length","arguments":{"message":"héllo wörl"}}`, "1"},
		{`{"type":"call_tool","tool_name":"add","arguments":{"a":1,"b":2}}`, "0"},
		{`{"type":"call_tool","tool_name":"echo_message","arguments":{}}`, "0"},
		{`{"type":"call_tool","tool_name":"nosuch","arguments":{}}`, "0"},
		{`{"type":"list_tools"}`, "null"},
	} {
		action, err := class.ParseAction([]byte(c.action))
		if err != nil {
			t.Fatal(err)
		}
		o, err := s.Step(t.Context(), action, 0)
		if err != nil || reward(t, o) != c.want || o.Done {
			t.Errorf("%s: got %s, %v; want %s", c.action, reward(t, o), err, c.want)
		}
	}
	state, err := s.State(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Steps int     `json:"step_count"`
		Last  string  `json:"last_message"`
		Total float64 `json:"reward_total"`
	}
	if err := json.Unmarshal(state, &got); err != nil || got.Steps != 6 || got.Last != "héllo wörl" || got.Total != 1.5 {
		t.Errorf("state %s, %v", state, err)
	}
	if o, err := s.Reset(t.Context(), gym.ResetParams{}, 0); err != nil || reward(t, o) != "null" {
		t.Errorf("reset gave %v, %v", o, err)
	}
	if state, err := s.State(t.Context(), 0); err != nil || !strings.Contains(string(state), `"step_count":0,`) || !strings.Contains(string(state), `"last_message":""`) {
		t.Errorf("after a reset: %s, %v", state, err)
	}
}

func reward(t *testing.T, o gym.Observation) string {
	t.Helper()
	b, err := json.Marshal(o.Reward)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
