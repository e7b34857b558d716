package transport

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"github.com/openenv-go/openenv-go/pkg/session"
)

// permutations are all orders of n things.
func permutations(n int) (all [][]int) {
	if n == 0 {
		return [][]int{nil}
	}
	for _, p := range permutations(n - 1) {
		for i := range n {
			all = append(all, slices.Insert(slices.Clone(p), i, n-1))
		}
	}
	return all
}

// An agent, the one that replaces it, a trainer, and whoever closes the session: in whatever order they leave, no slot and
// nothing of theirs is left, and the one that was replaced has nothing of its successor's.
func TestEveryOrderOfLeaving(t *testing.T) {
	for _, owned := range []bool{true, false} {
		for _, order := range permutations(5) {
			t.Run(fmt.Sprintf("owned=%t/%v", owned, order), func(t *testing.T) {
				t.Parallel()
				srv, base := start(t, labEnv(), counted())
				var trainer wsClient
				id := labSession
				if owned {
					trainer = dial(t, base+"/ws")
					trainer.ask(`{"type":"state"}`)
				} else {
					id = createSession(t, base)
					trainer = dial(t, base+"/ws?session_id="+id)
					trainer.ask(`{"type":"state"}`)
				}
				s := live(t, srv, id)
				url := base + "/mcp/" + mint(t, base, id)
				first, second := "", ""
				replaced := false
				headers := func(agent string) []string {
					return []string{"Accept", "application/json, text/event-stream", "Mcp-Session-Id", agent, "MCP-Protocol-Version", "2025-11-25"}
				}
				ending := false // the session may be
				bye := func(agent string, present bool) {
					status, body := request(t, http.MethodDelete, base+"/mcp", "", headers(agent)...)
					if (status != http.StatusNoContent || !present) && (status != http.StatusNotFound || present && !ending) {
						t.Errorf("DELETE by an agent (present: %t, ending: %t): %d %s", present, ending, status, body)
					}
				}
				initialize := func() string {
					if ending { // it may come too late
						return ""
					}
					return rawInitialize(t, url, "2025-11-25")
				}
				first = initialize()
				secondLeft := false
				for _, what := range order {
					switch what {
					case 0: // the second comes
						if second = initialize(); second != "" {
							replaced = true
							if status, body := post(t, base+"/mcp", rpcCall("say", `{"text":"x"}`, ""), headers(first)...); status != http.StatusNotFound || strings.Contains(body, second) {
								t.Errorf("the replaced agent got %d %s", status, body)
							}
						}
					case 1:
						bye(first, !replaced)
						replaced = true // or gone
					case 2:
						if second != "" && !secondLeft {
							bye(second, true)
							secondLeft = true
						}
					case 3:
						ending = true
						trainer.Close(websocket.StatusNormalClosure, "")
					case 4:
						ending = true
						post(t, base+"/mcp", `{"jsonrpc":"2.0","id":1,"method":"openenv/session/close","params":{"session_id":"`+id+`"}}`)
					}
				}
				// Whoever has left, the trainer's going or the close has ended the session by now.
				waitFor(t, "the slot", func() bool { return srv.Sessions().Active() == 0 && s.Ended() })
				for _, agent := range []string{first, second} {
					if agent != "" {
						bye(agent, false)
					}
				}
			})
		}
	}
}

// A stream that is quiet has a comment every 15 seconds.
func TestQuietStreamsHaveAHeartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, client := serveInMemory(t, labEnv(), Options{})
		agent := initializeBy(t, client)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://localhost/mcp", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Accept", "text/event-stream")
		r.Header.Set("Mcp-Session-Id", agent)
		res, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		start := time.Now()
		lines := bufio.NewReader(res.Body)
		for beats := 1; beats <= 4; {
			line, err := lines.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			if line == ": quiet\n" {
				if d := time.Since(start); d != time.Duration(beats)*heartbeatEvery {
					t.Errorf("beat %d after %v", beats, d)
				}
				beats++
			}
		}
	})
}

// initializeBy initialises by a client of serveInMemory.
func initializeBy(t *testing.T, client *http.Client) (agent string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost/mcp", strings.NewReader(initializeBody))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	res, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if _, err := io.Copy(io.Discard, res.Body); err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%s, %v", res.Status, err)
	}
	return res.Header.Get("Mcp-Session-Id")
}

// A client that does not go on after its initialize keeps no session for longer than a minute.
func TestClientsThatDoNotGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, client := serveInMemory(t, labEnv(), Options{Sessions: session.Options{IdleTimeout: -1}})
		initializeBy(t, client)
		goesOn := initializeBy(t, client)
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost/mcp", strings.NewReader(`{"jsonrpc":"2.0","method":"notifications/initialized"}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}, "Mcp-Session-Id": {goesOn}, "Mcp-Protocol-Version": {"2025-11-25"}}
		res, err := client.Do(r)
		if err != nil || res.StatusCode != http.StatusAccepted {
			t.Fatal(res, err)
		}
		res.Body.Close()
		time.Sleep(initializedWithin - time.Second)
		synctest.Wait()
		active(t, srv, 2)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		active(t, srv, 1)
		time.Sleep(time.Hour)
		synctest.Wait()
		active(t, srv, 1)
	})
}
