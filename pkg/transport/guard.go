package transport

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/rs/cors"
)

// admit holds a request to the rules on Host and Origin, before anything is done for it. They keep web pages that a
// person visits from reaching a server on that person's machine. The control listener asks for no token, so pages of other
// origins have no part in it, whatever they may do on the public one.
func (s *Server) admit(r *http.Request, control bool) error {
	host := hostname(r.Host)
	if len(s.opts.AllowedHosts) > 0 || onLoopback(r) {
		if !isLoopback(host) && !slices.Contains(s.opts.AllowedHosts, host) {
			return fmt.Errorf("the Host %.100q is not one of this server's; allow it with -allowed-hosts if a proxy sends it", r.Host)
		}
	}
	for _, origin := range r.Header.Values("Origin") {
		if !control && (slices.Contains(s.opts.AllowedOrigins, origin) || slices.Contains(s.opts.AllowedOrigins, "*")) {
			continue
		}
		u, err := url.Parse(origin)
		if err == nil && u.Host != "" && strings.EqualFold(u.Host, r.Host) {
			continue
		}
		if control {
			return fmt.Errorf("pages from %.100q may not use the control listener", origin)
		}
		return fmt.Errorf("pages from %.100q may not use this server; allow them with -allowed-origins", origin)
	}
	return nil
}

// crossOrigin answers browsers for pages of other origins (CORS); nil: there are none that may use the server.
func crossOrigin(origins []string) func(http.Handler) http.Handler {
	if len(origins) == 0 {
		return nil
	}
	return cors.New(cors.Options{
		AllowedOrigins: origins, AllowedMethods: []string{http.MethodGet, http.MethodPost, http.MethodDelete},
		AllowedHeaders: []string{"Authorization", "Content-Type", "Last-Event-ID", "Mcp-Session-Id", "Mcp-Protocol-Version", "Mcp-Method", "Mcp-Name"},
		ExposedHeaders: []string{"Mcp-Session-Id", "Retry-After", "WWW-Authenticate"}, MaxAge: 600,
	}).Handler
}

// onLoopback reports whether the connection came in on the loopback interface.
func onLoopback(r *http.Request) bool {
	switch addr := r.Context().Value(http.LocalAddrContextKey).(type) {
	case *net.TCPAddr:
		return addr.IP.IsLoopback()
	case net.Addr:
		return isLoopback(hostname(addr.String()))
	}
	return false
}

func hostname(hostport string) string {
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		hostport = h
	}
	return strings.ToLower(strings.Trim(hostport, "[]"))
}

func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Zone() == "" && ip.IsLoopback()
}
