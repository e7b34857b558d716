package gymtest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/openenv-go/openenv-go/pkg/gym"
)

// A journal is the server's log, in memory: what goes wrong in an author's functions is told there and nowhere else. It is
// a slog.Handler. Safe for concurrent use.
type journal struct {
	mu      sync.Mutex
	entries []entry
}

type entry struct {
	event string
	attrs map[string]any
}

func (e entry) text(key string) string {
	if v, ok := e.attrs[key]; ok {
		return fmt.Sprint(v)
	}
	return ""
}

// Enabled, Handle, WithAttrs and WithGroup make a slog.Handler of it. What an author logs is taken too, and not looked at,
// unless it has an event of ours.
func (j *journal) Enabled(context.Context, slog.Level) bool { return true }

func (j *journal) Handle(ctx context.Context, r slog.Record) error {
	return keeper{j: j}.Handle(ctx, r)
}

func (j *journal) WithAttrs(attrs []slog.Attr) slog.Handler { return keeper{j: j}.WithAttrs(attrs) }

func (j *journal) WithGroup(name string) slog.Handler { return keeper{j: j}.WithGroup(name) }

// A keeper is a journal's handler with attributes.
type keeper struct {
	j       *journal
	attrs   []slog.Attr
	grouped bool // an author's own group: its attributes are not ours
}

func (k keeper) Enabled(context.Context, slog.Level) bool { return true }

func (k keeper) Handle(_ context.Context, r slog.Record) error {
	e := entry{attrs: map[string]any{}}
	for _, a := range k.attrs {
		e.attrs[a.Key] = a.Value.Any()
	}
	if !k.grouped {
		r.Attrs(func(a slog.Attr) bool {
			e.attrs[a.Key] = a.Value.Any()
			return true
		})
	}
	e.event = e.text("event")
	k.j.mu.Lock()
	k.j.entries = append(k.j.entries, e)
	k.j.mu.Unlock()
	return nil
}

func (k keeper) WithAttrs(attrs []slog.Attr) slog.Handler {
	if !k.grouped {
		k.attrs = append(k.attrs[:len(k.attrs):len(k.attrs)], attrs...)
	}
	return k
}

func (k keeper) WithGroup(string) slog.Handler { k.grouped = true; return k }

func (j *journal) all() []entry {
	j.mu.Lock()
	defer j.mu.Unlock()
	return append([]entry(nil), j.entries...)
}

// misfitOutput begins the text of a tool's error whose result broke its own schema. The error has no type of its own: to
// callers it is an execution_error like others.
const misfitOutput = "the value returned "

// problems are the author's faults that the log tells of, each once.
func (j *journal) problems() []problem {
	var out []problem
	add := func(key, format string, args ...any) {
		for _, p := range out {
			if p.key == key {
				return
			}
		}
		out = append(out, problem{key: key, text: fmt.Sprintf(format, args...)})
	}
	for _, e := range j.all() {
		err, _ := e.attrs["error"].(error)
		switch e.event {
		case "tool_panic", "env_panic", "call_panic", "handler_panic", "door_panic":
			who := whose(e)
			add("panic "+who+e.text("panic"), "%s panicked: %s\n%s", who, e.text("panic"), authorsStack(e.text("stack")))
		case "score_error":
			if !panicked(err) { // else it was told above
				add("score "+e.text("error"), "After failed, following tool %q: %v\nA reward is a finite number, a boolean or nothing.", e.text("tool"), e.text("error"))
			}
		case "close_error":
			if !panicked(err) {
				add("close "+e.text("error"), "Close returned an error: %v", e.text("error"))
			}
		case "factory_error":
			if !panicked(err) {
				add("new "+e.text("error"), "New returned an error: %v\nSessions cannot be opened. New is given no options and no seed: it must return a value that is ready.", e.text("error"))
			}
		case "env_error":
			if e.text("call") == "reset" {
				add("reset "+e.text("error"), "Reset returned an error: %v\nIf it needs options, give them with gymtest.ResetOptions.", e.text("error"))
			} else if strings.HasPrefix(e.text("error"), misfitOutput) {
				add("act "+e.text("error"), "Act returned an observation that does not go out: %v", e.text("error"))
			}
		case "tool_error":
			if strings.HasPrefix(e.text("error"), misfitOutput) {
				add("output "+e.text("tool"), "tool %q returned a result that does not fit what is published of it, so that its callers get an error: %s\n"+
					"Change the function or its output type's bounds.", e.text("tool"), e.text("error"))
			}
		case "stuck_handler":
			add("stuck "+e.text("call"), "%s did not return though its context had ended: its session waited for it at its end.\n"+
				"Functions that wait must return when ctx ends.", e.text("call"))
		case "stuck_close":
			add("stuck Close", "Close did not return within %s.\nIt must not wait for what nobody ends.", e.text("age"))
		}
	}
	return out
}

func whose(e entry) string {
	for _, key := range []string{"func", "tool", "call", "method", "path"} {
		if v := e.text(key); v != "" {
			if key == "tool" {
				return fmt.Sprintf("tool %q", v)
			}
			return v
		}
	}
	return "the environment"
}

func panicked(err error) bool {
	var p *gym.PanicError
	return errors.As(err, &p)
}

// stackLines is how much of a stack is shown: the author's frames come first.
const stackLines = 16

// ours begin the frames that called the author's code.
var ours = regexp.MustCompile(`^github\.com/(openenv-go/openenv-go/pkg/(gym|tools|session|transport)|modelcontextprotocol/go-sdk/mcp)\.`)

// authorsStack is a panic's stack from where it was raised to where the author's code was called.
func authorsStack(stack string) string {
	lines := strings.Split(strings.TrimSpace(stack), "\n")
	for i, l := range lines {
		if strings.HasPrefix(l, "panic(") && i+2 < len(lines) {
			lines = lines[i+2:]
			break
		}
	}
	if end := slices.IndexFunc(lines, ours.MatchString); end > 0 {
		lines = lines[:end]
	}
	if len(lines) > stackLines {
		lines = append(lines[:stackLines:stackLines], "…")
	}
	return indent(strings.Join(lines, "\n"))
}
