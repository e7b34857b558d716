package soak

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The parts that keep the rules. Every reply is held to be the right one, in order, with the right counters.

var parts = []part{
	{"trainer", 24, trainer},
	{"trainer, frames ahead", 8, pipeliner},
	{"trainer and agents", 8, withAgents},
	{"created, attached and called", 8, attached},
	{"resumed after cuts", 10, resumed},
	{"single requests", 4, single},
	{"left to the reaper", 2, abandoned},
	{"never resumed", 1, neverResumed},

	{"fault: killed in a step", 8, killed},
	{"fault: half open", 2, halfOpen},
	{"fault: stops reading", 3, stopsReading},
	{"fault: dribbled bytes", 3, dribbled},
	{"fault: odd messages", 4, oddMessages},
	{"fault: broken sockets", 4, brokenSocket},
	{"fault: flood", 3, flood},
	{"fault: tools fail", 6, failingTools},
	{"fault: crowd", 2, crowd},
	{"fault: half a request", 2, halfRequest},
	{"fault: agent killed in a call", 2, killedAgent},
}

// trainer runs episodes, one step at a time.
func trainer(a *actor) error {
	c, err := a.open("/ws")
	if err != nil {
		return err
	}
	defer c.Close()
	for range 1 + a.IntN(3) {
		if err := a.reset(c); err != nil {
			return err
		}
		sum, n := 0, 1+a.IntN(60)
		for range n {
			start := time.Now()
			if err := a.add(c, &sum); err != nil {
				return err
			}
			took := time.Since(start)
			a.mu.Lock()
			a.latency.add(took)
			a.mu.Unlock()
		}
		if err := a.wantState(c, n, n); err != nil {
			return err
		}
	}
	return a.leave(c)
}

// pipeliner sends frames without awaiting the replies, which come in order all the same.
func pipeliner(a *actor) error {
	c, err := a.open("/ws")
	if err != nil {
		return err
	}
	defer c.Close()
	return errors.Join(a.pipeline(c, 1+a.IntN(100)), a.leave(c))
}

// pipeline sends so many steps at once, whoever reads.
func (a *actor) pipeline(c *conn, n int) error {
	sent := make(chan error, 1)
	go func() {
		for i := range n {
			if err := c.send(step("add", fmt.Sprintf(`{"n":%d}`, i+1), fmt.Sprintf(`,"request_id":"%d"`, i))); err != nil {
				sent <- err
				return
			}
		}
		sent <- nil
	}()
	sum := 0
	for i := range n {
		sum += i + 1
		r, text, err := c.reply()
		if err == nil {
			err = r.want(strconv.Itoa(sum))
		}
		if err == nil && r.RequestID != strconv.Itoa(i) {
			err = fmt.Errorf("got %.300s in place %d", text, i)
		}
		if err != nil {
			c.Close() // ends the sender
			return errors.Join(fmt.Errorf("reply %d of %d: %w", i, n, err), <-sent)
		}
		a.replies.Add(1)
	}
	return errors.Join(<-sent, a.wantState(c, n, n))
}

// mcpFrame asks a JSON-RPC method on a socket.
func (a *actor) mcpFrame(c *conn, method string) (r rpcReply, err error) {
	got, text, err := c.ask(`{"type":"mcp","data":{"jsonrpc":"2.0","id":1,"method":"` + method + `"}}`)
	if err == nil {
		err = json.Unmarshal(got.Data.Result, &r.Result)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w: %.300s", method, err, text)
	}
	return r, err
}

// withAgents is a trainer whose session agents use meanwhile.
func withAgents(a *actor) error {
	c, err := a.open("/ws")
	if err != nil {
		return err
	}
	defer c.Close()
	minted, err := a.mcpFrame(c, "openenv/session/agent")
	if err != nil {
		return err
	}
	const each = 10
	play := []func(handle, url string) error{a.bareAgent, a.sdkAgent}
	agents := 1 + a.IntN(2) // of both kinds, or one
	first := a.IntN(2)
	failed := make(chan error, agents)
	for i := range agents {
		go func() { failed <- play[(first+i)%2](minted.Result.Handle, minted.Result.URL) }()
	}
	last := 0
	for range each { // agents add 1, the trainer adds nothing and sees their sum grow
		r, _, err := c.ask(step("add", `{"n":0}`, ""))
		var sum int
		if err == nil {
			sum, err = strconv.Atoi(r.data())
		}
		if err == nil && (sum < last || sum > agents*each) {
			err = fmt.Errorf("the sum went from %d to %d", last, sum)
		}
		if err != nil {
			c.Close()
			for range agents {
				<-failed // they fail with the session
			}
			return err
		}
		last = sum
		a.replies.Add(1)
	}
	for range agents {
		if e := <-failed; e != nil {
			err = errors.Join(err, fmt.Errorf("agent: %w", e))
		}
	}
	sum := agents * each
	if err == nil {
		err = a.add(c, &sum)
	}
	if err == nil {
		err = a.wantState(c, (agents+1)*each+1, (agents+1)*each+1)
	}
	return errors.Join(err, a.leave(c))
}

// grows holds an agent's results to grow by at least 1 each time.
func (l *load) grows(last *int, text string) error {
	sum, err := strconv.Atoi(text)
	if err == nil && sum <= *last {
		err = fmt.Errorf("the sum went from %d to %d", *last, sum)
	}
	*last = sum
	l.replies.Add(1)
	return err
}

// bareAgent calls without a handshake, over HTTP or a WebSocket.
func (a *actor) bareAgent(handle, _ string) error {
	const params = `{"name":"add","arguments":{"n":1}}`
	call := func() (rpcReply, error) { return a.rpc("/mcp/"+handle, "tools/call", params) }
	if handle[0]%2 == 0 { // handles are random
		c, err := dial(a.server.addr, "/mcp/"+handle)
		if err != nil {
			return err
		}
		defer c.Close()
		call = func() (r rpcReply, err error) {
			err = c.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":` + params + `}`)
			var text []byte
			if err == nil {
				text, err = c.receive()
			}
			if err == nil {
				err = json.Unmarshal(text, &r)
			}
			return r, err
		}
	}
	last := 0
	for range 10 {
		r, err := call()
		if err == nil && r.Error != nil {
			err = fmt.Errorf("got %d %s", r.Error.Code, r.Error.Message)
		}
		if err == nil {
			err = a.grows(&last, string(r.Result.Data))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// sdkAgent is the Go SDK's client.
func (a *actor) sdkAgent(_, url string) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	client := mcp.NewClient(&mcp.Implementation{Name: "soak", Version: "1"}, nil)
	cs, err := client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: url, HTTPClient: a.http}, nil)
	if err != nil {
		return fmt.Errorf("connecting: %w", err)
	}
	defer cs.Close()
	last := 0
	for range 10 {
		res, err := cs.CallTool(ctx, &mcp.CallToolParams{Name: "add", Arguments: map[string]any{"n": 1}})
		if err == nil && (res.IsError || len(res.Content) != 1) {
			err = fmt.Errorf("got %+v", res)
		}
		if err == nil {
			err = a.grows(&last, res.Content[0].(*mcp.TextContent).Text)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// attached is what OpenEnv's MCP client does: a session that is created, used over HTTP and by a socket, and closed. The
// server may have taken the session for idle if this client was slow.
func attached(a *actor) error {
	begun := time.Now()
	made, err := a.rpc("/mcp", "openenv/session/create", `{}`)
	if err == nil {
		err = a.refused(made)
	}
	if err != nil {
		return err
	}
	id := made.Result.SessionID
	c, err := dial(a.server.addr, "/ws?session_id="+id)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := a.reset(c); err != nil {
		if strings.Contains(err.Error(), "unknown session") && time.Since(begun) > idleTimeout {
			a.count("taken for idle")
			return nil
		}
		return err
	}
	sum, n := 0, 1+a.IntN(8)
	for range n {
		if err := a.add(c, &sum); err != nil {
			return err
		}
		sum++
		r, err := a.rpc("/mcp", "tools/call", `{"name":"add","arguments":{"n":1},"session_id":"`+id+`"}`)
		if err == nil && (r.Error != nil || string(r.Result.Data) != strconv.Itoa(sum)) {
			err = fmt.Errorf("got %+v, want %d", r, sum)
		}
		if err != nil {
			return err
		}
		a.replies.Add(1)
	}
	begun = time.Now()
	if err := a.wantState(c, 2*n, 2*n); err != nil {
		return err
	}
	if a.odds(2) { // the socket goes first
		if err := a.leave(c); err != nil {
			return err
		}
	}
	r, err := a.rpc("/mcp", "openenv/session/close", `{"session_id":"`+id+`"}`)
	switch {
	case err != nil:
		return err
	case r.Error != nil && strings.Contains(r.Error.Message, "unknown session") && time.Since(begun) > idleTimeout:
		a.count("taken for idle")
	case r.Error != nil || !r.Result.Closed && !r.Result.Closing:
		return fmt.Errorf("closing: got %+v", r)
	}
	return nil
}

// resumed cuts its socket again and again, comes back, and asks again for what it has asked for.
func resumed(a *actor) error {
	const query = "resume=20"
	c, err := a.open("/ws?" + query)
	if err != nil {
		return err
	}
	defer func() { c.Close() }()
	own, err := a.mcpFrame(c, "openenv/session/create")
	if err != nil {
		return err
	}
	var frames, keys []string
	for i := range 1 + a.IntN(6) {
		key := fmt.Sprintf("%s-%d", own.Result.SessionID, i)
		keys = append(keys, key)
		frames = append(frames, step("charge", fmt.Sprintf(`{"key":%q,"ms":%d}`, key, a.IntN(10)), fmt.Sprintf(`,"request_id":%q`, key)))
	}
	replies := make([][]byte, len(frames)) // what has been answered already
	for cuts := 1 + a.IntN(3); cuts >= 0; cuts-- {
		for _, f := range frames {
			if err := c.send(f); err != nil {
				return err
			}
		}
		read := len(frames)
		if cuts > 0 {
			read = a.IntN(len(frames) + 1)
		}
		for i := range read {
			r, text, err := c.reply()
			if err == nil {
				err = r.want(fmt.Sprintf(`"%s: 1"`, keys[i]))
			}
			if err == nil && (r.RequestID != keys[i] || replies[i] != nil && !bytes.Equal(replies[i], text)) {
				err = fmt.Errorf("got %s, and before %s", text, replies[i])
			}
			if err != nil {
				return fmt.Errorf("reply %d of %d, %d cuts to come: %w", i, len(frames), cuts, err)
			}
			replies[i] = text
			a.replies.Add(1)
		}
		if cuts > 0 {
			a.pause(5)
			if a.odds(2) {
				c.reset()
			} else {
				c.Close()
			}
			if c, err = dial(a.server.addr, "/ws?session_id="+own.Result.SessionID+"&"+query); err != nil {
				return err
			}
			a.count("resumptions")
		}
	}
	if err := a.wantState(c, len(frames), 0); err != nil {
		return err
	}
	for _, key := range keys {
		err = errors.Join(err, a.charged(key))
	}
	return errors.Join(err, c.send(`{"type":"close"}`), c.closedWith(1000))
}

// single makes requests on sessions of their own.
func single(a *actor) error {
	for range 1 + a.IntN(4) {
		status, text, _, err := a.post("/step", `{"action":{"type":"call_tool","tool_name":"add","arguments":{"n":7}}}`)
		switch {
		case err != nil:
			return err
		case status == http.StatusServiceUnavailable:
			a.count("refused: full")
		case status == http.StatusInternalServerError && strings.Contains(string(text), "could not be built"):
			a.count("refused: factory")
		case status != http.StatusOK || !strings.Contains(string(text), `"data":7`):
			return fmt.Errorf("got %d %.300s", status, text)
		default:
			a.replies.Add(1)
		}
	}
	return nil
}

// abandoned makes a session and forgets it.
func abandoned(a *actor) error {
	made, err := a.rpc("/mcp", "openenv/session/create", `{}`)
	if err == nil {
		err = a.refused(made)
	}
	return err
}

// neverResumed asks its session to wait, and does not come back.
func neverResumed(a *actor) error {
	c, err := a.open("/ws?resume=0.5")
	if err != nil {
		return err
	}
	sum := 0
	err = a.add(c, &sum)
	c.reset()
	return err
}

// crowd wants many sessions at once.
func crowd(a *actor) error {
	const n = 12
	var wg sync.WaitGroup
	errs := make([]error, n)
	rngs := make([]int, n)
	for i := range n {
		rngs[i] = a.IntN(1000)
	}
	for i := range n {
		wg.Go(func() {
			c, err := a.open("/ws")
			if err != nil {
				if !errors.Is(err, errRefused) {
					errs[i] = err
				}
				return
			}
			defer c.Close()
			r, _, err := c.ask(step("add", fmt.Sprintf(`{"n":%d}`, rngs[i]), ""))
			if err == nil {
				err = r.want(strconv.Itoa(rngs[i]))
			}
			a.replies.Add(1)
			errs[i] = err
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}
