package gym

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/openenv-go/openenv-go/pkg/tools"
)

// The pause after the first failure to connect again, and the longest. It doubles with each failure.
const (
	firstPause   = 250 * time.Millisecond
	longestPause = 30 * time.Second
)

// A link keeps a connection to one mounted server: for one session, or for all. Safe for concurrent use.
type link struct {
	mount Mount
	log   *slog.Logger
	life  context.Context // ends when the link is closed
	end   context.CancelFunc

	mu       sync.Mutex // guards what follows
	up       Upstream   // the last one that was reached; nil before the first
	dial     *dial      // the attempt that runs, or nil: at most one does
	failures int        // attempts that have failed since the last success
	next     time.Time  // no attempt before it
	used     bool       // up has been called
	closed   bool       // no attempt starts any more
}

// A dial is an attempt to connect. It is not bound to the call that began it, so that a server which starts slowly is
// there for the next one.
type dial struct {
	done chan struct{} // closed when up and err stand
	up   Upstream
	err  error
}

func newLink(m Mount, log *slog.Logger) *link {
	l := &link{mount: m, log: log.With("mount", m.Prefix)}
	l.life, l.end = context.WithCancel(context.Background())
	return l
}

// starting bounds a start.
func (l *link) starting(ctx context.Context) (context.Context, context.CancelFunc) {
	limit := l.mount.Start
	if limit == 0 {
		limit = DefaultMountStart
	}
	return context.WithTimeoutCause(ctx, limit, fmt.Errorf("it was not ready within %v", limit))
}

// connect reaches the server within Start. A panic of the connector is an error.
func (l *link) connect(ctx context.Context) (Upstream, error) {
	ctx, cancel := l.starting(ctx)
	defer cancel()
	up, err := guard(l.log, "Connect", func() (Upstream, error) { return l.mount.Connect.Connect(ctx, l.log) })
	if err == nil && up == nil {
		err = errors.New("its Connect returned nil")
	}
	return up, err
}

// open makes the first connection.
func (l *link) open(ctx context.Context) error {
	up, err := l.connect(ctx)
	if err == nil {
		l.mu.Lock()
		l.up = up
		l.mu.Unlock()
	}
	return err
}

// list opens the link and lists the server's tools, all within Start.
func (l *link) list(ctx context.Context) ([]*mcp.Tool, error) {
	ctx, cancel := l.starting(ctx)
	defer cancel()
	if err := l.open(ctx); err != nil {
		return nil, err
	}
	list, err := l.up.ListTools(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing its tools: %w", err)
	}
	return list, nil
}

// call calls a tool by the server's name for it. A call that the server has not seen since the connection was gone is
// made once more, where the link may connect again.
func (l *link) call(ctx context.Context, tool string, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	for again := l.reconnects(); ; again = false {
		up, err := l.upstream(ctx)
		var res *mcp.CallToolResult
		if err == nil {
			l.mark()
			res, err = up.CallTool(ctx, tool, req.Params.Arguments, forward(ctx, req))
		}
		switch {
		case err == nil:
			return res, nil
		case ctx.Err() != nil:
			return nil, context.Cause(ctx) // the session words it
		case again && up != nil && errors.Is(err, ErrNotSent) && isLost(up):
			continue
		}
		return nil, l.explain(req.Params.Name, up, err)
	}
}

func (l *link) mark() {
	l.mu.Lock()
	l.used = true
	l.mu.Unlock()
}

// forward is what hands progress on to the caller; nil where it has not asked.
func forward(ctx context.Context, req *mcp.CallToolRequest) func(*mcp.ProgressNotificationParams) {
	token := req.Params.GetProgressToken()
	if token == nil || req.Session == nil {
		return nil
	}
	return func(p *mcp.ProgressNotificationParams) {
		theirs := *p
		theirs.ProgressToken = token
		_ = req.Session.NotifyProgress(ctx, &theirs) // who does not read it has not lost a result
	}
}

func (l *link) reconnects() bool { return l.mount.Shared || l.mount.Restart }

func isLost(up Upstream) bool {
	select {
	case <-up.Lost():
		return true
	default:
		return false
	}
}

var (
	errLost        = errors.New("it has ended, or the connection to it was lost")
	errClosed      = errors.New("the session has closed")
	errUnreachable = errors.New("it could not be reached")
)

// upstream is a connection that is not known to be lost, made again if need be and allowed.
func (l *link) upstream(ctx context.Context) (Upstream, error) {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return nil, errClosed
	}
	if l.dial == nil && l.up != nil && !isLost(l.up) {
		defer l.mu.Unlock()
		return l.up, nil
	}
	if !l.reconnects() {
		l.mu.Unlock()
		return nil, errLost
	}
	if l.dial == nil {
		if wait := time.Until(l.next); wait > 0 {
			l.mu.Unlock()
			return nil, fmt.Errorf("it could not be reached, and is not tried again for %v", wait.Round(time.Millisecond))
		}
		l.dial = &dial{done: make(chan struct{})}
		go l.redial(l.dial, l.up)
	}
	d := l.dial
	l.mu.Unlock()
	up, err := d.wait(ctx)
	if err != nil {
		err = errUnreachable // the log has the rest, which may not be for agents
	}
	return up, err
}

func (d *dial) wait(ctx context.Context) (Upstream, error) {
	select {
	case <-d.done:
		return d.up, d.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// renew makes a session's own connection again for a new episode, where it was lost or must not outlive the last one.
func (l *link) renew(ctx context.Context) error {
	l.mu.Lock()
	if l.closed || l.dial == nil && !isLost(l.up) && !(l.mount.PerEpisode && l.used) {
		l.mu.Unlock()
		return nil
	}
	if l.dial == nil {
		l.dial = &dial{done: make(chan struct{})}
		go l.redial(l.dial, l.up)
	}
	d := l.dial
	l.mu.Unlock()
	_, err := d.wait(ctx)
	return err
}

// redial runs one attempt. Nobody waits for more than its done.
func (l *link) redial(d *dial, old Upstream) {
	defer close(d.done)
	if old != nil {
		_ = old.Close() // what it left behind goes before the new one comes
	}
	d.up, d.err = l.connect(l.life)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dial = nil
	if d.err != nil {
		pause := min(firstPause<<min(l.failures, 16), longestPause)
		l.failures++
		l.next = time.Now().Add(pause)
		l.log.Warn("mounted server not reached", "event", "mount_unreachable", "error", d.err, "pause", pause)
		return
	}
	l.failures, l.next = 0, time.Time{}
	l.up, l.used = d.up, false // close, which waits for this attempt, closes it
	l.log.Info("mounted server connected again", "event", "mount_reconnected")
}

// explain words an error for the caller. up is the connection that the call ran on, or nil.
func (l *link) explain(name string, up Upstream, err error) error {
	var typed *tools.Error
	if errors.As(err, &typed) && typed.Type != tools.TransportError {
		own := *typed
		own.Tool = name
		return &own
	}
	advice := "call it again later"
	switch {
	case up != nil && !isLost(up):
	case l.mount.Shared:
		advice = "call it again: the next call connects again"
	case l.mount.Restart:
		advice = "call it again: the next call starts the server again, without its state"
	default:
		advice = "the server's state is lost, and calls of its tools fail until a reset or in a new session"
	}
	return &tools.Error{
		Type: tools.TransportError, Tool: name, Err: err,
		Message: fmt.Sprintf("tool %q: its server did not answer: %v; %s", name, err, advice),
	}
}

// close ends the connection, and an attempt to make one.
func (l *link) close() error {
	l.mu.Lock()
	l.closed = true
	d := l.dial
	l.mu.Unlock()
	l.end()
	if d != nil {
		<-d.done
	}
	l.mu.Lock()
	up := l.up
	l.mu.Unlock()
	if up == nil {
		return nil
	}
	_, err := guard(l.log, "Close of a mount", func() (struct{}, error) { return struct{}{}, up.Close() })
	return err
}
