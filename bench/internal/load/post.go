package load

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"

	"github.com/openenv-go/openenv-go/bench/internal/wire"
)

// A post is a connection that is kept alive, for one POST after another.
type post struct {
	exchange
	dialer *dialer
	addr   string
	head   []byte // of all its requests
	conn   net.Conn
	reader *bufio.Reader
	writer *bufio.Writer
	bye    func() error // nil: there is nothing to end but the connection
}

// postKind is what is posted.
type postKind struct {
	path string
	// open opens a session by the connection. It may add to the path and the header of all requests that follow.
	open    func(p *post, t Target) (session, query, header string, err error)
	request requestOf
	judge   func(reply []byte, message string) error
}

var (
	postMCP          = postKind{"/mcp", createSession, rpcCall, wire.JudgeBare}
	postMCPTemporary = postKind{"/mcp", nil, rpcCall, wire.JudgeBare}
	streamable       = postKind{"/mcp", initialize, rpcCall, wire.JudgeMCP}
	postStep         = postKind{"/step", func(p *post, t Target) (_, query, _ string, err error) {
		id, _, _, err := createSession(p, t)
		return "", "?session_id=" + id, "", err
	}, stepBody, wire.JudgeObservation}
	postStepTemporary = postKind{"/step", nil, stepBody, wire.JudgeObservation}
)

func rpcCall(_ Target, session, text, id string) []byte {
	var n int
	fmt.Sscan(id, &n)
	return mustMarshal(wire.NewCall(session, text, n))
}

func stepBody(t Target, _, text, _ string) []byte {
	if t.Seconds != 0 {
		return mustMarshal(map[string]any{"action": waitAction(t, text)})
	}
	return mustMarshal(map[string]any{"action": wire.NewStepFrame(text).Data})
}

func openPost(kind postKind) func(context.Context, Target, *dialer, *plan, int) (Session, error) {
	return func(ctx context.Context, t Target, d *dialer, pl *plan, client int) (Session, error) {
		p := &post{exchange: exchange{plan: pl, client: client, judge: kind.judge}, dialer: d, addr: t.Addr}
		if err := p.connect(ctx); err != nil {
			return nil, err
		}
		stop := context.AfterFunc(ctx, func() { p.conn.Close() })
		defer stop()
		if err := p.begin(t, kind); err != nil {
			p.conn.Close()
			return nil, err
		}
		return p, nil
	}
}

func (p *post) connect(ctx context.Context) (err error) {
	if p.conn, err = p.dialer.dial(ctx, p.addr); err != nil {
		return err
	}
	p.reader, p.writer = bufio.NewReader(p.conn), bufio.NewWriter(p.conn)
	return nil
}

// begin opens the session and sends the request by which the client learns, if it must.
func (p *post) begin(t Target, kind postKind) (err error) {
	query, header, path := "", "", kind.path
	if t.Path != "" {
		path = t.Path
	}
	if kind.open != nil && !t.Bare {
		p.setHead("/mcp", "")
		if p.session, query, header, err = kind.open(p, t); err != nil {
			return fmt.Errorf("opening a session: %w", err)
		}
	}
	p.setHead(path+query, header)
	first := p.plan.ask(p.client, p.session, func(text, id string) []byte { return kind.request(t, p.session, text, id) })
	if first == nil {
		return p.Step(learning) // servers close connections that send nothing
	}
	reply, _, err := p.ask(first)
	if err == nil {
		err = p.plan.learn(reply, p.client, p.judge)
	}
	if err != nil {
		return fmt.Errorf("the first request: %w", err)
	}
	return nil
}

func (p *post) setHead(path, header string) {
	p.head = []byte("POST " + path + " HTTP/1.1\r\nHost: " + p.addr + "\r\nContent-Type: application/json\r\n" +
		"Accept: application/json, text/event-stream\r\n" + header + "Content-Length: ")
}

// createSession opens a session of OpenEnv's.
func createSession(p *post, _ Target) (session, query, header string, err error) {
	answer, _, err := p.ask([]byte(`{"jsonrpc":"2.0","id":1,"method":"openenv/session/create","params":{}}`))
	if err != nil {
		return "", "", "", err
	}
	var a struct {
		Result struct {
			ID string `json:"session_id"`
		} `json:"result"`
	}
	if err := json.Unmarshal(answer, &a); err != nil || a.Result.ID == "" {
		return "", "", "", fmt.Errorf("got %.200s", answer)
	}
	p.bye = func() error {
		p.setHead("/mcp", "")
		answer, _, err := p.ask(mustMarshal(map[string]any{"jsonrpc": "2.0", "id": 2, "method": "openenv/session/close",
			"params": map[string]any{"session_id": a.Result.ID}}))
		if err == nil && !bytes.Contains(answer, []byte(`"clos`)) {
			err = fmt.Errorf("closing the session: got %.200s", answer)
		}
		return err
	}
	return a.Result.ID, "", "", nil
}

// protocolVersion is the newest revision of MCP that has sessions.
const protocolVersion = "2025-11-25"

// initialize opens a session of MCP's.
func initialize(p *post, _ Target) (session, query, header string, err error) {
	answer, h, err := p.ask([]byte(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"` + protocolVersion +
		`","capabilities":{},"clientInfo":{"name":"bench","version":"1.0.0"}}}`))
	if err != nil {
		return "", "", "", err
	}
	id := h.Get("Mcp-Session-Id")
	if id == "" || !bytes.Contains(answer, []byte(protocolVersion)) {
		return "", "", "", fmt.Errorf("initialize: got %.200s with the session %q", answer, id)
	}
	header = "Mcp-Session-Id: " + id + "\r\nMcp-Protocol-Version: " + protocolVersion + "\r\n"
	p.setHead("/mcp", header)
	if _, _, err := p.ask([]byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)); err != nil {
		return "", "", "", err
	}
	p.bye = func() error {
		p.head = append([]byte("DELETE"), bytes.TrimPrefix(p.head, []byte("POST"))...)
		_, _, err := p.ask(nil)
		return err
	}
	return "", "", header, nil
}

// ask posts a body and returns the answer's.
func (p *post) ask(body []byte) ([]byte, http.Header, error) {
	res, err := p.roundTrip(body)
	if err != nil {
		return nil, nil, err
	}
	answer, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode/100 != 2 {
		err = fmt.Errorf("%s: %.200s", res.Status, answer)
	}
	return answer, res.Header, err
}

var postRequest = &http.Request{Method: http.MethodPost}

// roundTrip sends a request and reads the head of its answer.
func (p *post) roundTrip(body []byte) (*http.Response, error) {
	p.writer.Write(p.head)
	fmt.Fprintf(p.writer, "%d\r\n\r\n", len(body))
	p.writer.Write(body)
	if err := p.writer.Flush(); err != nil {
		return nil, err
	}
	return http.ReadResponse(p.reader, postRequest)
}

// Step posts a request and checks the answer.
func (p *post) Step(n int) error {
	res, err := p.roundTrip(p.request(n))
	if err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK {
		answer, _ := io.ReadAll(res.Body)
		return fmt.Errorf("%s: %.200s", res.Status, answer)
	}
	if err := p.check(n, func(to io.Writer) error { return copyTo(to, res.Body, -1) }); err != nil {
		return err
	}
	if res.Close {
		p.conn.Close()
		return p.connect(context.Background())
	}
	return nil
}

// Close ends the session and the connection.
func (p *post) Close() error {
	defer p.conn.Close()
	if p.bye == nil {
		return nil
	}
	return p.bye()
}

// Cut ends the connection.
func (p *post) Cut() { p.conn.Close() }
