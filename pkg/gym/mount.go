package gym

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/openenv-go/openenv-go/pkg/tools"
)

// A Mount adds the tools of another MCP server to an environment. They are tools like its own: a call is a step, waits
// for its turn, has a deadline and is followed by After.
type Mount struct {
	// Prefix and "_" go before the names of the server's tools. "" leaves them as they are.
	Prefix string

	// Connect reaches the server; package mount has what does. Compile connects once, to list the tools.
	Connect Connector

	// Shared says that all sessions use one connection, which is open from Compile to the close of the class. Else each
	// session has its own, opened after New and closed before Close.
	Shared bool

	// PerEpisode has each reset end a session's own connection that has been used, and make a new one, for servers that
	// keep something of the episode. (A reset makes a connection again that was lost, in any case.)
	PerEpisode bool

	// Restart has a call connect again where a session's own connection was lost. Without it such calls fail until a
	// reset, since the server's state is lost, too. A shared connection is always made again.
	Restart bool

	Mode     tools.Mode    // the one mode in which the server is mounted; "": both
	Only     []string      // the server's names of the tools to mount; nil: all
	Start    time.Duration // how long connecting may take; 0: [DefaultMountStart]
	Deadline time.Duration // of a call of its tools, the wait for a turn included; 0: the server's
}

// DefaultMountStart is the default of Mount.Start.
const DefaultMountStart = 30 * time.Second

// A Connector reaches an MCP server. Safe for concurrent use: many sessions are opened at once.
type Connector interface {
	// Connect opens a connection that is ready for calls and goes on when ctx, which bounds Connect alone, has ended. An
	// error leaves nothing behind. log takes what the server says beside the protocol.
	Connect(ctx context.Context, log *slog.Logger) (Upstream, error)
}

// An Upstream is a connection to a mounted server. Safe for concurrent use.
type Upstream interface {
	// ListTools lists all tools, page by page, under the server's names.
	ListTools(ctx context.Context) ([]*mcp.Tool, error)

	// CallTool calls a tool. It returns at once when ctx ends, with its cause, and has the server told. Other errors are
	// *[tools.Error] values; one that wraps [ErrNotSent] says that the server has not seen the call. progress, unless nil,
	// is called while CallTool runs.
	CallTool(ctx context.Context, tool string, args []byte, progress func(*mcp.ProgressNotificationParams)) (*mcp.CallToolResult, error)

	// Lost is closed when the connection can carry no more calls.
	Lost() <-chan struct{}

	// Close ends the connection and what belongs to it. Calls that run fail. It may be called more than once.
	Close() error
}

// ErrNotSent says that a call has not reached the mounted server, so that it may be made again.
var ErrNotSent = errors.New("the call was not sent")

type logKey struct{}

// WithLog returns the context to compile an environment with, so that what belongs to no session, such as a shared
// [Mount], logs to log. Without it such things do not log.
func WithLog(ctx context.Context, log *slog.Logger) context.Context {
	return context.WithValue(ctx, logKey{}, log)
}

func logOf(ctx context.Context) *slog.Logger {
	if log, ok := ctx.Value(logKey{}).(*slog.Logger); ok {
		return log
	}
	return slog.New(slog.DiscardHandler)
}

func (m Mount) in(mode tools.Mode) bool { return m.Mode == "" || m.Mode == mode }

// prefixed is the environment's name for one of the server's tools.
func (m Mount) prefixed(tool string) string {
	if m.Prefix == "" {
		return tool
	}
	return m.Prefix + "_" + tool
}

func (m Mount) String() string {
	if m.Prefix == "" {
		return "the mount without a prefix"
	}
	return fmt.Sprintf("the mount %q", m.Prefix)
}

func (m Mount) check() error {
	var errs []error
	if m.Prefix != "" && tools.CheckName(m.prefixed("x")) != nil {
		errs = append(errs, errors.New("a Prefix is of the characters A-Z a-z 0-9 _ - and the dot, and leaves room for a name"))
	}
	if m.Connect == nil {
		errs = append(errs, errors.New("it needs a Connect, such as mount.Command or mount.URL"))
	}
	if m.Mode != "" && m.Mode != tools.ModeSimulation && m.Mode != tools.ModeProduction {
		errs = append(errs, fmt.Errorf("there is no mode %q", m.Mode))
	}
	if m.Shared && (m.PerEpisode || m.Restart) {
		errs = append(errs, errors.New("it is Shared, and PerEpisode and Restart are for a session's own connection"))
	}
	if m.Start < 0 || m.Deadline < 0 {
		errs = append(errs, errors.New("a Start or a Deadline is negative"))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("%v: %w", m, err)
	}
	return nil
}

// checkMounts reports the faults that can be seen without connecting.
func checkMounts(all []Mount) error {
	var errs []error
	for i, m := range all {
		errs = append(errs, m.check())
		for _, other := range all[:i] {
			if m.Prefix == other.Prefix && (m.Mode == other.Mode || m.Mode == "" || other.Mode == "") {
				errs = append(errs, fmt.Errorf("%v is there twice: choose another Prefix, or a Mode for each", m))
				break
			}
		}
	}
	return errors.Join(errs...)
}
