package transport

import (
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"
)

// Web pages, and names that lead to this machine.

func TestCrossOrigin(t *testing.T) {
	o := guardedOptions()
	o.AllowedOrigins = []string{"https://chat.example"}
	srv, base := start(t, labEnv(), o)
	preflight := func(origin string) (int, http.Header) {
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodOptions, base+"/mcp", nil)
		r.Header = http.Header{"Origin": {origin}, "Access-Control-Request-Method": {"POST"}, "Access-Control-Request-Headers": {"authorization,content-type,mcp-method,mcp-name,mcp-protocol-version"}}
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		return res.StatusCode, res.Header
	}
	if status, h := preflight("https://chat.example"); status != http.StatusNoContent || h.Get("Access-Control-Allow-Origin") != "https://chat.example" || h.Get("Access-Control-Allow-Headers") == "" {
		t.Errorf("%d %v", status, h)
	}
	if status, h := preflight("https://evil.example"); status != http.StatusForbidden || h.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("%d %v", status, h)
	}
	for origin, want := range map[string]int{"https://chat.example": 200, "https://evil.example": 403, "null": 403, base: 200} {
		if status, _ := post(t, base+"/mcp", expand("rpc tools/list"), append(bearer(agentToken), "Origin", origin)...); status != want {
			t.Errorf("%s: %d, want %d", origin, status, want)
		}
		_, res, _ := websocket.Dial(t.Context(), "ws"+strings.TrimPrefix(base, "http")+"/mcp", &websocket.DialOptions{
			HTTPHeader: http.Header{"Origin": {origin}, "Authorization": {"Bearer " + agentToken}},
		})
		if res == nil || (res.StatusCode == http.StatusSwitchingProtocols) != (want == 200) {
			t.Errorf("%s: a socket got %v", origin, res)
		}
	}
	waitFor(t, "the sockets' sessions", func() bool { return srv.Sessions().Active() <= 2 })
	// The control listener asks for no token, which such a page would need elsewhere.
	for origin, want := range map[string]int{"https://chat.example": 403, "null": 403, "http://localhost": 200} {
		if status, reply := recorded(srv.Control(), http.MethodGet, "/sessions", nil, "Origin", origin); status != want {
			t.Errorf("control, %s: %d %s, want %d", origin, status, reply, want)
		}
	}
}

// A name that an attacker has pointed at this machine comes with its own Host, whatever the page's origin (DNS rebinding).
func TestRebinding(t *testing.T) {
	srv, base := startLab(t, false)
	for _, path := range []string{"/mcp", "/ws", "/reset", "/step", "/health"} {
		for _, host := range []string{"evil.example", "evil.example:80", "127.0.0.1.evil.example", "localhost.evil.example"} {
			r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, base+path, strings.NewReader(expand("rpc openenv/session/create")))
			r.Host = host
			r.Header.Set("Origin", "http://"+host)
			res, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			if res.StatusCode != http.StatusForbidden {
				t.Errorf("%s %s: %d", path, host, res.StatusCode)
			}
		}
	}
	active(t, srv, 0)
}
