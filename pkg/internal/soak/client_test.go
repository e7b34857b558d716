package soak

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// patience bounds any single exchange with the server. What takes longer counts as lost.
const patience = 30 * time.Second

// Opcodes of RFC 6455, section 5.2.
const (
	opText   = 1
	opBinary = 2
	opClose  = 8
	opPing   = 9
	opPong   = 10
)

// A conn is a client's end of a WebSocket, without a library between, so that it can do what no library does.
type conn struct {
	*net.TCPConn
	in *bufio.Reader
}

// dial opens a WebSocket.
func dial(addr, path string) (*conn, error) {
	c, err := connect(addr)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n", path, addr)
	res, err := http.ReadResponse(c.in, nil)
	if err == nil && res.StatusCode != http.StatusSwitchingProtocols {
		err = fmt.Errorf("the upgrade got %s", res.Status)
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

func connect(addr string) (*conn, error) {
	t, err := net.DialTimeout("tcp", addr, patience)
	if err != nil {
		return nil, err
	}
	t.SetDeadline(time.Now().Add(patience))
	return &conn{t.(*net.TCPConn), bufio.NewReader(t)}, nil
}

// reset closes the connection so that the server sees a reset.
func (c *conn) reset() {
	c.SetLinger(0)
	c.Close()
}

// frame is a frame, masked with zeros. final is false for all fragments of a message but the last.
func frame(opcode byte, final bool, payload string) []byte {
	b := []byte{opcode, 0x80 | 127}
	if final {
		b[0] |= 0x80
	}
	if n := len(payload); n < 126 {
		b[1] = 0x80 | byte(n)
	} else {
		b = binary.BigEndian.AppendUint64(b, uint64(n))
	}
	return append(append(b, 0, 0, 0, 0), payload...)
}

func (c *conn) send(text string) error {
	c.SetDeadline(time.Now().Add(patience))
	_, err := c.Write(frame(opText, true, text))
	return err
}

// A closedError is a close frame that the server sent.
type closedError struct {
	code   int
	reason string
}

func (e *closedError) Error() string { return fmt.Sprintf("closed with %d %s", e.code, e.reason) }

// next reads a frame.
func (c *conn) next() (opcode byte, final bool, payload []byte, err error) {
	var head [8]byte
	if _, err = io.ReadFull(c.in, head[:2]); err != nil {
		return 0, false, nil, err
	}
	opcode, final = head[0]&0x0f, head[0]&0x80 != 0
	n := uint64(head[1])
	switch n {
	case 126:
		_, err = io.ReadFull(c.in, head[:2])
		n = uint64(binary.BigEndian.Uint16(head[:2]))
	case 127:
		_, err = io.ReadFull(c.in, head[:8])
		n = binary.BigEndian.Uint64(head[:8])
	}
	if err == nil {
		payload = make([]byte, n)
		_, err = io.ReadFull(c.in, payload)
	}
	return opcode, final, payload, err
}

// receive reads a message, and answers pings before it.
func (c *conn) receive() ([]byte, error) {
	c.SetDeadline(time.Now().Add(patience))
	var whole []byte
	for {
		opcode, final, payload, err := c.next()
		switch {
		case err != nil:
			return nil, err
		case opcode == opClose && len(payload) >= 2:
			return nil, &closedError{int(binary.BigEndian.Uint16(payload)), string(payload[2:])}
		case opcode == opClose:
			return nil, &closedError{}
		case opcode == opPing:
			if _, err := c.Write(frame(opPong, true, string(payload))); err != nil {
				return nil, err
			}
		case opcode == opPong:
		default:
			if whole = append(whole, payload...); final {
				return whole, nil
			}
		}
	}
}

// closedWith waits for the server to close the socket with that code.
func (c *conn) closedWith(code int) error {
	text, err := c.receive()
	var closed *closedError
	switch {
	case err == nil:
		return fmt.Errorf("got %.300s, want the socket closed with %d", text, code)
	case !errors.As(err, &closed):
		return fmt.Errorf("got %w, want the socket closed with %d", err, code)
	case closed.code != code:
		return fmt.Errorf("got %w, want %d", err, code)
	}
	return nil
}

// A reply is a message of the gym channel, as far as a test looks at it.
type reply struct {
	Type      string
	RequestID string `json:"request_id"`
	Data      struct {
		Observation struct {
			ToolName string `json:"tool_name"`
			Result   *struct {
				Data    json.RawMessage
				IsError bool `json:"is_error"`
			}
			Error *struct {
				Type string `json:"error_type"`
			}
		}
		Reward      any
		Code        string
		Message     string
		StepCount   *int     `json:"step_count"`
		RewardTotal *float64 `json:"reward_total"`
		Result      json.RawMessage
		Error       json.RawMessage
	}
}

func (c *conn) reply() (r reply, text []byte, err error) {
	if text, err = c.receive(); err != nil {
		return r, text, err
	}
	if err = json.Unmarshal(text, &r); err != nil {
		err = fmt.Errorf("%w in %.300s", err, text)
	}
	return r, text, err
}

func (c *conn) ask(text string) (reply, []byte, error) {
	if err := c.send(text); err != nil {
		return reply{}, nil, err
	}
	return c.reply()
}

// step is a frame that calls a tool; more are members beside type.
func step(tool, args, more string) string {
	return `{"type":"step","data":{"type":"call_tool","tool_name":"` + tool + `","arguments":` + args + `}` + more + `}`
}

// data is what a tool call came to: its result as JSON, or its error's type.
func (r reply) data() string {
	o := r.Data.Observation
	switch {
	case r.Type != "observation":
		return r.Type + " " + r.Data.Code + " " + r.Data.Message
	case o.Error != nil:
		return o.Error.Type
	case o.Result == nil:
		return "nothing"
	case o.Result.IsError:
		return "failed: " + string(o.Result.Data)
	}
	return string(o.Result.Data)
}

// want holds a tool call to have come to that.
func (r reply) want(data string) error {
	if got := r.data(); got != data {
		return fmt.Errorf("got %.300s, want %.300s", got, data)
	}
	return nil
}

// An rpcReply is the answer to a JSON-RPC request.
type rpcReply struct {
	Result struct {
		SessionID       string `json:"session_id"`
		Handle, URL     string
		Closed, Closing bool
		Data            json.RawMessage
	}
	Error *struct {
		Code    int
		Message string
		Data    struct {
			Max     int    `json:"max_sessions"`
			Factory string `json:"factory_name"`
		}
	}
}

// post sends a body and returns the answer's status, text and headers.
func (l *load) post(path, body string, headers ...string) (int, []byte, http.Header, error) {
	return l.request(l.http, http.MethodPost, path, body, headers...)
}

func (l *load) request(client *http.Client, method, path, body string, headers ...string) (int, []byte, http.Header, error) {
	r, err := http.NewRequest(method, "http://"+l.server.addr+path, strings.NewReader(body))
	if err != nil {
		return 0, nil, nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	res, err := client.Do(r)
	if err != nil {
		return 0, nil, nil, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	return res.StatusCode, bytes.TrimSpace(text), res.Header, err
}

// rpc calls a JSON-RPC method without a handshake.
func (l *load) rpc(path, method, params string) (r rpcReply, err error) {
	status, text, _, err := l.post(path, `{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":`+params+`}`)
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("status %d", status)
	}
	if err != nil {
		err = fmt.Errorf("%s got %w: %.300s", method, err, text)
	}
	return r, err
}
