package soak

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

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

// agentAlone is an MCP client with a session of its own, which ends with its goodbye.
func agentAlone(a *actor) error {
	err := a.sdkAgent("", "http://"+a.server.addr+"/mcp")
	switch {
	case err == nil:
		return nil
	case strings.Contains(err.Error(), "Service Unavailable"):
		a.count("refused: full")
		return errRefused
	case strings.Contains(err.Error(), "Internal Server Error"): // what the server says, the SDK does not tell
		a.count("refused: factory")
		return errRefused
	}
	return err
}

// initialize initialises without a library and returns the client's Mcp-Session-Id.
func (a *actor) initialize(client *http.Client) (id string, err error) {
	status, text, head, err := a.request(client, http.MethodPost, "/mcp", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"soak","version":"1"}}}`)
	switch id = head.Get("Mcp-Session-Id"); {
	case err != nil:
		return "", fmt.Errorf("initialize: %w", err)
	case status == http.StatusServiceUnavailable:
		a.count("refused: full")
		return "", errRefused
	case status == http.StatusInternalServerError && strings.Contains(string(text), "could not be built"):
		a.count("refused: factory")
		return "", errRefused
	case status != http.StatusOK || id == "":
		return "", fmt.Errorf("initialize got %d %.300s", status, text)
	}
	a.replies.Add(1)
	return id, nil
}

// agentEnds says goodbye while a call of its own runs, and goes on using its connections after a while.
func agentEnds(a *actor) error {
	client := &http.Client{Transport: &http.Transport{}, Timeout: patience}
	defer client.CloseIdleConnections()
	id, err := a.initialize(client)
	if err != nil {
		return err
	}
	agent := []string{"Mcp-Session-Id", id, "Mcp-Protocol-Version", "2025-11-25"}
	called := make(chan error, 1)
	go func() {
		_, _, _, err := a.request(client, http.MethodPost, "/mcp", `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"wait","arguments":{"ms":500}}}`, agent...)
		called <- err
	}()
	a.pause(30)
	status, text, _, err := a.request(client, http.MethodDelete, "/mcp", "", agent...)
	if err == nil && status != http.StatusNoContent {
		err = fmt.Errorf("got %d %s", status, text)
	}
	if err = errors.Join(err, <-called); err != nil {
		return fmt.Errorf("goodbye: %w", err)
	}
	select {
	case <-time.After(2500 * time.Millisecond): // more than an ending agent's answers are given
	case <-a.phase.Done():
	}
	for range 2 {
		status, text, _, err := a.request(client, http.MethodPost, "/mcp", `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		if err != nil || status != http.StatusAccepted {
			return fmt.Errorf("a later request got %d %s, %w", status, text, err)
		}
		a.replies.Add(1)
	}
	return nil
}
