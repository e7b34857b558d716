package load

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync"

	"github.com/openenv-go/openenv-go/bench/internal/wire"
)

// A socket is a WebSocket whose messages are answered in order.
type socket struct {
	exchange
	*webSocket
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

// check has read give the reply to it, and compares.
func (x *exchange) check(n int, read func(to io.Writer) error) error {
	x.matcher.Reset(*x.plan.reply.Load(), holes(x.client, n, ""))
	if err := read(&x.matcher); err != nil {
		return err
	}
	return x.matcher.Close()
}

// copyTo copies what r has, with a buffer that is not kept; so many bytes, if n is not negative.
func copyTo(w io.Writer, r io.Reader, n int64) error {
	buf := buffers.Get().(*[copyBuffer]byte)
	defer buffers.Put(buf)
	copied, err := io.CopyBuffer(struct{ io.Writer }{w}, struct{ io.Reader }{r}, buf[:])
	if err == nil && n >= 0 && copied != n {
		return io.ErrUnexpectedEOF
	}
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
		defer context.AfterFunc(ctx, s.Cut)()
		if err := s.reset(); err != nil {
			s.Cut()
			return nil, fmt.Errorf("reset: %w", err)
		}
		return s.begin(ctx, t, kind.request)
	}
}

// reset begins an episode. The floor knows no reset, and answers as to a step.
func (s *socket) reset() error {
	reply, err := s.ask([]byte(`{"type":"reset","data":{}}`))
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
	ws, err := dialWebSocket(ctx, d, t.Addr, path)
	return &socket{x, ws}, err
}

// begin sends the request by which the client learns, if it must.
func (s *socket) begin(ctx context.Context, t Target, request requestOf) (Session, error) {
	first := s.plan.ask(s.client, "", func(text, id string) []byte { return request(t, "", text, id) })
	if first == nil {
		return s, nil
	}
	defer context.AfterFunc(ctx, s.Cut)()
	reply, err := s.ask(first)
	if err == nil {
		err = s.plan.learn(reply, s.client, s.judge)
	}
	if err != nil {
		s.Cut()
		return nil, fmt.Errorf("the first request: %w", err)
	}
	return s, nil
}

// ask sends a message and returns the one that comes.
func (s *socket) ask(text []byte) ([]byte, error) {
	if err := s.writeText(text); err != nil {
		return nil, err
	}
	var reply bytes.Buffer
	err := s.readText(&reply)
	return reply.Bytes(), err
}

// Step sends a message and checks the one that comes.
func (s *socket) Step(n int) error {
	if err := s.writeText(s.request(n)); err != nil {
		return err
	}
	return s.check(n, s.readText)
}

// Close says goodbye and waits for the answer, as a client does.
func (s *socket) Close() error { return s.close() }

// Cut ends the connection.
func (s *socket) Cut() { s.conn.Close() }
