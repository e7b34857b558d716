package gym

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/sync/semaphore"

	"github.com/openenv-go/openenv-go/pkg/internal/strictjson"
	"github.com/openenv-go/openenv-go/pkg/tools"
)

// An Instance is one environment value and its episode. The methods that say so are called in the session's turn: they
// must not overlap.
type Instance struct {
	class       *Class
	session     *Session
	env         any
	host        *host
	ownHost     bool
	links       []*link // to the mounted servers that are this session's own; empty: none
	seed        func() uint64
	toolTimeout time.Duration       // of calls that code makes
	scoring     *semaphore.Weighted // held while After runs: concurrent tools share their turn

	player    *tools.Player    // where it is in what it replays
	recording *tools.Recording // of its calls

	mu      sync.Mutex // guards what follows
	episode Episode
	closed  bool
}

// An Episode is what the trainer's counters say between two resets.
type Episode struct {
	ID          string
	Steps       int
	RewardTotal float64
	LastReward  Reward // of the last step
	Done        bool   // sticky until the next reset
}

func newEpisodeID() string { return rand.Text() }

func (i *Instance) ownServer(ctx context.Context) error {
	server, err := guard(i.session.log, "Server", func() (*mcp.Server, error) { return i.class.hooks.server(i.env), nil })
	if err != nil {
		return err
	}
	if server == nil {
		return errors.New("the environment's Server function returned nil")
	}
	if !i.class.first(server) {
		return errors.New("the environment's Server function returned the same server for two values; build one for each, in New")
	}
	if i.class.coder != nil { // before a client could be told that there is one tool more
		if err := i.class.coder.tool().Register(server, i.class.Mode); err != nil {
			return err
		}
	}
	h, err := newHost(ctx, server, nil)
	if err != nil {
		return err
	}
	i.host, i.ownHost = h, true
	return nil
}

// Close releases the environment value: once, after the last call has returned. A panic of Close is an error.
func (i *Instance) Close() error {
	i.mu.Lock()
	was := i.closed
	i.closed = true
	i.mu.Unlock()
	if was {
		return nil
	}
	if i.ownHost {
		i.host.close()
	}
	if err := closeLinks(i.links); err != nil {
		i.session.log.Warn("closing a mounted server failed", "event", "mount_close", "error", err)
	}
	_, err := guard(i.session.log, "Close", func() (struct{}, error) { return struct{}{}, i.class.hooks.close(i.env) })
	return err
}

// Traits are those of a tool; zero for an unknown one, and for the tools of a value's own server.
func (i *Instance) Traits(tool string) tools.Traits {
	if i.class.coder.is(tool) {
		return i.class.coder.traits()
	}
	return i.host.tools[tool]
}

// Connect opens an SDK session on the instance's server, for an MCP client behind t. Its requests pass gate.
func (i *Instance) Connect(ctx context.Context, t mcp.Transport, gate Gate) (*mcp.ServerSession, error) {
	return i.host.server.Connect(WithGate(ctx, gate), t, nil)
}

// Server is the SDK server that the instance's tools are on.
func (i *Instance) Server() *mcp.Server { return i.host.server }

// OwnServer reports whether the value has an SDK server of its own, so that more than its tools is the author's code.
func (i *Instance) OwnServer() bool { return i.ownHost }

// Episode returns the counters. It may be called at any time.
func (i *Instance) Episode() Episode {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.episode
}

// Count enters one answered step into the episode and returns the counters after it. It may be called at any time.
func (i *Instance) Count(s Score) Episode {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.episode.Steps++
	i.session.steps.Store(int64(i.episode.Steps))
	v, _ := s.Reward.Value()
	// Finite rewards can have an infinite sum, which is not JSON.
	i.episode.RewardTotal = max(-math.MaxFloat64, min(math.MaxFloat64, i.episode.RewardTotal+v))
	i.episode.LastReward = s.Reward
	i.episode.Done = i.episode.Done || s.Done
	return i.episode
}

// An Observation is the answer to a step or a reset.
type Observation struct {
	Observed
	Reward Reward
	Done   bool
}

// A ToolAnswer is what a tool call came to: Err, or Result and Data.
type ToolAnswer struct {
	Tool   string
	Result *mcp.CallToolResult
	Data   json.RawMessage // the result as one value; see [tools.Data]
	Err    *tools.Error

	spec *mcp.Tool // what was called, as it is published; nil: no tool
}

// CallTool runs a tool and then After, in the session's turn, which calls of concurrent tools may share. scoreErr reports
// an After that panicked or scored NaN; the answer stands all the same. req.Session is the SDK session that carried the
// request, or nil. The counters are left to the caller, who knows whether the answer is still awaited.
func (i *Instance) CallTool(ctx context.Context, req *mcp.CallToolRequest) (a ToolAnswer, score Score, scoreErr error) {
	sent := req.Params.Arguments // an author's middleware may change the request
	var made []ToolCall
	if i.class.coder.is(req.Params.Name) {
		runs, run := i.withCodeRun(ctx)
		a = i.runTool(runs, req)
		made = run.calls
	} else {
		a = i.runTool(ctx, req)
	}
	timeout := a.Err != nil && a.Err.Type == tools.Timeout // a replayed one
	if i.class.hooks.after == nil || ctx.Err() != nil || timeout {
		return a, score, nil
	}
	if !i.scoring.TryAcquire(1) && i.scoring.Acquire(ctx, 1) != nil {
		return a, score, nil // the time is up
	}
	defer i.scoring.Release(1)
	call := ToolCall{Name: a.Tool, Arguments: sent, Result: a.Result, Err: a.Err, Calls: made}
	score, scoreErr = guard(i.session.log, "After", func() (Score, error) {
		s := i.class.hooks.after(ctx, i.env, call)
		return s, s.Reward.check()
	})
	if scoreErr != nil {
		score.Reward = Reward{}
	}
	return a, score, scoreErr
}

// shortened keeps a name that cannot be a tool's from being repeated at length.
func shortened(name string) string {
	const longest = 128 // MCP's limit
	if len(name) <= longest {
		return name
	}
	return strings.ToValidUTF8(name[:longest], "") + "…"
}

func (i *Instance) runTool(ctx context.Context, req *mcp.CallToolRequest) ToolAnswer {
	a := ToolAnswer{Tool: shortened(req.Params.Name)}
	if len(i.links) > 0 {
		ctx = context.WithValue(ctx, linksKey{}, i.links)
	}
	ctx = tools.WithPlayer(tools.WithEnvironment(ctx, i.env), i.player)
	if a.spec, a.Result, a.Err = i.host.call(ctx, req, i.session.log); a.Err != nil {
		if m, ok := i.class.ElsewhereOnly(a.Tool); ok && a.Err.Type == tools.ToolNotFound {
			i.session.log.Info("tool exists in the other mode only", "event", "tool_other_mode", "tool", a.Tool, "mode", m)
		}
		return a
	}
	// What an author's types do when they are written as JSON is the author's code too, and what they refer to may change
	// in the next call.
	var err error
	if !tools.Frozen(a.Result) {
		a.Result, err = guard(i.session.log, fmt.Sprintf("tool %q", a.Tool), func() (*mcp.CallToolResult, error) { return tools.Freeze(a.Result) })
	}
	if err == nil {
		a.Data, err = tools.Data(a.Result)
	}
	if err != nil {
		a.Result, a.Err = nil, logged(ctx, i.session.log, tools.AsError(a.Tool, err))
	}
	return a
}

// Record enters a call into the recording, if there is one: a tool's name, the arguments as they
// came, and what the caller is told. It is called in the order of the answers, at any time. Code is not recorded: the calls
// that it makes are.
func (i *Instance) Record(tool string, args []byte, a ToolAnswer) {
	if i.recording == nil || i.class.coder.is(tool) {
		return
	}
	spec := a.spec
	if spec == nil {
		spec = i.host.spec(tool)
	}
	if spec == nil {
		return
	}
	if err := i.recording.Call(spec, args, a.Result, a.Err); err != nil {
		i.session.log.Error("recording has stopped", "event", "record_error", "tool", spec.Name, "error", err)
	}
}

// Observation is the answer in the form of the gym channel, without reward and done.
func (a ToolAnswer) Observation() Observed {
	o := callObservation{ToolName: a.Tool}
	if a.Err != nil {
		o.Error = &callFault{a.Err.Type, a.Err.Message}
	} else {
		r := a.Wire()
		o.Result = &r
	}
	return Observed{Fields: o}
}

// Wire is the answer's result as OpenEnv's clients read it. Err must be nil.
func (a ToolAnswer) Wire() WireResult {
	data := strictjson.Raw(a.Data)
	if text, ok := tools.FailureText(a.Result); ok { // which is its data, too
		data, _ = strictjson.Marshal(text)
	}
	content := a.Result.Content
	if content == nil {
		content = []mcp.Content{}
	}
	r := WireResult{content, a.Result.StructuredContent, nil, data, a.Result.IsError}
	if len(a.Result.Meta) > 0 {
		r.Meta = a.Result.Meta
	}
	return r
}

// A WireResult is a tool's result in OpenEnv's spelling (FastMCP's CallToolResult).
type WireResult struct {
	Content           []mcp.Content  `json:"content"`
	StructuredContent any            `json:"structured_content"`
	Meta              any            `json:"meta"` // an object or null
	Data              strictjson.Raw `json:"data"`
	IsError           bool           `json:"is_error"`
}

type callObservation struct {
	Metadata struct{}    `json:"metadata"`
	ToolName string      `json:"tool_name"`
	Result   *WireResult `json:"result"`
	Error    *callFault  `json:"error"`
}

// AppendJSON writes the observation without reflection: it goes out at every step.
func (o callObservation) AppendJSON(b []byte) (_ []byte, err error) {
	b = append(b, `{"metadata":{},"tool_name":`...)
	if b, err = strictjson.AppendString(b, o.ToolName); err != nil {
		return b, err
	}
	b = append(b, `,"result":`...)
	if o.Result == nil {
		b = append(b, "null"...)
	} else if b, err = o.Result.AppendJSON(b); err != nil {
		return b, err
	}
	b = append(b, `,"error":`...)
	if o.Error == nil {
		b = append(b, "null"...)
	} else if b, err = strictjson.Append(b, o.Error); err != nil {
		return b, err
	}
	return append(b, '}'), nil
}

// AppendJSON writes the result without reflection.
func (r *WireResult) AppendJSON(b []byte) (_ []byte, err error) {
	b = slices.Grow(b, 3*len(r.Data)) // as its content, its structured content and its data
	value, _ := r.StructuredContent.(tools.Structured)
	b = append(b, `{"content":[`...)
	for i, c := range r.Content {
		if i > 0 {
			b = append(b, ',')
		}
		if t, ok := c.(*mcp.TextContent); ok && t != nil && t.Meta == nil && t.Annotations == nil {
			b = append(b, `{"type":"text","text":`...)
			b, err = value.AppendText(b, t.Text)
			b = append(b, '}')
		} else {
			b, err = strictjson.Append(b, c)
		}
		if err != nil {
			return b, err
		}
	}
	b = append(b, `],"structured_content":`...)
	if b, err = strictjson.Append(b, r.StructuredContent); err != nil {
		return b, err
	}
	b = append(b, `,"meta":`...)
	if m, ok := r.Meta.(mcp.Meta); ok && tools.IsWrapMeta(m) {
		b = append(b, tools.WrapMetaJSON...)
	} else if b, err = strictjson.Append(b, r.Meta); err != nil {
		return b, err
	}
	b = append(b, `,"data":`...)
	if r.Data == nil {
		b = append(b, "null"...)
	}
	b = append(b, r.Data...)
	b = append(b, `,"is_error":`...)
	b = strconv.AppendBool(b, r.IsError)
	return append(b, '}'), nil
}

type callFault struct {
	Type    tools.ErrorType `json:"error_type"`
	Message string          `json:"message"`
}

// ListTools lists the instance's tools. It may be called at any time.
func (i *Instance) ListTools(ctx context.Context) ([]*mcp.Tool, error) { return i.host.list(ctx) }

// ListObservation is a listing, or its failure, in the form of the gym channel.
func ListObservation(list []*mcp.Tool, err error) Observed {
	type tool struct {
		Name        string `json:"name"`
		Description string `json:"description"`
		InputSchema any    `json:"input_schema"`
	}
	out := struct {
		Metadata any    `json:"metadata"`
		Tools    []tool `json:"tools"`
	}{Metadata: struct{}{}}
	for _, t := range list {
		out.Tools = append(out.Tools, tool{t.Name, t.Description, t.InputSchema})
	}
	if err == nil {
		return Observed{Fields: out}
	}
	meta, _ := strictjson.MarshalFault(map[string]string{"error": err.Error(), "error_type": "list_tools_failed"})
	out.Metadata = strictjson.Raw(meta)
	return Observed{Fields: out, Metadata: meta}
}

// Reset begins a new episode, in the session's turn: the counters start again and Rand is seeded before the author's
// function runs, whatever it returns.
func (i *Instance) Reset(ctx context.Context, p ResetParams) (Observation, error) {
	if p.EpisodeID == "" {
		p.EpisodeID = newEpisodeID()
	}
	if p.Seed != nil {
		i.session.source.seed(uint64(*p.Seed), seedStream)
	} else {
		i.session.source.seed(i.seed(), i.seed())
	}
	i.mu.Lock()
	i.episode = Episode{ID: p.EpisodeID}
	i.session.steps.Store(0)
	i.mu.Unlock()
	i.player.Rewind()
	i.recording.Reset()
	if err := renewLinks(ctx, i.links); err != nil {
		i.logFailure(ctx, "reset", err)
		return Observation{}, err
	}
	if i.class.hooks.reset == nil {
		return Observation{Observed: Observed{Fields: strictjson.Raw(`{"metadata":{}}`)}}, nil
	}
	o, err := guard(i.session.log, "Reset", func() (*Observed, error) { return i.class.hooks.reset(ctx, i.env, p) })
	if err != nil {
		i.logFailure(ctx, "reset", err)
		return Observation{}, err
	}
	return Observation{Observed: *o}, nil
}

// seedStream is the second half of PCG's seed for seeded episodes; any constant will do, but it is part of what a seed
// means and must not change.
const seedStream = 0x6f70656e656e7600

// Act runs the environment's own action, in the session's turn. An *[tools.InputError] says that it was refused and is no
// step. The counters are left to the caller.
func (i *Instance) Act(ctx context.Context, a Action) (Observed, Score, error) {
	var score Score
	o, err := guard(i.session.log, "Act", func() (o *Observed, err error) {
		if o, score, err = i.class.hooks.act(ctx, i.env, a.own); err != nil {
			return nil, err
		}
		return o, score.Reward.check()
	})
	if err != nil {
		i.logFailure(ctx, "step", err)
		return Observed{}, Score{}, err
	}
	return *o, score, nil
}

// logFailure tells the operator of a failure of the environment, unless it is the caller's fault or told already.
func (i *Instance) logFailure(ctx context.Context, call string, err error) {
	var (
		input    *tools.InputError
		panicked *PanicError
	)
	if !errors.As(err, &input) && !errors.As(err, &panicked) {
		i.session.log.Log(ctx, faultLevel(ctx), "environment failed", "event", "env_error", "call", call, "error", err)
	}
}

// State is the state as the wire has it, in the session's turn.
func (i *Instance) State(context.Context) (json.RawMessage, error) {
	var own []byte
	if i.class.hooks.state != nil {
		var err error
		own, err = guard(i.session.log, "State", func() ([]byte, error) { return i.class.hooks.state(i.env) })
		if err != nil {
			return nil, err
		}
	}
	e := i.Episode()
	b, err := strictjson.Marshal(struct {
		EpisodeID   string  `json:"episode_id"`
		StepCount   int     `json:"step_count"`
		RewardTotal float64 `json:"reward_total"`
		LastReward  Reward  `json:"last_reward"`
		Done        bool    `json:"done"`
	}{e.ID, e.Steps, e.RewardTotal, e.LastReward, e.Done})
	if err == nil && len(own) > len(`{}`) {
		b, err = extend(b, own)
	}
	return b, err
}
