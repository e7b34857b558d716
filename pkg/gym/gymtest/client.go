package gymtest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/coder/websocket"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/openenv-go/openenv-go/pkg/transport"
)

// patience bounds one exchange, in fake time. The server's own deadlines are shorter.
const patience = time.Hour

func bounded() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), patience)
}

// request makes one HTTP request with a body of JSON.
func (s *served) request(method, path string, body []byte) (status int, reply []byte, err error) {
	ctx, cancel := bounded()
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, base+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	res, err := s.web.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer res.Body.Close()
	reply, err = io.ReadAll(res.Body)
	return res.StatusCode, reply, err
}

// get fetches a document of the server's into v.
func (s *served) get(path string, v any) error {
	status, reply, err := s.request(http.MethodGet, path, nil)
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("GET %s: status %d: %s", path, status, clip(string(reply)))
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(reply, v)
}

// createSession opens a session that is no socket's.
func (s *served) createSession() (id string, err error) {
	status, reply, err := s.request(http.MethodPost, "/mcp", rpcRequest("openenv/session/create", nil))
	if err != nil {
		return "", err
	}
	return sessionID(status, reply)
}

func sessionID(status int, reply []byte) (string, error) {
	var r struct {
		Result struct {
			SessionID string `json:"session_id"`
		} `json:"result"`
	}
	if err := json.Unmarshal(reply, &r); err != nil || r.Result.SessionID == "" {
		return "", fmt.Errorf("no session was opened: status %d: %s", status, clip(string(reply)))
	}
	return r.Result.SessionID, nil
}

func rpcRequest(method string, params any) []byte {
	return []byte(jsonOf(struct {
		JSONRPC string `json:"jsonrpc"`
		ID      int    `json:"id"`
		Method  string `json:"method"`
		Params  any    `json:"params,omitempty"`
	}{"2.0", 1, method, params}))
}

// A socket is a WebSocket that speaks JSON text.
type socket struct{ conn *websocket.Conn }

func (s *served) dial(path string) (*socket, error) {
	ctx, cancel := bounded()
	defer cancel()
	c, _, err := websocket.Dial(ctx, "ws"+strings.TrimPrefix(base, "http")+path, &websocket.DialOptions{HTTPClient: s.web})
	if err != nil {
		return nil, err
	}
	c.SetReadLimit(transport.DefaultMaxMessage)
	return &socket{c}, nil
}

func (k *socket) send(text []byte) error {
	ctx, cancel := bounded()
	defer cancel()
	return k.conn.Write(ctx, websocket.MessageText, text)
}

func (k *socket) ask(text []byte) ([]byte, error) {
	if err := k.send(text); err != nil {
		return nil, err
	}
	ctx, cancel := bounded()
	defer cancel()
	_, b, err := k.conn.Read(ctx)
	return b, err
}

// cut drops the connection without a word.
func (k *socket) cut() { _ = k.conn.CloseNow() }

// frame is a frame of the gym channel.
type frame struct {
	Type string          `json:"type"`
	Data json.RawMessage `json:"data,omitempty"`
}

// exchange asks for one frame of the gym channel. A frame of type error is an answer too.
func (k *socket) exchange(typ string, data json.RawMessage) (frame, []byte, error) {
	raw, err := k.ask([]byte(jsonOf(frame{typ, data})))
	if err != nil {
		return frame{}, nil, err
	}
	var f frame
	if err := json.Unmarshal(raw, &f); err != nil {
		return frame{}, raw, fmt.Errorf("%w in %s", err, clip(string(raw)))
	}
	return f, raw, nil
}

// expect is exchange for an answer of one type.
func (k *socket) expect(typ string, data json.RawMessage, want string) (json.RawMessage, []byte, error) {
	f, raw, err := k.exchange(typ, data)
	if err == nil && f.Type != want {
		err = fmt.Errorf("a %s frame was answered by %s", typ, clip(string(raw)))
	}
	return f.Data, raw, err
}

// sessionID asks for the id of the socket's own session.
func (k *socket) sessionID() (string, error) {
	data, _, err := k.expect("mcp", rpcRequest("openenv/session/create", nil), "mcp")
	if err != nil {
		return "", err
	}
	return sessionID(0, data)
}

// agent connects the SDK's client to a session, as one that initialises.
func (s *served) agent(id string) (*mcp.ClientSession, error) {
	ctx, cancel := bounded()
	defer cancel()
	client := mcp.NewClient(&mcp.Implementation{Name: "gymtest", Version: "1"}, nil)
	return client.Connect(ctx, &mcp.StreamableClientTransport{
		Endpoint: base + "/mcp?session_id=" + id, HTTPClient: s.web, DisableStandaloneSSE: true,
	}, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
}
