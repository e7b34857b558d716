package transport

import (
	"encoding/hex"
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"
)

// Ids tell their owner, and an unknown one is refused where a balancer can still send it elsewhere.
func TestAdvertise(t *testing.T) {
	_, base := start(t, labEnv(), Options{Advertise: "10.0.0.7:8000"})
	prefix := hex.EncodeToString([]byte("10.0.0.7:8000")) + "-"
	id := createSession(t, base)
	for what, got := range map[string]string{"session": id, "handle": mint(t, base, id), "agent": rawInitialize(t, base+"/mcp", "2025-11-25")} {
		if !strings.HasPrefix(got, prefix) || len(got) < len(prefix)+20 {
			t.Errorf("the %s's id %s does not begin with %s", what, got, prefix)
		}
	}
	for _, path := range []string{"/ws?session_id=", "/mcp?session_id=", "/mcp/"} {
		_, res, err := websocket.Dial(t.Context(), "ws"+strings.TrimPrefix(base, "http")+path+prefix+"nosuch", nil)
		if err == nil || res == nil || res.StatusCode != http.StatusNotFound {
			t.Errorf("%s: got %v, %v, want 404 before the upgrade", path, res, err)
		}
	}
	ws := dial(t, base+"/ws?session_id="+id)
	if got := ws.ask(`{"type":"state"}`); !strings.Contains(got, `"type":"state"`) {
		t.Errorf("got %s", got)
	}
}

func TestExclusive(t *testing.T) {
	env := labEnv()
	env.Exclusive = true
	srv, base := start(t, env, Options{})
	if srv.Sessions().Max() != 1 {
		t.Errorf("room for %d sessions", srv.Sessions().Max())
	}
	createSession(t, base)
	if got := dial(t, base+"/ws").receive(); !strings.Contains(got, "CAPACITY_REACHED") {
		t.Errorf("got %s", got)
	}
}
