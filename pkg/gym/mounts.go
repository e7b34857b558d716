package gym

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/openenv-go/openenv-go/pkg/internal/strictjson"
	"github.com/openenv-go/openenv-go/pkg/tools"
)

// mounts are the servers that a class has mounted in its mode. Nil: none.
type mounts struct {
	all    []Mount
	shared []*link // by index in all; nil where each session has its own
}

// openMounts connects to every server, lists its tools and adds them to the class's server. Shared connections are kept,
// others are closed again.
func openMounts(ctx context.Context, all []Mount, mode tools.Mode, server *mcp.Server, known map[string]tools.Traits) (*mounts, error) {
	ms := &mounts{}
	for _, m := range all {
		if m.in(mode) {
			ms.all = append(ms.all, m)
		}
	}
	if len(ms.all) == 0 {
		return nil, nil
	}
	ms.shared = make([]*link, len(ms.all))
	lists := make([][]*mcp.Tool, len(ms.all))
	err := ms.each(func(i int, m Mount) (err error) {
		l := newLink(m, logOf(ctx))
		if lists[i], err = l.list(ctx); err == nil && m.Shared {
			ms.shared[i] = l
			return nil
		}
		return errors.Join(err, l.close())
	})
	if err == nil {
		err = ms.register(server, lists, known)
	}
	if err != nil {
		ms.close()
		return nil, err
	}
	return ms, nil
}

// each runs f for every mount, side by side, and returns the errors together.
func (ms *mounts) each(f func(i int, m Mount) error) error {
	errs := make([]error, len(ms.all))
	var wg sync.WaitGroup
	for i, m := range ms.all {
		wg.Go(func() {
			if err := f(i, m); err != nil {
				errs[i] = fmt.Errorf("%v: %w", m, err)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// register adds the tools to the server. known are the tools that the server has, and gets the mounted ones too.
func (ms *mounts) register(server *mcp.Server, lists [][]*mcp.Tool, known map[string]tools.Traits) error {
	var errs []error
	for i, m := range ms.all {
		var seen []string
		for _, t := range lists[i] {
			seen = append(seen, t.Name)
			if m.Only != nil && !slices.Contains(m.Only, t.Name) {
				continue
			}
			if err := ms.add(server, i, t, known); err != nil {
				errs = append(errs, fmt.Errorf("%v: its tool %q: %w", m, t.Name, err))
			}
		}
		for _, name := range m.Only {
			if !slices.Contains(seen, name) {
				errs = append(errs, fmt.Errorf("%v: the server has no tool %q, which Only names; it has %s", m, name, strings.Join(seen, ", ")))
			}
		}
	}
	return errors.Join(errs...)
}

func (ms *mounts) add(server *mcp.Server, at int, t *mcp.Tool, known map[string]tools.Traits) (err error) {
	m := ms.all[at]
	spec := *t
	spec.Name = m.prefixed(t.Name)
	if err := tools.CheckName(spec.Name); err != nil {
		return fmt.Errorf("as %q: %w", spec.Name, err)
	}
	if _, taken := known[spec.Name]; taken {
		return fmt.Errorf("the name %q is taken by another tool of the environment; choose another Prefix", spec.Name)
	}
	if err := objectSchema(t.InputSchema); err != nil {
		return fmt.Errorf("its input schema %w; leave the tool out with Only", err)
	}
	check, err := tools.NewValidator(t.InputSchema)
	if err != nil {
		return fmt.Errorf("its input schema is not usable: %w; leave the tool out with Only", err)
	}
	defer func() { // the SDK panics at what it does not like in a tool
		if r := recover(); r != nil {
			err = fmt.Errorf("it cannot be served: %v", r)
		}
	}()
	server.AddTool(&spec, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		l := ms.link(ctx, at)
		if l == nil {
			return nil, &tools.Error{Type: tools.ExecutionError, Tool: spec.Name, Message: "the tool was called outside of a session"}
		}
		if err := check.Validate(req.Params.Arguments); err != nil {
			return nil, tools.Refuse(spec.Name, err)
		}
		return l.call(ctx, t.Name, req)
	})
	known[spec.Name] = tools.Traits{Deadline: m.Deadline}
	return nil
}

// objectSchema reports a schema that MCP does not allow for arguments.
func objectSchema(schema any) error {
	raw, err := strictjson.Marshal(schema)
	if err != nil {
		return err
	}
	var s struct {
		Type string `json:"type"`
	}
	if strictjson.Unmarshal(raw, &s) != nil || s.Type != "object" {
		return errors.New("is not of type object")
	}
	return nil
}

type linksKey struct{}

// link is the connection for a call: the shared one, or that of the session whose call it is.
func (ms *mounts) link(ctx context.Context, at int) *link {
	if l := ms.shared[at]; l != nil {
		return l
	}
	links, _ := ctx.Value(linksKey{}).([]*link)
	if links == nil {
		return nil
	}
	return links[at]
}

// open connects a session to the servers that are not shared. With an error nothing stays open.
func (ms *mounts) open(ctx context.Context, log *slog.Logger) ([]*link, error) {
	if ms == nil {
		return nil, nil
	}
	links := make([]*link, len(ms.all))
	err := ms.each(func(i int, m Mount) error {
		if m.Shared {
			return nil
		}
		links[i] = newLink(m, log)
		return links[i].open(ctx)
	})
	if err != nil {
		return nil, errors.Join(err, closeLinks(links))
	}
	return links, nil
}

// renewLinks prepares a session's own connections for a new episode.
func renewLinks(ctx context.Context, links []*link) error {
	return eachLink(links, func(l *link) error {
		if err := l.renew(ctx); err != nil {
			return fmt.Errorf("%v: %w", l.mount, err)
		}
		return nil
	})
}

func (ms *mounts) close() {
	if ms != nil {
		_ = closeLinks(ms.shared) // each has logged what it had to say
	}
}

// closeLinks closes them side by side: a process may take its time.
func closeLinks(links []*link) error { return eachLink(links, (*link).close) }

func eachLink(links []*link, f func(*link) error) error {
	errs := make([]error, len(links))
	var wg sync.WaitGroup
	for i, l := range links {
		if l != nil {
			wg.Go(func() { errs[i] = f(l) })
		}
	}
	wg.Wait()
	return errors.Join(errs...)
}
