package gym

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"runtime"
	"runtime/debug"
	"sync"
	"weak"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/sync/semaphore"

	"github.com/openenv-go/openenv-go/pkg/internal/strictjson"
	"github.com/openenv-go/openenv-go/pkg/tools"
)

// A Definition is an [Environment] of any type.
type Definition interface {
	Compile(ctx context.Context, mode tools.Mode) (*Class, error)
}

// Metadata is what GET /metadata publishes.
type Metadata struct {
	Name        string  `json:"name"`
	Description string  `json:"description"`
	Readme      *string `json:"readme_content"`
	Version     string  `json:"version"`
	Author      *string `json:"author"`
	DocsURL     *string `json:"documentation_url"`
}

// A Class is a compiled environment: what all its sessions share. Its fields do not change. Safe for concurrent use.
type Class struct {
	Metadata Metadata
	Mode     tools.Mode
	Schemas  Schemas

	// Exclusive says that there may be one instance at a time.
	Exclusive bool

	// Stateless says that a value may serve a single call of an MCP client that keeps no session.
	Stateless bool

	// Tools are listed where no session is at hand. A value that brings a server of its own may have others.
	Tools []*mcp.Tool

	clock    Clock
	replays  *tools.Replays  // the tools of the set that are replayed
	recorder *tools.Recorder // see RecordTo
	coder    *coder          // nil: no code mode
	mounts   *mounts         // other MCP servers whose tools shared has
	shared   *host           // the SDK server of all sessions; nil where each value brings its own
	actions  *toolActions
	hooks    hooks
	servers  sync.Map // weak.Pointer[mcp.Server] → true: those of values that brought their own, until they are collected
	release  func()   // closes what Compile opened
}

// hooks are an environment's functions with the type of its value erased. open makes that value; all others are given
// what open returned. Nil where the environment has none, save open and close.
type hooks struct {
	open         func(context.Context, *Session) (any, error)
	server       func(any) *mcp.Server
	parseOptions func(raw []byte) (any, error)
	reset        func(context.Context, any, ResetParams) (*Observed, error)
	parseAction  func(raw []byte) (any, error)
	act          func(context.Context, any, any) (*Observed, Score, error)
	state        func(any) ([]byte, error)
	after        func(context.Context, any, ToolCall) Score
	close        func(any) error
	elsewhere    func(tool string) (tools.Mode, bool)
}

// Compile checks the environment for mode and makes its class. Faults in it are returned together, worded for its
// author. ctx bounds what is built at once: for an environment with a Server, one value to list its tools from; for one
// with Mounts, a connection to each.
func (e Environment[E]) Compile(ctx context.Context, mode tools.Mode) (*Class, error) {
	if err := e.check(); err != nil {
		return nil, fmt.Errorf("the environment %s: %w", cmp.Or(e.Name, "without a name"), err)
	}
	c := &Class{
		Metadata: Metadata{
			Name: e.Name, Description: e.Description, Version: e.Version,
			Readme: optional(e.Readme), Author: optional(e.Author), DocsURL: optional(e.DocsURL),
		},
		Mode:      mode,
		Exclusive: e.Exclusive,
		Stateless: e.Stateless,
		clock:     e.Clock,
		release:   func() {},
	}
	if c.Metadata.Version == "" {
		c.Metadata.Version = "0.0.0"
	}
	if err := errors.Join(e.compileFunctions(c), e.compileTools(ctx, c)); err != nil {
		c.Close()
		return nil, fmt.Errorf("the environment %s: %w", e.Name, err)
	}
	return c, nil
}

func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func (e Environment[E]) check() error {
	var errs []error
	if e.Name == "" {
		errs = append(errs, errors.New("it needs a Name"))
	}
	if e.New == nil {
		errs = append(errs, errors.New("it needs a New function"))
	}
	if err := e.Clock.check(); err != nil {
		errs = append(errs, err)
	}
	if e.Tools != nil && e.Server != nil {
		errs = append(errs, errors.New("it has both Tools and a Server; add the tools to the server, or drop one"))
	}
	if len(e.Mounts) > 0 && e.Server != nil {
		errs = append(errs, errors.New("it has both Mounts and a Server; serve the tools of the Server as Tools, or mount it too"))
	}
	errs = append(errs, checkMounts(e.Mounts))
	if e.After != nil && e.Tools == nil && e.Server == nil && len(e.Mounts) == 0 {
		errs = append(errs, errors.New("it has an After, which follows tool calls, and no tools; Act returns its own score"))
	}
	if e.Tools == nil && e.Server == nil && e.Act.build == nil && len(e.Mounts) == 0 {
		errs = append(errs, errors.New("it has nothing to call: set Tools, Mounts, Server or Act"))
	}
	return errors.Join(errs...)
}

// compileFunctions fills the hooks and schemas that come from Reset, Act and State.
func (e Environment[E]) compileFunctions(c *Class) error {
	h := &c.hooks
	h.open = func(ctx context.Context, s *Session) (any, error) {
		env, err := e.New(ctx, s)
		if v := reflect.ValueOf(&env).Elem(); err == nil && (v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface) && v.IsNil() {
			err = errors.New("its New function returned nil")
		}
		return env, err
	}
	h.close = func(any) error { return nil }
	if e.Close != nil {
		h.close = func(env any) error { return e.Close(env.(E)) }
	}
	if e.After != nil {
		h.after = func(ctx context.Context, env any, call ToolCall) Score { return e.After(env.(E), ctx, call) }
	}
	if e.Server != nil {
		h.server = func(env any) *mcp.Server { return e.Server(env.(E)) }
	}
	var errs []error
	c.Schemas.ResetObservation = emptyObservation()
	if e.Reset.build != nil {
		if r, err := e.Reset.build(); err != nil {
			errs = append(errs, fmt.Errorf("Reset: %w", err))
		} else {
			h.parseOptions = r.parse
			h.reset = func(ctx context.Context, env any, p ResetParams) (*Observed, error) { return r.run(ctx, env.(E), p) }
			c.Schemas.ResetObservation = r.observation
		}
	}
	c.Schemas.State = stateSchema(nil)
	if e.State.build != nil {
		if s, err := e.State.build(); err != nil {
			errs = append(errs, fmt.Errorf("State: %w", err))
		} else {
			h.state = func(env any) ([]byte, error) { return s.run(env.(E)) }
			c.Schemas.State = stateSchema(s.schema)
		}
	}
	if e.Act.build != nil {
		if a, err := e.Act.build(); err != nil {
			errs = append(errs, fmt.Errorf("Act: %w", err))
		} else {
			h.parseAction = a.parse
			h.act = func(ctx context.Context, env, action any) (*Observed, Score, error) {
				return a.run(ctx, env.(E), action)
			}
			c.Schemas.Action, c.Schemas.Observation = a.action, a.observation
		}
		return errors.Join(errs...)
	}
	var err error
	c.actions, err = newToolActions(e.CodeMode != nil)
	c.Schemas.Action, c.Schemas.Observation = toolAction(e.CodeMode != nil), toolObservation()
	return errors.Join(append(errs, err)...)
}

// compileTools makes the shared SDK server, or lists the tools of a value's own.
func (e Environment[E]) compileTools(ctx context.Context, c *Class) error {
	var coder *coder
	if e.CodeMode != nil {
		var err error
		if coder, err = newCoder(ctx, *e.CodeMode); err != nil {
			return err
		}
		c.release = coder.close
	}
	if e.Server != nil {
		if err := c.listOnce(ctx); err != nil || coder == nil {
			return err
		}
		c.coder = coder
		return coder.join(ctx, c)
	}
	c.coder = coder
	c.hooks.elsewhere = func(tool string) (tools.Mode, bool) { return e.Tools.ElsewhereOnly(tool, c.Mode) }
	//lint:ignore SA1019 clients before revision 2026-07-28 have log messages; see tools.Log
	capabilities := &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}, Logging: &mcp.LoggingCapabilities{}}
	server := mcp.NewServer(
		&mcp.Implementation{Name: e.Name, Version: c.Metadata.Version},
		&mcp.ServerOptions{Instructions: e.Instructions, Capabilities: capabilities},
	)
	err := e.Tools.Register(server, c.Mode)
	if err != nil {
		return err
	}
	c.replays = e.Tools.Replays(c.Mode)
	traits := e.Tools.Traits(c.Mode)
	if c.coder != nil {
		if err := c.coder.register(server, c.Mode, traits); err != nil {
			return err
		}
	}
	if c.mounts, err = openMounts(ctx, e.Mounts, c.Mode, server, traits); err != nil {
		return err
	}
	c.release = func() { c.mounts.close(); c.coder.close() }
	if c.shared, err = newHost(ctx, server, traits); err != nil {
		return err
	}
	c.release = func() { c.shared.close(); c.mounts.close(); c.coder.close() }
	if c.Tools, err = c.shared.list(ctx); err != nil {
		return err
	}
	c.shared.know(c.Tools)
	if c.coder != nil {
		c.coder.known, err = codeTools(c.Tools)
	}
	return err
}

// listOnce builds a value, asks it for its tools and closes it again.
func (c *Class) listOnce(ctx context.Context) error {
	i, err := c.Open(ctx, SessionOptions{ID: "listing"})
	if err != nil {
		return fmt.Errorf("building a value to list its tools: %w", err)
	}
	c.Tools, err = i.host.list(ctx)
	if err != nil {
		err = fmt.Errorf("listing the tools of the Server: %w", err)
	}
	return errors.Join(err, i.Close(), tools.CheckNames(c.Tools))
}

// first reports whether the class has not seen the server before. One that comes again would have been wrapped already.
func (c *Class) first(server *mcp.Server) bool {
	key := weak.Make(server)
	_, seen := c.servers.LoadOrStore(key, true)
	if !seen {
		runtime.AddCleanup(server, func(k weak.Pointer[mcp.Server]) { c.servers.Delete(k) }, key)
	}
	return !seen
}

// RecordTo has the tool calls of all instances recorded; nil: they are not. It is called before the first is opened. A
// recorder whose file the environment replays in this mode is an error.
func (c *Class) RecordTo(r *tools.Recorder) error {
	c.recorder = r
	return c.replays.Recordable(r)
}

// RunsCode reports whether the environment has a code mode.
func (c *Class) RunsCode() bool { return c.coder != nil }

// CodeBound is how many bytes all processes that run code may take together; 0 where there are none.
func (c *Class) CodeBound() int64 {
	if c.coder == nil || c.coder.pool == nil {
		return 0
	}
	return c.coder.pool.Bound()
}

// TryCode runs a piece of code, where the environment has a code mode, so that an operator hears at start-up of a machine
// that cannot.
func (c *Class) TryCode(ctx context.Context, log *slog.Logger) error {
	if c.coder == nil {
		return nil
	}
	return c.coder.try(ctx, log)
}

// Close releases what Compile opened. No instance may be open.
func (c *Class) Close() { c.release() }

// ParseAction reads and checks an action. The error is an *[tools.InputError].
func (c *Class) ParseAction(raw []byte) (Action, error) {
	if c.hooks.act == nil {
		return c.actions.parse(raw)
	}
	own, err := c.hooks.parseAction(raw)
	return Action{Kind: OwnAction, own: own}, err
}

// ParseReset reads and checks the parameters of a reset: seed, episode_id and options; no bytes stand for none. overHTTP
// says whether the bounds of POST /reset hold. The error is an *[tools.InputError].
func (c *Class) ParseReset(raw []byte, overHTTP bool) (ResetParams, error) {
	p, options, err := resetMembers(raw)
	if err != nil {
		return p, err
	}
	if overHTTP {
		if err := p.bound(); err != nil {
			return p, err
		}
	}
	if c.hooks.reset == nil {
		return p, nil
	}
	rest, err := strictjson.Marshal(options)
	if err != nil {
		return p, err
	}
	p.options, err = c.hooks.parseOptions(rest)
	return p, err
}

// ElsewhereOnly reports the mode that has a tool which this one lacks.
func (c *Class) ElsewhereOnly(tool string) (tools.Mode, bool) {
	if c.hooks.elsewhere == nil {
		return "", false
	}
	return c.hooks.elsewhere(tool)
}

// Server is the SDK server that all instances share; nil where each value brings its own.
func (c *Class) Server() *mcp.Server {
	if c.shared == nil {
		return nil
	}
	return c.shared.server
}

// Traits are those of a tool; zero for an unknown one, and where each value brings a server of its own.
func (c *Class) Traits(tool string) tools.Traits {
	if c.shared == nil {
		return tools.Traits{}
	}
	if c.coder.is(tool) {
		return c.coder.traits()
	}
	return c.shared.tools[tool]
}

// OwnActions reports whether the environment has an action type of its own.
func (c *Class) OwnActions() bool { return c.hooks.act != nil }

// Open builds one environment value and its instance. A panic of New is an error. ctx ends when the caller gives up;
// New may then return whatever it likes, for what it returned with no error is closed again.
func (c *Class) Open(ctx context.Context, o SessionOptions) (*Instance, error) {
	s, seed := newSession(c.Mode, o)
	if c.Mode == tools.ModeSimulation {
		s.simulate(c.clock)
	}
	env, err := guard(s.log, "New", func() (any, error) { return c.hooks.open(ctx, s) })
	if err != nil {
		return nil, err
	}
	i := &Instance{
		class: c, session: s, env: env, seed: seed, host: c.shared, scoring: semaphore.NewWeighted(1),
		toolTimeout: o.ToolTimeout, player: c.replays.Player(), recording: c.recorder.Session(),
	}
	i.episode.ID = newEpisodeID()
	if c.hooks.server != nil {
		if err := i.ownServer(ctx); err != nil {
			i.Close()
			return nil, err
		}
	}
	if i.links, err = c.mounts.open(ctx, s.log); err != nil {
		i.Close()
		return nil, err
	}
	return i, nil
}

// A PanicError is a panic in an author's function.
type PanicError struct {
	Func  string // New, Reset, Act, State, After, Close, Server, or tool "name" while its result was written
	Value any
}

func (e *PanicError) Error() string {
	return e.Func + " panicked; the server's log has the stack"
}

// guard runs an author's function and turns a panic into an error.
func guard[T any](log *slog.Logger, name string, f func() (T, error)) (v T, err error) {
	defer func() {
		if r := recover(); r != nil {
			log.Error("environment panicked", "event", "env_panic", "func", name, "panic", fmt.Sprint(r), "stack", string(debug.Stack()))
			err = &PanicError{name, r}
		}
	}()
	return f()
}
