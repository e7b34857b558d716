package transport

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/openenv-go/openenv-go/pkg/access"
	"github.com/openenv-go/openenv-go/pkg/tools"
)

// accessFlags are the flags that say who may use the server, how much of it, and how it is reached.
type accessFlags struct {
	control, agent           string // tokens, comma-separated
	controlFile, agentFile   string
	issuer, audience         string
	cert, key                string
	publicURL                string
	hosts, origins           string
	insecure                 bool
	rate                     float64
	sessionsPerToken         int
	maxMessage, maxInFlight  int64
	maxDepth, maxHeaderBytes int
}

func (a *accessFlags) define(fs *flag.FlagSet) {
	fs.StringVar(&a.control, "control-token", "", "comma-separated `tokens` that open everything, sent as Authorization: Bearer; better in the variable or a file, since other users of the machine see flags")
	fs.StringVar(&a.controlFile, "control-token-file", "", "`file` with such tokens, one on each line")
	fs.StringVar(&a.agent, "agent-token", "", "comma-separated `tokens` that open the tools and nothing else")
	fs.StringVar(&a.agentFile, "agent-token-file", "", "`file` with such tokens, one on each line")
	fs.StringVar(&a.issuer, "oauth-issuer", "", "`URL` of an OpenID provider whose access tokens (JWT) are taken: those with the scope "+ScopeAgent+" or "+ScopeControl)
	fs.StringVar(&a.audience, "oauth-audience", "", "the `audience` that such a token must name: this server's URL at the provider")
	fs.StringVar(&a.cert, "tls-cert", "", "`file` with the certificate chain (PEM), to serve HTTPS; needs -tls-key")
	fs.StringVar(&a.key, "tls-key", "", "`file` with the certificate's key (PEM)")
	fs.StringVar(&a.hosts, "allowed-hosts", "", "comma-separated `names` to accept in the Host header beside those of the loopback interface")
	fs.StringVar(&a.origins, "allowed-origins", "", "comma-separated `origins`, such as https://chat.example, whose web pages may use the server; * is any")
	fs.StringVar(&a.publicURL, "public-url", "", "the server's own `URL` as clients have it, such as https://env.example, where a proxy changes the Host or the path")
	fs.BoolVar(&a.insecure, "insecure", false, "serve production beyond the loopback interface without tokens")
	fs.Float64Var(&a.rate, "rate", 0, "requests and WebSocket messages a second that a token, or an address without one, may send; 0 is any number")
	fs.IntVar(&a.sessionsPerToken, "sessions-per-token", 0, "how many sessions a token may have open at once; 0 is any number")
	fs.Int64Var(&a.maxMessage, "max-message", DefaultMaxMessage, "`bytes` of a body or a WebSocket message")
	fs.Int64Var(&a.maxInFlight, "max-in-flight", DefaultMaxInFlight, "`bytes` of all long messages that are being read or answered at once")
	fs.IntVar(&a.maxDepth, "max-depth", DefaultMaxDepth, "nesting of objects and arrays in what clients send")
	fs.IntVar(&a.maxHeaderBytes, "max-header", DefaultMaxHeader, "`bytes` of a request's header")
}

// maxRate is more than anybody sends.
const maxRate = 1e9

// apply checks the flags and puts them into options.
func (a *accessFlags) apply(o *Options) (err error) {
	switch {
	case !(a.rate >= 0 && a.rate <= maxRate):
		return fmt.Errorf("-rate %v: want a number of requests per second, up to 1e9, or 0 for any", a.rate)
	case a.sessionsPerToken < 0:
		return fmt.Errorf("-sessions-per-token %d: want 0 or more", a.sessionsPerToken)
	case a.maxMessage < 1 || a.maxDepth < 1 || a.maxHeaderBytes < 1:
		return errors.New("-max-message, -max-depth and -max-header want at least 1")
	case a.maxInFlight < a.maxMessage:
		return fmt.Errorf("-max-in-flight %d: want at least -max-message, which is %d", a.maxInFlight, a.maxMessage)
	case a.publicURL != "" && webURL(a.publicURL) == nil:
		return fmt.Errorf("-public-url %s: want a URL such as https://env.example", a.publicURL)
	case a.issuer != "" && !isSafeURL(a.issuer):
		return fmt.Errorf("-oauth-issuer %s: want https, since whoever is on the way could give keys of its own", a.issuer)
	case (a.cert == "") != (a.key == ""):
		return errors.New("-tls-cert and -tls-key need each other")
	case (a.issuer == "") != (a.audience == ""):
		return errors.New("-oauth-issuer and -oauth-audience need each other")
	}
	o.RequestsPerSecond, o.SessionsPerToken = a.rate, a.sessionsPerToken
	o.MaxInFlight, o.PublicURL = a.maxInFlight, a.publicURL
	o.MaxMessage, o.MaxDepth, o.MaxHeader = a.maxMessage, a.maxDepth, a.maxHeaderBytes
	o.AllowedHosts, o.AllowedOrigins = list(strings.ToLower(a.hosts)), list(a.origins)
	if a.issuer != "" {
		ctx, cancel := context.WithTimeout(context.Background(), issuerTime)
		defer cancel()
		if o.Access, err = Issuer(ctx, nil, a.issuer, a.audience); err != nil {
			return fmt.Errorf("-oauth-issuer: %w", err)
		}
	}
	if o.Access.ControlTokens, err = tokens("-control-token-file", a.control, a.controlFile); err != nil {
		return err
	}
	if o.Access.AgentTokens, err = tokens("-agent-token-file", a.agent, a.agentFile); err != nil {
		return err
	}
	if a.cert != "" {
		pair, err := tls.LoadX509KeyPair(a.cert, a.key)
		if err != nil {
			return fmt.Errorf("-tls-cert, -tls-key: %w", err)
		}
		o.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	}
	return nil
}

// issuerTime bounds what is asked of an OpenID provider: its look-up at the start, and later its keys.
const issuerTime = 15 * time.Second

// tokens are those of a list and those of a file, where a line that begins with # is a comment.
func tokens(flag, given, file string) (all []access.Token, err error) {
	for _, t := range list(given) {
		all = append(all, access.Token(t))
	}
	// Without a token the server would ask nobody for one, which is not what was meant.
	if given != "" && len(all) == 0 {
		return nil, fmt.Errorf("%s: there is no token in it", strings.TrimSuffix(flag, "-file"))
	}
	if file == "" {
		return all, nil
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if t := strings.TrimSpace(lines.Text()); t != "" && !strings.HasPrefix(t, "#") {
			all = append(all, access.Token(t))
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s %s: there is no token in it", flag, file)
	}
	return all, nil
}

// list splits a comma-separated list.
func list(text string) (all []string) {
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part != "" {
			all = append(all, part)
		}
	}
	return all
}

// webURL reads the URL of a server; nil: it is none.
func webURL(text string) *url.URL {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return nil
	}
	return u
}

// isSafeURL reports whether what comes from a URL comes from its server.
func isSafeURL(text string) bool {
	u := webURL(text)
	return u != nil && (u.Scheme == "https" || isLoopback(u.Hostname()))
}

// checkOpen refuses to show a production server to everyone, and warns of a simulation that is.
func (s *Server) checkOpen(insecure bool, addr net.Addr) error {
	switch {
	case isLoopback(hostname(addr.String())) || s.guarded():
	case s.opts.Mode == tools.ModeProduction && !insecure:
		return fmt.Errorf("%s is reached from beyond this machine, and production asks nobody for a token: set -agent-token and -control-token, listen on 127.0.0.1, or say -insecure", addr)
	default:
		s.log.Warn("whoever reaches the address may use the server", "event", "open_address", "addr", addr.String(), "control", false)
	}
	return nil
}

// warnControl warns of a control listener that is reached from beyond this machine.
func (s *Server) warnControl(addr net.Addr) {
	if !isLoopback(hostname(addr.String())) {
		s.log.Warn("whoever reaches the control listener may begin episodes, and see and end every session", "event", "open_address", "addr", addr.String(), "control", true)
	}
}
