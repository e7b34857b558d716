package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/openenv-go/openenv-go/pkg/internal/strictjson"
)

// A Replayed is a function that answers from a cassette; [Replay] makes it, and it has no other use than as an argument of
// [Simulation].
type Replayed[E, In, Out any] func(E, context.Context, In) (Out, error)

// An asking is the context with which a Replayed is asked what it replays.
type asking struct {
	context.Context
	cassette *Cassette
}

func (f Replayed[E, In, Out]) cassette() *Cassette {
	var env E
	var in In
	p := &asking{Context: context.Background()}
	_, _ = f(env, p, in)
	return p.cassette
}

// Replay has a tool answer in simulation as it did when it was recorded:
//
//	tools.Modes("fetch", "Fetch a page.",
//		tools.Simulation(tools.Replay(cassette, (*Fetch).live)), tools.Production((*Fetch).live))
//
// live gives the types and is never called. A call is matched by the tool's name and its arguments, with defaults filled
// in and without what is secret; see [Cassette.Free] and [Cassette.Strict] for the order. The position is the session's, and
// begins again with each reset. A call that the recording cannot answer is a failed one, with a [*NotRecordedError] or a
// [*DivergenceError], which tells the caller of the call that came, and the log of the one that was recorded, too. A secret in what is returned has the zero value of its type.
//
// That the cassette cannot be read, or that a value in it is not an Out, is an error when the tool's set is registered.
func Replay[E, In, Out any](c *Cassette, live func(E, context.Context, In) (Out, error)) Replayed[E, In, Out] {
	return func(_ E, ctx context.Context, _ In) (out Out, err error) {
		if p, ok := ctx.(*asking); ok {
			p.cassette = c
			return out, nil
		}
		req, _ := ctx.Value(requestKey{}).(*mcp.CallToolRequest)
		player, _ := ctx.Value(playerKey{}).(*Player)
		if req == nil || player == nil {
			return out, errors.New("a replay was called outside of a session")
		}
		tool := req.Params.Name
		e, err := player.play(tool, req.Params.Arguments)
		if err != nil {
			message := err.Error()
			if d, ok := errors.AsType[*DivergenceError](err); ok {
				message = d.told()
			}
			return out, &Error{Type: ExecutionError, Tool: tool, Message: message, Refused: true, Err: err}
		}
		return answerIn[Out](e, player.replays.tracks[e.Tool])
	}
}

// answerIn is what the recorded function returned.
func answerIn[Out any](e *entry, t *track) (out Out, err error) {
	if e.Failure != nil {
		return out, Fail(*e.Failure)
	}
	if e.Error != nil {
		return out, e.failed()
	}
	if whole, ok := any(&out).(**mcp.CallToolResult); ok {
		*whole, err = wholeResult(e)
		return out, err
	}
	if reflect.TypeFor[Out]() == reflect.TypeFor[None]() {
		return out, nil
	}
	value, err := e.value()
	if err != nil {
		return out, err
	}
	if value, _, err = t.withoutSecrets(value); err != nil {
		return out, err
	}
	if err := strictjson.Unmarshal(value, &out); err != nil {
		return out, fmt.Errorf("the recorded value does not fit the type %s: %w", reflect.TypeFor[Out](), err)
	}
	return out, nil
}

// value is the one value that the line has for a typed function.
func (e *entry) value() (strictjson.Raw, error) {
	if e.Value != nil {
		return e.Value, nil
	}
	res, err := parseResult(e.Result)
	if err != nil {
		return nil, err
	}
	if res.IsError {
		if t, ok := FailureText(res); ok {
			return nil, Fail(t)
		}
		return nil, errors.New("the recorded result is a failure without a text")
	}
	data, err := Data(res)
	return strictjson.Raw(data), err
}

// wholeResult is the line's result for a function that returns one.
func wholeResult(e *entry) (*mcp.CallToolResult, error) {
	if e.Value == nil {
		return parseResult(e.Result)
	}
	return resultOf(e.Value, textOf(e.Value), e.Value.Kind() != '{'), nil
}

// parseResult reads a result as MCP spells it, with its numbers as they are.
func parseResult(raw []byte) (*mcp.CallToolResult, error) {
	res := &mcp.CallToolResult{}
	if err := json.Unmarshal(raw, res); err != nil {
		return nil, err
	}
	return res, keepNumbers(raw, res)
}

// A track is a tool's part of a cassette.
type track struct {
	tool     string
	cassette *Cassette
	in, out  *secrets
	wrapped  bool                   // out speaks of the value as the member result of an object
	complete func(strictjson.Value) // fills in defaults
	keys     map[*entry]string      // what a call must be to be answered by the entry
	answers  map[string][]*entry    // by key: the first entry that is an nth of its episode, by n
}

// newTrack reads a tool's part of a cassette, and holds what is recorded to the tool's types.
func newTrack[In, Out any](c *Cassette, in *Input[In], spec *mcp.Tool, answer func(Out) (*mcp.CallToolResult, error)) (*track, error) {
	if err := c.Err(); err != nil {
		return nil, err
	}
	if _, _, err := infer(reflect.TypeFor[Out](), inward); !isWhole[Out]() && err != nil {
		return nil, fmt.Errorf("the output type cannot be replayed: %w", err)
	}
	t := &track{
		tool: spec.Name, cassette: c, complete: func(v strictjson.Value) { in.defaults.fill(v) },
		keys: map[*entry]string{}, answers: map[string][]*entry{},
	}
	var err error
	if t.in, err = newSecrets(in.Schema); err != nil {
		return nil, err
	}
	if t.out, err = newSecrets(spec.OutputSchema); err != nil {
		return nil, err
	}
	if s, ok := spec.OutputSchema.(*jsonschema.Schema); ok {
		t.wrapped = s.Extra[wrapKeyword] == true
	}
	nth := map[string]int{}
	for _, e := range c.tape.entries {
		if e.Tool != t.tool {
			continue
		}
		key, err := t.key(e.Arguments, &memory{})
		if err == nil {
			err = verify(e, t, answer)
		}
		if err != nil {
			return nil, &CassetteError{Name: c.tape.name, Line: e.line, Err: err}
		}
		t.keys[e] = key
		ordinal := fmt.Sprint(e.run, " ", e.Session, " ", e.Episode, " ", key)
		if nth[ordinal]++; nth[ordinal] > len(t.answers[key]) {
			t.answers[key] = append(t.answers[key], e)
		}
	}
	return t, nil
}

func isWhole[Out any]() bool {
	return reflect.TypeFor[Out]() == reflect.TypeFor[*mcp.CallToolResult]()
}

// verify holds an entry to what it comes to when it is replayed: a value that does not survive its own type would be
// another one.
func verify[Out any](e *entry, t *track, answer func(Out) (*mcp.CallToolResult, error)) error {
	out, err := answerIn[Out](e, t)
	var failure *Failure
	var failed *Error
	switch {
	case errors.As(err, &failure), errors.As(err, &failed):
		return nil
	case err != nil:
		return err
	}
	res, err := answer(out)
	if err != nil {
		return fmt.Errorf("the recorded value cannot be returned again: %w", err)
	}
	s, typed := res.StructuredContent.(Structured)
	if !typed || e.Value == nil || t.out.any {
		return nil
	}
	if _, marked, err := t.withoutSecrets(e.Value); err != nil || marked {
		return err
	}
	was, err := canonical(e.Value)
	if err != nil {
		return nil // with numbers that nobody looks at
	}
	if now, err := canonical(s.Value); err != nil || !bytes.Equal(was, now) {
		return fmt.Errorf("the recorded value %.200s would come back as %.200s from the type %s", was, now, reflect.TypeFor[Out]())
	}
	return nil
}

func canonical(raw []byte) ([]byte, error) {
	v, _, err := strictjson.Parse(raw)
	if err != nil {
		return nil, err
	}
	return appendCanonical(nil, v)
}

// withoutSecrets leaves out the marks, which need not fit the types of what was there, and reports whether it did.
func (t *track) withoutSecrets(value strictjson.Raw) (strictjson.Raw, bool, error) {
	if !t.out.any && !bytes.Contains(value, []byte(`"`+secretMark+`"`)) {
		return value, false, nil
	}
	v, _, err := strictjson.Parse(value)
	if err != nil {
		return nil, false, err
	}
	if t.wrapped {
		v = map[string]any{"result": v}
	}
	v, marked := t.out.empty(v)
	if object, ok := v.(map[string]any); ok && t.wrapped {
		v = object["result"]
	}
	out, err := strictjson.Marshal(v)
	return out, marked, err
}

// key is the form in which arguments are compared: without secrets and what repeats them, with defaults, canonical.
func (t *track) key(args []byte, m *memory) (string, error) {
	v, _, err := strictjson.Parse(argumentsOf(args))
	if err != nil {
		return "", err
	}
	v, texts := t.in.take(v, true)
	v = scrub(v, m.with(texts), t.in.names)
	t.complete(v)
	b, err := appendCanonical(nil, v)
	return string(b), err
}

// A NotRecordedError is a call that no recorded one answers.
type NotRecordedError struct {
	Tool      string
	Arguments json.RawMessage // as they are compared: without what is secret
	Recorded  int             // with how many other arguments the tool was recorded
}

func (e *NotRecordedError) Error() string {
	if e.Recorded == 0 {
		return fmt.Sprintf("the recording has no call of tool %q; record one", e.Tool)
	}
	return fmt.Sprintf("the recording has no call of tool %q with the arguments %s; call it as it was recorded, or record this call",
		e.Tool, cut(string(e.Arguments), maxShownInput))
}

// A DivergenceError is a call that is not the next one of the recorded episode.
type DivergenceError struct {
	Tool      string
	Arguments json.RawMessage // as they are compared: without what is secret
	// Expected is the recorded call that should have come, and ExpectedArguments what with; "": the recorded episode is over.
	Expected          string
	ExpectedArguments json.RawMessage
	Line              int // of the cassette: where Expected stands, or the last call of the episode that is over; 0: it has no call
}

func (e *DivergenceError) Error() string {
	came := fmt.Sprintf("tool %q with %s", e.Tool, cut(string(e.Arguments), maxShownInput))
	switch {
	case e.Line == 0:
		return "the call diverges from the recording, which has no calls: got " + came
	case e.Expected == "":
		return fmt.Sprintf("the call diverges from the recording: the recorded episode is over (line %d), got %s; reset to begin again", e.Line, came)
	}
	return fmt.Sprintf("the call diverges from the recording (line %d): want tool %q with %s, got %s",
		e.Line, e.Expected, cut(string(e.ExpectedArguments), maxShownInput), came)
}

// told is the error for the caller. What was recorded is not for it: a policy would do as it is told.
func (e *DivergenceError) told() string {
	if e.Expected == "" {
		return e.Error()
	}
	return fmt.Sprintf("the call diverges from the recording (line %d): tool %q with %s was not recorded here; the server's log has what was",
		e.Line, e.Tool, cut(string(e.Arguments), maxShownInput))
}

// Replays are the tools of a set that are replayed. Nil: none. Safe for concurrent use.
type Replays struct {
	tracks map[string]*track // by tool
	reels  map[*tape]*reel   // of those that are in strict order
}

// A reel is the calls of a tape by recorded episode, those of replayed tools alone.
type reel struct{ episodes [][]*entry }

func newReplays(tracks []*track) *Replays {
	if len(tracks) == 0 {
		return nil
	}
	r := &Replays{tracks: map[string]*track{}, reels: map[*tape]*reel{}}
	for _, t := range tracks {
		r.tracks[t.tool] = t
	}
	for _, t := range tracks {
		if tape := t.cassette.tape; t.cassette.strict && r.reels[tape] == nil {
			r.reels[tape] = r.reel(tape)
		}
	}
	return r
}

// reel gathers the episodes of a tape, in the order of their first calls.
func (r *Replays) reel(tape *tape) *reel {
	out := &reel{}
	at := map[[3]int]int{}
	for _, e := range tape.entries {
		if t := r.tracks[e.Tool]; t == nil || !t.cassette.strict || t.cassette.tape != tape {
			continue
		}
		id := [3]int{e.run, e.Session, e.Episode}
		i, ok := at[id]
		if !ok {
			i = len(out.episodes)
			at[id] = i
			out.episodes = append(out.episodes, nil)
		}
		out.episodes[i] = append(out.episodes[i], e)
	}
	return out
}

// replayed lists tools, for messages.
func (r *Replays) replayed() string {
	return strings.Join(slices.Sorted(maps.Keys(r.tracks)), ", ")
}

// Recordable reports a recorder whose file these tools replay: what they replay would be added to it.
func (r *Replays) Recordable(to *Recorder) error {
	if r == nil || to == nil || to.file == nil {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(r.tracks)) {
		if t := r.tracks[name].cassette.tape; t.file != nil && os.SameFile(t.file, to.file) {
			return &CassetteError{Name: t.name, Err: fmt.Errorf(
				"tool %q replays it in this mode, so it cannot be recorded into; record with -mode production, or into another file", name)}
		}
	}
	return nil
}
