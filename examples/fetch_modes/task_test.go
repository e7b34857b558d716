package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/openenv-go/openenv-go/pkg/gym"
	"github.com/openenv-go/openenv-go/pkg/session"
	"github.com/openenv-go/openenv-go/pkg/tools"
	"github.com/openenv-go/openenv-go/pkg/transport"
)

func questions(t *testing.T) []question {
	t.Helper()
	raw, err := testdata.ReadFile("testdata/questions.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []question
	if err := json.Unmarshal(raw, &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// TestFactsAreInThePages: the first answer to each question stands in a page.
func TestFactsAreInThePages(t *testing.T) {
	var text strings.Builder
	for _, at := range museumRecording(t).pages {
		if page, err := replay(t, at, formatText, maxBytes); err == nil {
			text.WriteString(normal(page.Text) + "\n")
		}
	}
	for _, q := range questions(t) {
		if q.Question == "" || len(q.Answers) == 0 || !strings.Contains(text.String(), normal(q.Answers[0])) {
			t.Errorf("%q: %q is in no page", q.Question, q.Answers)
		}
	}
}

func TestAnswersAreCompared(t *testing.T) {
	q := question{Answers: []string{"Tobias Fenn", "9:15"}}
	for text, want := range map[string]bool{
		"tobias  fenn.": true, "The Tobias Fenn": true, "“Tobias Fenn”": true, "9:15": true, "9.15": true,
		"Tobias": false, "Tobias Fenn or Ilse Marrow": false, "915": false, "!": false,
	} {
		if q.rightly(text) != want {
			t.Errorf("%q is right: %v", text, !want)
		}
	}
}

// TestEpisode plays one as a trainer does.
func TestEpisode(t *testing.T) {
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
	play := func(tool string, args any, reward string, done bool) {
		t.Helper()
		action, err := json.Marshal(map[string]any{"type": "call_tool", "tool_name": tool, "arguments": args})
		if err != nil {
			t.Fatal(err)
		}
		parsed, err := class.ParseAction(action)
		if err != nil {
			t.Fatal(err)
		}
		o, err := s.Step(t.Context(), parsed, 0)
		if got := asJSON(t, o.Reward); err != nil || got != reward || o.Done != done {
			t.Errorf("%s %v: reward %s, done %v, %v; want %s, %v", tool, args, got, o.Done, err, reward, done)
		}
	}
	drawn := map[string]bool{}
	for seed := range int64(30) {
		o, err := s.Reset(t.Context(), gym.ResetParams{Seed: &seed}, 0)
		if err != nil {
			t.Fatal(err)
		}
		var task Task
		if err := json.Unmarshal([]byte(asJSON(t, o.Fields)), &task); err != nil {
			t.Fatal(err)
		}
		drawn[task.Question] = true
		at := slices.IndexFunc(questions(t), func(q question) bool { return q.Question == task.Question })
		if at < 0 {
			t.Fatalf("the question is %q", task.Question)
		}
		right := questions(t)[at].Answers[0]
		play("list_pages", struct{}{}, "0", false)
		play("fetch", map[string]string{"url": "http://museum.example/"}, "-0.01", false)
		play("fetch", map[string]string{"url": "http://museum.example/archive"}, "-0.01", false)
		play("fetch", struct{}{}, "0", false)
		play("answer", struct{}{}, "0", false)
		if seed%2 == 0 {
			play("answer", Answer{right}, "1", true)
		} else {
			play("answer", Answer{"no idea"}, "0", true)
		}
		play("answer", Answer{right}, "0", true)
		play("fetch", map[string]string{"url": "http://museum.example/"}, "0", true)
		state, err := s.State(t.Context(), 0)
		if want := fmt.Sprintf(`"question":%s,"answered":true,"fetches":2`, asJSON(t, task.Question)); err != nil || !strings.Contains(string(state), want) {
			t.Errorf("state %s, %v; want %s in it", state, err, want)
		}
	}
	if len(drawn) < 5 {
		t.Errorf("30 seeds draw %d questions", len(drawn))
	}
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// The program's own flag is like the server's: it has a variable, and -help shows it.
func TestFlag(t *testing.T) {
	run := func(variable string, args ...string) (code int, stdout, stderr string, g *guard) {
		ctx, stop := context.WithCancel(t.Context())
		stop()
		g = newGuard(allowList{})
		var out, errs strings.Builder
		getenv := func(name string) string { return map[string]string{"OPENENV_FETCH_ALLOW": variable}[name] }
		code = transport.Run(ctx, environment(g), append([]string{"-addr", "127.0.0.1:0"}, args...), getenv, nil, &out, &errs, g.flags)
		return code, out.String(), errs.String(), g
	}
	for _, c := range []struct{ variable, flag, want string }{
		{"", "-fetch-allow=wiki,127.0.0.1", "wiki,127.0.0.1/32"}, {"10.0.0.0/8", "", "10.0.0.0/8"}, {"10.0.0.0/8", "-fetch-allow=wiki", "wiki"}, {"", "", ""},
	} {
		var args []string
		if c.flag != "" {
			args = append(args, c.flag)
		}
		if code, _, errs, g := run(c.variable, args...); g.allow.String() != c.want {
			t.Errorf("%+v: %s; exit code %d, %s", c, g.allow.String(), code, errs)
		}
	}
	if code, _, errs, _ := run("", "-fetch-allow", "http://x"); code != 2 || !strings.Contains(errs, "want a host, an address or a range") {
		t.Errorf("exit code %d, %s", code, errs)
	}
	if code, out, _, _ := run("", "-help"); code != 0 || !strings.Contains(out, "-fetch-allow") {
		t.Errorf("exit code %d, %s", code, out)
	}
}
