package soak

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// The parts that keep the rules. Every reply is held to be the right one, in order, with the right counters.

var parts = []part{
	{"trainer", 24, trainer},
	{"trainer, frames ahead", 8, pipeliner},
	{"trainer that stays", 1, steady},
	{"trainer and agents", 8, withAgents},
	{"agent alone", 3, agentAlone},
	{"agent that ends in a call", 2, agentEnds},
	{"created, attached and called", 8, attached},
	{"taken over", 3, takenOver},
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

// steady has one session until the load stops, and steps now and then. A few do so.
func steady(a *actor) error {
	c, err := a.open("/ws")
	if err != nil {
		return err
	}
	defer c.Close()
	stays := a.staying.Add(1) <= maxStaying
	defer a.staying.Add(-1)
	sum, n := 0, 0
	for ; n < 20 || stays && a.phase.Err() == nil; n++ {
		if err := a.add(c, &sum); err != nil {
			return err
		}
		a.pause(20)
	}
	return errors.Join(a.wantState(c, n, n), a.leave(c))
}

const maxStaying = 4

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

// takenOver attaches to a session that another socket has, as a client does that is faster than the server's notice of its
// loss.
func takenOver(a *actor) error {
	first, err := a.open("/ws?resume=20")
	if err != nil {
		return err
	}
	defer func() { first.Close() }()
	own, err := a.mcpFrame(first, "openenv/session/create")
	if err != nil {
		return err
	}
	sum, n := 0, 1+a.IntN(4)
	for range n {
		if err := a.add(first, &sum); err != nil {
			return err
		}
		next, err := dial(a.server.addr, "/ws?resume=20&session_id="+own.Result.SessionID)
		if err != nil {
			return err
		}
		if err := next.send(`{"type":"state"}`); err != nil {
			return err
		}
		a.pause(10)
		first.reset()
		first = next
		if r, text, err := first.reply(); err != nil || r.Type != "state" {
			return fmt.Errorf("taking over: %w: %.300s", err, text)
		}
		a.replies.Add(1)
	}
	return errors.Join(a.wantState(first, n, n), first.send(`{"type":"close"}`), first.closedWith(1000))
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
