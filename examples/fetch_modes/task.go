package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"unicode"

	"github.com/openenv-go/openenv-go/pkg/gym"
	"github.com/openenv-go/openenv-go/pkg/tools"
)

// What a step earns. An answer that is wrong, or comes after the end, earns nothing.
const (
	rewardRight = 1.0
	costOfFetch = 0.01
)

// A question asks for a fact that is in the recorded pages.
type question struct {
	Question string   `json:"question"`
	Answers  []string `json:"answers"` // any of them is right
}

// A task is one episode's: the question, and what has come of it.
type task struct {
	question question
	answered bool
	right    bool // by the answer that ended the episode
	over     bool // answered, in a step that was scored
	fetches  int
}

// Answer is the input of answer.
type Answer struct {
	Text string `json:"text" minLength:"1" maxLength:"500" jsonschema:"the fact alone, not a sentence"`
}

// Task is the observation of a reset.
type Task struct {
	Question string `json:"question"`
}

// State is what the environment adds to the episode's state.
type State struct {
	Question string `json:"question"`
	Answered bool   `json:"answered"`
	Fetches  int    `json:"fetches"`
}

// pick draws a question.
func pick(r *rand.Rand) (question, error) {
	raw, err := testdata.ReadFile("testdata/questions.json")
	if err != nil {
		return question{}, err
	}
	var all []question
	if err := json.Unmarshal(raw, &all); err != nil {
		return question{}, fmt.Errorf("testdata/questions.json: %w", err)
	}
	if len(all) == 0 {
		return question{}, errors.New("testdata/questions.json has no question")
	}
	return all[r.IntN(len(all))], nil
}

// reset draws another question.
func (w *Web) reset(context.Context, gym.ResetRequest[tools.None]) (Task, error) {
	drawn, err := pick(w.s.Rand())
	w.task = task{question: drawn}
	return Task{drawn.Question}, err
}

// state shows the task, as far as it is no secret.
func (w *Web) state() State {
	return State{Question: w.task.question.Question, Answered: w.task.answered, Fetches: w.task.fetches}
}

// answer takes the first answer of an episode. It does not tell whether that is right: rewards are the trainer's.
func (w *Web) answer(_ context.Context, in Answer) (string, error) {
	if w.task.answered {
		return "", tools.Fail("the question has been answered, and the first answer counts")
	}
	w.task.answered, w.task.right = true, w.task.question.rightly(in.Text)
	return "noted", nil
}

// score rewards the right answer, and takes something for each fetch before it, whether a step is one call or code that makes
// several.
func (w *Web) score(_ context.Context, call gym.ToolCall) gym.Score {
	reward := 0.0
	for _, c := range append([]gym.ToolCall{call}, call.Calls...) {
		switch worked := c.Err == nil && !c.Result.IsError; {
		case w.task.over:
		case c.Name == "fetch" && c.Err == nil:
			w.task.fetches++
			reward -= costOfFetch
		case c.Name == "answer" && worked:
			w.task.over = true
			if w.task.right {
				reward += rewardRight
			}
		}
	}
	w.task.over = w.task.answered // also where a step was given up, which scores nothing
	return gym.Score{Reward: gym.Number(reward), Done: w.task.over}
}

// rightly reports whether a text says one of the answers.
func (q question) rightly(text string) bool {
	return slices.ContainsFunc(q.Answers, func(a string) bool { return normal(a) == normal(text) })
}

// normal is a text without what answers differ in that are the same: case, punctuation, spaces and articles.
func normal(text string) string {
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	return strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "a" || w == "an" || w == "the" }), " ")
}
