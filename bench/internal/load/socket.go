package load

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"

	"github.com/coder/websocket"

	"github.com/openenv-go/openenv-go/bench/internal/wire"
)

// maxReply is what a client takes in one message: some times the longest text.
const maxReply = 64 << 20

// A socket is a WebSocket whose messages are answered in order.
type socket struct {
	exchange
	conn *websocket.Conn
}

// An exchange is what a client's requests are like and its replies must be.
type exchange struct {
	plan    *plan
	client  int
	session string // what requests name theirs by, or ""
	judge   func(reply []byte, message string) error
	matcher wire.Matcher
	buf     []byte
}

// request makes the client's n-th request, which is good until the next.
func (x *exchange) request(n int) []byte {
	b := x.plan.request.Load().Append(x.buf[:0], holes(x.client, n, x.session))
	if x.buf = b; cap(b) > keptBuffer {
		x.buf = nil
	}
	return b
}

// keptBuffer is how long a buffer may be that an idle client keeps.
const keptBuffer = 64 << 10

// check reads the reply to it.
func (x *exchange) check(reply io.Reader, n int) error {
	x.matcher.Reset(*x.plan.reply.Load(), holes(x.client, n, ""))
	if err := copyTo(&x.matcher, reply); err != nil {
		return err
	}
	return x.matcher.Close()
}

// copyTo is io.Copy with a buffer that is not kept.
func copyTo(w io.Writer, r io.Reader) error {
	buf := buffers.Get().(*[copyBuffer]byte)
	defer buffers.Put(buf)
	_, err := io.CopyBuffer(struct{ io.Writer }{w}, struct{ io.Reader }{r}, buf[:])
	return err
}

const copyBuffer = 32 << 10

var buffers = sync.Pool{New: func() any { return new([copyBuffer]byte) }}

// A requestOf makes a request with this text and id.
type requestOf func(t Target, session, text, id string) []byte

// frameKind is what frames of /ws carry.
type frameKind struct {
	request requestOf
	judge   func(reply []byte, message string) error
}

var (
	stepFrames = frameKind{stepFrame, wire.JudgeFrame}
	mcpFrames  = frameKind{func(t Target, _, text, id string) []byte {
		return mustMarshal(map[string]any{"type": "mcp", "data": json.RawMessage(rpcCall(t, "", text, id))})
	}, wire.JudgeMCPFrame}
)

func stepFrame(t Target, _, text, _ string) []byte {
	if t.Seconds == 0 {
		return mustMarshal(wire.NewStepFrame(text))
	}
	return mustMarshal(map[string]any{"type": "step", "data": waitAction(t, text)})
}

// waitAction is a call of the tool that waits.
func waitAction(t Target, text string) any {
	return map[string]any{"type": "call_tool", "tool_name": "wait", "arguments": map[string]any{"message": text, "seconds": t.Seconds}}
}

func mustMarshal(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

func openFrames(kind frameKind) func(context.Context, Target, *dialer, *plan, int) (Session, error) {
	return func(ctx context.Context, t Target, d *dialer, p *plan, client int) (Session, error) {
		s, err := dialSocket(ctx, t, "/ws", d, exchange{plan: p, client: client, judge: kind.judge})
		if err != nil {
			return nil, err
		}
		if err := s.reset(ctx); err != nil {
			s.conn.CloseNow()
			return nil, fmt.Errorf("reset: %w", err)
		}
		return s.begin(ctx, t, kind.request)
	}
}

// reset begins an episode. The floor knows no reset, and answers as to a step.
func (s *socket) reset(ctx context.Context) error {
	if err := s.conn.Write(ctx, websocket.MessageText, []byte(`{"type":"reset","data":{}}`)); err != nil {
		return err
	}
	_, reply, err := s.conn.Read(ctx)
	if err != nil {
		return err
	}
	var f struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(reply, &f); err != nil || f.Type != "observation" {
		return fmt.Errorf("got %.200s", reply)
	}
	return nil
}

// openRPCSocket opens a WebSocket /mcp.
func openRPCSocket(ctx context.Context, t Target, d *dialer, p *plan, client int) (Session, error) {
	s, err := dialSocket(ctx, t, "/mcp", d, exchange{plan: p, client: client, judge: wire.JudgeBare})
	if err != nil {
		return nil, err
	}
	return s.begin(ctx, t, rpcCall)
}

func dialSocket(ctx context.Context, t Target, path string, d *dialer, x exchange) (*socket, error) {
	if t.Path != "" {
		path = t.Path
	}
	client := http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext:       func(ctx context.Context, _, addr string) (net.Conn, error) { return d.dial(ctx, addr) },
	}}
	conn, _, err := websocket.Dial(ctx, "ws://"+t.Addr+path, &websocket.DialOptions{
		HTTPClient: &client, CompressionMode: websocket.CompressionDisabled,
	})
	if err != nil {
		return nil, err
	}
	conn.SetReadLimit(maxReply)
	return &socket{exchange: x, conn: conn}, nil
}

// begin sends the request by which the client learns, if it must.
func (s *socket) begin(ctx context.Context, t Target, request requestOf) (Session, error) {
	first := s.plan.ask(s.client, "", func(text, id string) []byte { return request(t, "", text, id) })
	if first == nil {
		return s, nil
	}
	err := s.conn.Write(ctx, websocket.MessageText, first)
	var reply []byte
	if err == nil {
		_, reply, err = s.conn.Read(ctx)
	}
	if err == nil {
		err = s.plan.learn(reply, s.client, s.judge)
	}
	if err != nil {
		s.conn.CloseNow()
		return nil, fmt.Errorf("the first request: %w", err)
	}
	return s, nil
}

// Step sends a message and checks the one that comes. Its context never ends, which spares the client the library's work
// for those that may; Cut ends it.
func (s *socket) Step(n int) error {
	ctx := context.Background()
	if err := s.conn.Write(ctx, websocket.MessageText, s.request(n)); err != nil {
		return err
	}
	_, reply, err := s.conn.Reader(ctx)
	if err != nil {
		return err
	}
	return s.check(reply, n)
}

// Close says goodbye and waits for the answer, as a client does.
func (s *socket) Close() error { return s.conn.Close(websocket.StatusNormalClosure, "") }

// Cut ends the connection.
func (s *socket) Cut() { s.conn.CloseNow() }
