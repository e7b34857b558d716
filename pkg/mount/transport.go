package mount

import (
	"context"
	"errors"
	"log/slog"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/openenv-go/openenv-go/pkg/gym"
)

// Transport connects over transports of the SDK, which open returns, one for each connection: for a server in memory, or
// a wire of your own. ctx bounds open and the transport's Connect.
func Transport(open func(ctx context.Context) (mcp.Transport, error)) gym.Connector {
	return custom(open)
}

type custom func(ctx context.Context) (mcp.Transport, error)

// Connect opens a connection over a transport. See [gym.Connector].
func (c custom) Connect(ctx context.Context, log *slog.Logger) (gym.Upstream, error) {
	t, err := c(ctx)
	if err != nil {
		return nil, err
	}
	if t == nil {
		return nil, errors.New("the function of mount.Transport returned nil")
	}
	conn, err := t.Connect(ctx)
	if err != nil {
		return nil, err
	}
	unknown := func(error) (unsent, fatal bool) { return false, false }
	return greet(ctx, newPeer(conn, unknown, log), func() {}, nil)
}
