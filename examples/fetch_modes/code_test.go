package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"strings"
	"testing"

	"github.com/openenv-go/openenv-go/pkg/gym"
	"github.com/openenv-go/openenv-go/pkg/session"
	"github.com/openenv-go/openenv-go/pkg/tools"
)

//go:embed search.py
var search string

// TestCode runs search.py in episodes that ask for what it finds, and in others.
func TestCode(t *testing.T) {
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
	asked := map[bool]int{}
	for seed := range int64(12) {
		o, err := s.Reset(t.Context(), gym.ResetParams{Seed: &seed}, 0)
		if err != nil {
			t.Fatal(err)
		}
		right := strings.Contains(asJSON(t, o.Fields), "fog organ")
		asked[right]++
		action, err := class.ParseAction([]byte(asJSON(t, map[string]string{"type": "execute_code", "code": search})))
		if err != nil {
			t.Fatal(err)
		}
		o, err = s.Step(t.Context(), action, 0)
		if err != nil {
			t.Fatal(err)
		}
		var got struct {
			Result struct {
				Data struct {
					Result struct{ Builder, Page string }
					Calls  int `json:"tool_calls"`
				}
				IsError bool `json:"is_error"`
			}
		}
		if err := json.Unmarshal([]byte(asJSON(t, o.Fields)), &got); err != nil {
			t.Fatal(err)
		}
		fetches := got.Result.Data.Calls - 2 // beside list_pages and answer
		reward, _ := o.Reward.Value()
		want := -costOfFetch * float64(fetches)
		if right {
			want += rewardRight
		}
		if got.Result.IsError || got.Result.Data.Result.Builder != "Tobias Fenn" || !o.Done || reward-want > 1e-9 || want-reward > 1e-9 {
			t.Errorf("seed %d: %s, reward %v, want %v", seed, asJSON(t, o), reward, want)
		}
		if e := s.Episode(); e.Steps != 1 {
			t.Errorf("the episode has %d steps, want 1", e.Steps)
		}
	}
	if asked[true] == 0 || asked[false] == 0 {
		t.Errorf("the seeds ask for it %d times, and for other things %d times", asked[true], asked[false])
	}
}
