package transport

import (
	"crypto/tls"
	"log/slog"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/openenv-go/openenv-go/pkg/access"
	"github.com/openenv-go/openenv-go/pkg/gym"
	"github.com/openenv-go/openenv-go/pkg/internal/strictjson"
	"github.com/openenv-go/openenv-go/pkg/session"
	"github.com/openenv-go/openenv-go/pkg/tools"
)

// Options configure a [Server]. The zero value gives the defaults.
type Options struct {
	Mode        tools.Mode      // "": simulation
	Sessions    session.Options // its Logger is this one's, unless set
	MaxMessage  int64           // bytes of one frame or body, on every door; 0: 100 MiB
	MaxInFlight int64           // bytes of all long messages that are being read or answered; 0: ten times MaxMessage, or 1 GiB if that is more
	MaxDepth    int             // nesting of objects and arrays in what clients send; 0: 128
	// AllowedHosts are names that requests may carry in Host besides those of the loopback interface, where the server
	// listens on that interface: for a reverse proxy on the same machine that passes the public name on. Listeners on
	// other interfaces take any Host, unless AllowedHosts is set.
	AllowedHosts []string
	Grace        time.Duration // how long a stop that drains waits for live sessions; 0: 30 s; negative: not at all
	// Access says who may use the server. The zero value asks nobody for a token.
	Access Access
	// PublicURL is the server's address as clients have it, such as https://env.example/lab, where that is not what their requests
	// say: behind a proxy that changes Host or the path, and for what comes by the control listener. "": as requests say.
	PublicURL string
	// AllowedOrigins are origins such as https://chat.example whose pages may use the server from a browser; "*" is any. Pages
	// of the server's own address always may; on the control listener, no others.
	AllowedOrigins []string
	// RequestsPerSecond is how many requests and WebSocket messages each caller may send: a token's, or an address's where
	// none is shown. An HTTP request beyond it gets 429, a message waits. 0: any number.
	RequestsPerSecond float64
	SessionsPerToken  int         // how many sessions each token may have open at once; 0: as many as there are
	MaxHeader         int         // bytes of a request's header; 0: 64 KiB
	TLS               *tls.Config // for both listeners of [Server.Serve]; nil: plain HTTP, as behind a proxy that ends TLS
	// Advertise is the server's own address, host:port, as a load balancer reaches it. Ids of sessions, agents and handles
	// then begin with hex(address) "-", so that the balancer finds their owner with no shared store, and an unknown id is
	// refused before the upgrade of a socket, with 404. "": ids have no address.
	Advertise string
	Code      gym.CodeOptions // what code may take, where the environment has a code mode
	Recorder  *tools.Recorder // gets the tool calls of all sessions; nil: none. Its owner closes it, after the server
	Logger    *slog.Logger    // nil: discard
}

// Access says who may use a server. Callers who show a token of one of these may do what its role may; others may read the
// documents and the health, and nothing else. Where there are no tokens and no Verify, anybody is a trainer in simulation
// and an agent in production. Whoever comes by the control listener has the control role without a token.
type Access struct {
	ControlTokens []access.Token
	AgentTokens   []access.Token
	// Verify checks tokens that others have issued. What its TokenInfo has of [ScopeAgent] and [ScopeControl] is the role. See
	// [Issuer] for one.
	Verify auth.TokenVerifier
	// Resource tells MCP clients where they get a token (RFC 9728); nil: nowhere.
	Resource *oauthex.ProtectedResourceMetadata
}

// DefaultMaxInFlight is the least default of Options.MaxInFlight.
const DefaultMaxInFlight = 1 << 30

// DefaultMaxDepth is the default of Options.MaxDepth.
const DefaultMaxDepth = strictjson.DefaultMaxDepth

// DefaultMaxHeader is the default of Options.MaxHeader.
const DefaultMaxHeader = 64 << 10

// DefaultGrace is the default of Options.Grace.
const DefaultGrace = 30 * time.Second

// DefaultMaxMessage is what OpenEnv's clients take in one message.
const DefaultMaxMessage = 100 << 20
