package transport

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// admit holds a request to the rules on Host and Origin, before anything is done for it. They keep web pages that a
// person visits from reaching a server on that person's machine.
func (s *Server) admit(r *http.Request) error {
	host := hostname(r.Host)
	if len(s.opts.AllowedHosts) > 0 || onLoopback(r) {
		if !isLoopback(host) && !slices.Contains(s.opts.AllowedHosts, host) {
			return fmt.Errorf("the Host %.100q is not one of this server's; allow it with -allowed-hosts if a proxy sends it", r.Host)
		}
	}
	for _, origin := range r.Header.Values("Origin") {
		u, err := url.Parse(origin)
		if err != nil || u.Host == "" || !strings.EqualFold(u.Host, r.Host) {
			return fmt.Errorf("pages from %.100q may not use this server", origin)
		}
	}
	return nil
}

// onLoopback reports whether the connection came in on the loopback interface.
func onLoopback(r *http.Request) bool {
	addr, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return ok && isLoopback(hostname(addr.String()))
}

func hostname(hostport string) string {
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		hostport = h
	}
	return strings.ToLower(strings.Trim(hostport, "[]"))
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
