package transport

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"github.com/openenv-go/openenv-go/pkg/gym"
	"github.com/openenv-go/openenv-go/pkg/session"
	"github.com/openenv-go/openenv-go/pkg/tools"
)

// What clients send is not repeated at length, to them or in the log, and what the SDK would change is refused.

const (
	manyBytes = 32 << 10
	fewBytes  = 10 << 10 // most that an answer, or all that one request logs, may have
)

// manyKeys are unknown members, each with a long name.
func manyKeys() string {
	var b strings.Builder
	for i := range 20 {
		fmt.Fprintf(&b, `,"%d%s":1`, i, strings.Repeat("k", manyBytes/4))
	}
	return b.String()
}

// logged gives a server a log of everything.
func logged(o Options) (*lines, Options) {
	log := newLines()
	o.Logger = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	return log, o
}

func TestNothingIsRepeatedAtLength(t *testing.T) {
	t.Parallel()
	long, keys := strings.Repeat("n", manyBytes), manyKeys()
	frames := map[string]string{
		"not JSON":         long,
		"key twice":        `{"` + long + `":1,"` + long + `":2}`,
		"type":             `{"type":"` + long + `"}`,
		"keys":             `{"type":"state"` + keys + `}`,
		"data":             `{"type":"step","data":"` + long + `"}`,
		"action":           `{"type":"step","data":{"type":"` + long + `"}}`,
		"action keys":      `{"type":"step","data":{"type":"call_tool","tool_name":"say"` + keys + `}}`,
		"tool":             stepFrame(long, "{}"),
		"argument":         stepFrame("say", `{"text":["`+long+`"]}`),
		"argument keys":    stepFrame("say", `{"text":"x"`+keys+`}`),
		"argument number":  stepFrame("say", `{"text":1`+strings.Repeat("0", manyBytes)+`}`),
		"seed":             `{"type":"reset","data":{"seed":"` + long + `"}}`,
		"seed number":      `{"type":"reset","data":{"seed":1` + strings.Repeat("0", manyBytes) + `}}`,
		"reset options":    `{"type":"reset","data":{"seed":1` + keys + `}}`,
		"mcp tool":         `{"type":"mcp","data":` + rpcCall(long, "{}", "") + `}`,
		"mcp keys":         `{"type":"mcp","data":{"jsonrpc":"2.0","id":1` + keys + `}}`,
		"mcp session":      `{"type":"mcp","data":` + rpcCall("say", "{}", long) + `}`,
		"bytes after JSON": `{"type":"state"} ` + long,
	}
	calls := map[string]string{
		"not JSON":      long,
		"keys":          `{"jsonrpc":"2.0","id":1,"method":"tools/list"` + keys + `}`,
		"version":       `{"jsonrpc":"` + long + `","id":1,"method":"tools/list"}`,
		"id":            `{"jsonrpc":"2.0","id":["` + long + `"],"method":"tools/list"}`,
		"method":        `{"jsonrpc":"2.0","id":1,"method":"` + long + `"}`,
		"params":        `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":"` + long + `"}`,
		"tool":          rpcCall(long, "{}", ""),
		"argument":      rpcCall("say", `{"text":["`+long+`"]}`, ""),
		"argument keys": rpcCall("say", `{"text":"x"`+keys+`}`, ""),
		"session":       rpcCall("say", "{}", long),
		"closing":       `{"jsonrpc":"2.0","id":1,"method":"openenv/session/close","params":{"session_id":"` + long + `"}}`,
	}
	bodies := map[string]string{
		"not JSON":      long,
		"no action":     `{"x":1` + keys + `}`,
		"action":        `{"action":"` + long + `"}`,
		"action keys":   `{"action":{"type":"list_tools"` + keys + `}}`,
		"tool":          `{"action":{"type":"call_tool","tool_name":"` + long + `"}}`,
		"argument keys": `{"action":{"type":"call_tool","tool_name":"say","arguments":{"text":"x"` + keys + `}}}`,
		"timeout":       `{"action":{"type":"list_tools"},"timeout_s":"` + long + `"}`,
		"request id":    `{"action":{"type":"list_tools"},"request_id":"` + long + `"}`,
	}
	for name, d := range map[string]struct {
		texts map[string]string
		send  func(t *testing.T, base, text string) (reply string)
	}{
		"/ws":        {frames, func(t *testing.T, base, text string) string { return dial(t, base+"/ws").ask(text) }},
		"/mcp":       {calls, func(t *testing.T, base, text string) string { return dial(t, base+"/mcp").ask(text) }},
		"POST /mcp":  {calls, func(t *testing.T, base, text string) string { _, reply := post(t, base+"/mcp", text); return reply }},
		"POST /step": {bodies, func(t *testing.T, base, text string) string { _, reply := post(t, base+"/step", text); return reply }},
		"agent": {calls, func(t *testing.T, base, text string) string {
			_, reply := post(t, base+"/mcp", text, "Accept", "application/json, text/event-stream", "Mcp-Session-Id", rawInitialize(t, base+"/mcp", "2025-11-25"))
			return reply
		}},
	} {
		log, o := logged(Options{})
		_, base := start(t, labEnv(), o)
		for what, text := range d.texts {
			t.Run(name+"/"+what, func(t *testing.T) {
				before := len(log.String())
				if reply := d.send(t, base, text); len(reply) == 0 || len(reply) > fewBytes {
					t.Errorf("%d bytes were answered with %d: %.300s", len(text), len(reply), reply)
				}
				if entries := log.String()[before:]; len(entries) > fewBytes {
					t.Errorf("%d bytes made %d of log: %.300s", len(text), len(entries), entries)
				}
			})
		}
	}
}

// The names that callers give go into the log in few places; in each they are cut.
func TestLongToolNamesStayOutOfTheLog(t *testing.T) {
	long := strings.Repeat("n", manyBytes)
	open := make(gate)
	panics := labEnv()
	panics.After = func(*lab, context.Context, gym.ToolCall) gym.Score { panic("boom") }
	for name, c := range map[string]struct {
		env    gym.Definition
		before string // a call that times out and goes on
	}{
		"waiting in vain": {env: labWith(tools.Func("deaf", "", open.deaf)), before: "deaf"},
		"scored by panic": {env: panics},
	} {
		t.Run(name, func(t *testing.T) {
			log, o := logged(Options{Sessions: session.Options{ToolTimeout: 50 * time.Millisecond}})
			_, base := start(t, c.env, o)
			id := createSession(t, base)
			if c.before != "" {
				post(t, base+"/mcp", rpcCall(c.before, "{}", id))
			}
			_, reply := post(t, base+"/mcp", rpcCall(long, "{}", id))
			if c.before != "" {
				close(open)
			}
			if len(reply) > fewBytes || len(log.String()) > fewBytes {
				t.Errorf("a reply of %d bytes, a log of %d: %.300s", len(reply), len(log.String()), log)
			}
		})
	}
}

func TestLongHeaders(t *testing.T) {
	long := strings.Repeat("n", manyBytes)
	for name, c := range map[string]struct {
		query   string
		headers []string
	}{
		"session":       {"?session_id=" + long, nil},
		"agent":         {"", []string{"Mcp-Session-Id", long}},
		"version":       {"", []string{"Mcp-Protocol-Version", "1" + long}},
		"later version": {"", []string{"Mcp-Protocol-Version", "9" + long}},
		"origin":        {"", []string{"Origin", "http://" + long}},
		"bad origin":    {"", []string{"Origin", ":" + long}},
		"accept":        {"", []string{"Accept", long}},
		"path":          {"/" + long, []string{"Origin", "http://evil.example"}},
	} {
		t.Run(name, func(t *testing.T) {
			log, o := logged(Options{})
			_, base := start(t, labEnv(), o)
			_, reply := post(t, base+"/mcp"+c.query, initializeBody, append([]string{"Accept", "application/json, text/event-stream"}, c.headers...)...)
			if len(reply) > fewBytes || len(log.String()) > fewBytes {
				t.Errorf("a reply of %d bytes, a log of %d: %.300s", len(reply), len(log.String()), log)
			}
		})
	}
}

// The SDK holds ids as floats: one that would come back changed is refused where the SDK serves.
func TestIDs(t *testing.T) {
	_, base := startLab(t, false)
	agent := []string{"Accept", "application/json, text/event-stream", "Mcp-Session-Id", rawInitialize(t, base+"/mcp", "2025-03-26")}
	for _, c := range []struct {
		id    string
		agent int
		bare  string // the start of the answer
	}{
		{`1`, http.StatusOK, `{"jsonrpc":"2.0","id":1,"error":{"code":-32601`},
		{`"a"`, http.StatusOK, `{"jsonrpc":"2.0","id":"a","error":{"code":-32601`},
		{`-9007199254740992`, http.StatusOK, `{"jsonrpc":"2.0","id":-9007199254740992,"error":{"code":-32601`},
		{`9007199254740992`, http.StatusOK, `{"jsonrpc":"2.0","id":9007199254740992,"error":{"code":-32601`},
		{`9007199254740993`, http.StatusBadRequest, `{"jsonrpc":"2.0","id":9007199254740993,"error":{"code":-32601`},
		{`-9007199254740993`, http.StatusBadRequest, `{"jsonrpc":"2.0","id":-9007199254740993,"error":{"code":-32601`},
		{`1` + strings.Repeat("0", 30), http.StatusBadRequest, `{"jsonrpc":"2.0","id":1` + strings.Repeat("0", 30) + `,"error":{"code":-32601`},
		{`3.5`, http.StatusBadRequest, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600`},
		{`1.0`, http.StatusBadRequest, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600`},
		{`1e2`, http.StatusBadRequest, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600`},
		{`true`, http.StatusBadRequest, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600`},
		{`[1]`, http.StatusBadRequest, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600`},
		{`{}`, http.StatusBadRequest, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600`},
	} {
		body := `{"jsonrpc":"2.0","id":` + c.id + `,"method":"ping"}`
		for _, sent := range []string{body, "[" + body + "]"} {
			status, reply := post(t, base+"/mcp", sent, agent...)
			if status != c.agent || status == http.StatusOK && !strings.Contains(reply, `"id":`+c.id+`,`) || status != http.StatusOK && !strings.Contains(reply, "53 bits") {
				t.Errorf("%s of an agent: got %d %s", sent, status, reply)
			}
		}
		if status, reply := post(t, base+"/mcp", body); status != http.StatusOK || !strings.HasPrefix(reply, c.bare) {
			t.Errorf("%s: got %d %s", body, status, reply)
		}
	}
}

// The same holds for the id of initialize, which the SDK answers too.
func TestIDsOfInitialize(t *testing.T) {
	_, base := startLab(t, false)
	for _, id := range []string{`3.5`, `9007199254740993`, `true`, `{}`} {
		status, reply := post(t, base+"/mcp", strings.Replace(initializeBody, `"id":1`, `"id":`+id, 1), "Accept", "application/json, text/event-stream")
		if status != http.StatusBadRequest || !strings.Contains(reply, "53 bits") {
			t.Errorf("id %s: got %d %.300s", id, status, reply)
		}
	}
}

func TestBatchLimit(t *testing.T) {
	srv, base := startLab(t, false)
	agent := []string{"Accept", "application/json, text/event-stream", "Mcp-Session-Id", rawInitialize(t, base+"/mcp", "2025-03-26")}
	batch := func(n int) string {
		calls := make([]string, n)
		for i := range calls {
			calls[i] = fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"point"}}`, i+1)
		}
		return "[" + strings.Join(calls, ",") + "]"
	}
	s := live(t, srv, labSession)
	for _, n := range []int{maxBatch + 1, 10_000} {
		status, reply := post(t, base+"/mcp", batch(n), agent...)
		if status != http.StatusBadRequest || !strings.Contains(reply, "at most 100") {
			t.Errorf("a batch of %d got %d %.200s", n, status, reply)
		}
	}
	if s.Steps() != 0 {
		t.Errorf("%d calls of refused batches were made", s.Steps())
	}
	if status, _ := post(t, base+"/mcp", batch(maxBatch), agent...); status != http.StatusOK || s.Steps() != maxBatch {
		t.Errorf("a batch of %d got %d and made %d calls", maxBatch, status, s.Steps())
	}
}

// Long messages at once are bounded together; who comes too much is told to come again, and others are unharmed.
func TestBudget(t *testing.T) {
	o := counted()
	o.MaxMessage, o.MaxInFlight = 1<<20, 3<<19
	srv, base := start(t, labEnv(), o)
	long := func(tool, args string) string {
		return strings.Replace(rpcCall(tool, args, ""), `"params"`, strings.Repeat(" ", 800_000)+`"params"`, 1)
	}
	holder := dial(t, base+"/mcp")
	holder.send(long("wait", "{}"))
	s := live(t, srv, labSession)
	waitFor(t, "the call", func() bool { return s.Busy() == 1 })
	other := dial(t, base+"/mcp")
	if got := other.ask(rpcCall("say", `{"text":"x"}`, "")); !strings.Contains(got, `"data":"x"`) {
		t.Fatalf("got %s", got)
	}
	status, reply := post(t, base+"/mcp", long("say", `{"text":"x"}`))
	if status != http.StatusServiceUnavailable || !strings.Contains(reply, "try again") {
		t.Errorf("a long body got %d %.200s", status, reply)
	}
	if status, reply := post(t, base+"/step", long("say", `{}`)); status != http.StatusServiceUnavailable {
		t.Errorf("a long body got %d %.200s", status, reply)
	}
	late := dial(t, base+"/ws")
	late.send(long("say", `{"text":"x"}`))
	if _, _, err := late.Read(t.Context()); websocket.CloseStatus(err) != websocket.StatusTryAgainLater {
		t.Errorf("a long frame got %v", err)
	}
	if got := other.ask(rpcCall("say", `{"text":"x"}`, "")); !strings.Contains(got, `"data":"x"`) {
		t.Errorf("a short one got %s", got)
	}
	holder.CloseNow()
	waitFor(t, "room", func() bool { return srv.budget.used.Load() == 0 })
	if status, reply := post(t, base+"/mcp", long("say", `{"text":"x"}`)); status != http.StatusOK || !strings.Contains(reply, `"data":"x"`) {
		t.Errorf("then it got %d %.200s", status, reply)
	}
	waitFor(t, "room", func() bool { return srv.budget.used.Load() == 0 })
}

// A long message of a client that has initialised counts until it is answered, or its part has ended.
func TestBudgetOfAgents(t *testing.T) {
	for name, leave := range map[string]func(c wsClient, open gate){
		"answered": func(_ wsClient, open gate) { close(open) },
		"gone":     func(c wsClient, _ gate) { c.CloseNow() },
	} {
		t.Run(name, func(t *testing.T) {
			open := make(gate)
			srv, base := start(t, labWith(tools.Func("deaf", "", open.deaf)), counted())
			c := dial(t, base+"/mcp")
			become(t, c)
			c.send(strings.Replace(rpcCall("deaf", "{}", ""), `"params"`, strings.Repeat(" ", 800_000)+`"params"`, 1))
			s := live(t, srv, labSession)
			waitFor(t, "the call", func() bool { return s.Busy() == 1 })
			c.ask(`{"jsonrpc":"2.0","id":"p","method":"ping"}`) // by now the frame is the SDK's
			if held := srv.budget.used.Load(); held < 800_000 {
				t.Errorf("%d bytes are counted", held)
			}
			leave(c, open)
			waitFor(t, "room", func() bool { return srv.budget.used.Load() == 0 })
			if name == "gone" {
				close(open)
			}
		})
	}
}

// Who announces too much is told so at once, and does not have to send it.
func TestAnnouncedTooMuch(t *testing.T) {
	o := counted()
	o.MaxMessage = 1000
	_, base := start(t, labEnv(), o)
	for _, path := range []string{"/mcp", "/step", "/reset"} {
		w := dialWire(t, base, "POST "+path+"\nContent-Type: application/json\nContent-Length: 900000000", "{")
		begin := time.Now()
		res, err := http.ReadResponse(w.in, nil)
		if err != nil || res.StatusCode != http.StatusRequestEntityTooLarge {
			t.Errorf("%s: %v, %v", path, res, err)
		}
		if took := time.Since(begin); took > readTimeout/2 {
			t.Errorf("%s: the answer took %v", path, took)
		}
		w.Close()
	}
}

// Callers are counted apart by their addresses, those of one IPv6 network together; and those who have rested are forgotten.
func TestLimitKeys(t *testing.T) {
	for remote, want := range map[string]string{
		"127.0.0.1:5": "127.0.0.1", "[::ffff:10.0.0.1]:5": "10.0.0.1", "[2001:db8:1:2:3:4:5:6]:5": "2001:db8:1:2::/64", "[fe80::1%eth0]:5": "fe80::/64", "@": "@",
	} {
		if got := limitKey(&http.Request{RemoteAddr: remote}); got != want {
			t.Errorf("%s: %s, want %s", remote, got, want)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		l := newLimits(1, 0)
		for i := range maxBuckets {
			l.allow(&http.Request{RemoteAddr: fmt.Sprint(i)})
		}
		time.Sleep(sweepEvery)
		l.allow(&http.Request{RemoteAddr: "another"})
		if n := len(l.buckets); n != 1 {
			t.Errorf("%d callers are remembered", n)
		}
	})
}
