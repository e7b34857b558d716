package mount

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/openenv-go/openenv-go/pkg/gym"
	"github.com/openenv-go/openenv-go/pkg/internal/strictjson"
)

const (
	// noticeLimit bounds the writing of a message that nobody waits for.
	noticeLimit = 5 * time.Second
	// maxReplies is how many requests of a server may wait for their refusal; more are not answered.
	maxReplies = 16
	// maxProgress is how many notes of progress of one call may wait; more are dropped.
	maxProgress = 64
)

// A peer is the client's side of one connection. It is used in place of the SDK's client, which decodes results into
// floats, hands progress on after the result that it belongs to, and waits at its close for answers that never come. Safe for
// concurrent use.
type peer struct {
	conn     mcp.Connection
	judge    judge
	log      *slog.Logger
	life     context.Context // ends when the connection is lost
	end      context.CancelFunc
	losing   sync.Once
	lost     chan struct{} // closed when no call can be made any more; cause stands then
	cause    error
	readDone chan struct{} // closed when the reader has ended
	replies  chan struct{} // one token for each reply that is being written

	mu     sync.Mutex // guards what follows
	last   int64      // id of the last call
	calls  map[jsonrpc.ID]*pending
	closed bool // no more work is begun
	told   bool // a change of the tools has been logged

	work sync.WaitGroup // goroutines but the reader's; Add under mu while not closed
}

// A judge says what the failure of a Write means: whether the server has not seen the message, and whether the connection
// is of no more use.
type judge func(err error) (unsent, fatal bool)

// A pending call awaits its answer.
type pending struct {
	id       jsonrpc.ID
	answer   chan *jsonrpc.Response               // has room for the one answer
	progress chan *mcp.ProgressNotificationParams // nil: not asked for
}

func newPeer(conn mcp.Connection, j judge, log *slog.Logger) *peer {
	p := &peer{
		conn: conn, judge: j, log: log,
		lost: make(chan struct{}), readDone: make(chan struct{}), replies: make(chan struct{}, maxReplies), calls: map[jsonrpc.ID]*pending{},
	}
	p.life, p.end = context.WithCancel(context.Background())
	go p.read()
	return p
}

// Lost is closed when the connection can carry no more calls.
func (p *peer) Lost() <-chan struct{} { return p.lost }

// Close ends the connection and returns when all of it has gone.
func (p *peer) Close() error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	err := p.conn.Close()
	<-p.readDone
	p.work.Wait()
	return err
}

// begin runs f in a goroutine that Close waits for, unless the peer is closed.
func (p *peer) begin(f func()) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.work.Go(f)
	}
	return !p.closed
}

// read hands on what the server sends. It never waits for anything else.
func (p *peer) read() {
	defer close(p.readDone)
	var err error
	for err == nil {
		var m jsonrpc.Message
		if m, err = p.conn.Read(p.life); err == nil {
			p.take(m)
		}
	}
	if errors.Is(err, io.EOF) {
		err = errors.New("it closed the connection")
	}
	p.lose(err)
}

// lose ends the connection, of which no more use can be made. What it holds goes now, whoever notices when: a server that
// talks on is stopped.
func (p *peer) lose(cause error) {
	p.losing.Do(func() {
		p.cause = cause
		p.end()
		if p.begin(func() { _ = p.conn.Close() }) { // not an end that we have made
			p.log.Warn("mounted server lost", "event", "mount_lost", "error", detail(cause))
		}
		close(p.lost)
	})
}

// detail is an error for the log, in its own words.
func detail(err error) error {
	var plain *plainError
	if errors.As(err, &plain) {
		return plain.err
	}
	return err
}

func (p *peer) take(m jsonrpc.Message) {
	switch m := m.(type) {
	case *jsonrpc.Response:
		p.mu.Lock()
		c := p.calls[m.ID]
		delete(p.calls, m.ID)
		p.mu.Unlock()
		if c != nil {
			c.answer <- m
		}
	case *jsonrpc.Request:
		if m.IsCall() {
			p.refuse(m)
			return
		}
		p.notice(m)
	}
}

func (p *peer) notice(m *jsonrpc.Request) {
	switch m.Method {
	case "notifications/progress":
		var params mcp.ProgressNotificationParams
		if strictjson.Unmarshal(m.Params, &params) != nil {
			return
		}
		token, _ := params.ProgressToken.(string)
		n, err := strconv.ParseInt(token, 10, 64)
		id, _ := jsonrpc.MakeID(float64(n))
		p.mu.Lock()
		c := p.calls[id]
		p.mu.Unlock()
		if err != nil || c == nil || c.progress == nil {
			return
		}
		select {
		case c.progress <- &params:
		default: // the caller reads slowly, and progress is not worth waiting for
		}
	case "notifications/tools/list_changed":
		p.mu.Lock()
		first := !p.told
		p.told = true
		p.mu.Unlock()
		if first {
			p.log.Warn("mounted server changed its tools; those of the start stand", "event", "mount_tools_changed")
		}
	}
}

// refuse answers a request of the server: it may ask whether its client lives, and nothing else.
func (p *peer) refuse(m *jsonrpc.Request) {
	r := &jsonrpc.Response{ID: m.ID, Result: []byte("{}")}
	if m.Method != "ping" {
		r.Result = nil
		r.Error = &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: m.Method + " is not offered to mounted servers"}
		p.log.Warn("mounted server asked for what it cannot have", "event", "mount_refused", "method", m.Method)
	}
	select {
	case p.replies <- struct{}{}:
	default:
		return
	}
	if !p.begin(func() {
		defer func() { <-p.replies }()
		p.tell(r)
	}) {
		<-p.replies
	}
}

// tell writes a message that nobody waits for.
func (p *peer) tell(m jsonrpc.Message) {
	ctx, cancel := context.WithTimeout(p.life, noticeLimit)
	defer cancel()
	_ = p.conn.Write(ctx, m) // a broken connection is seen by the reader
}

// A lossError says that the connection was lost, or that a message could not be written.
type lossError struct {
	cause  error
	unsent bool // the server has not seen the call
}

func (e *lossError) Error() string { return e.cause.Error() }

func (e *lossError) Unwrap() []error {
	if e.unsent {
		return []error{e.cause, gym.ErrNotSent}
	}
	return []error{e.cause}
}

func (p *peer) newCall(withProgress bool) (*pending, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, &lossError{errors.New("the connection is closed"), true}
	}
	p.last++
	id, err := jsonrpc.MakeID(float64(p.last))
	if err != nil {
		return nil, err
	}
	c := &pending{id: id, answer: make(chan *jsonrpc.Response, 1)}
	if withProgress {
		c.progress = make(chan *mcp.ProgressNotificationParams, maxProgress)
	}
	p.calls[id] = c
	return c, nil
}

func (p *peer) forget(c *pending) {
	p.mu.Lock()
	delete(p.calls, c.id)
	p.mu.Unlock()
}

// call makes a request and returns its result as it came. The error is the cause of ctx, a *jsonrpc.Error that the server
// answered with, or a *lossError. params makes the parameters, given the token for progress.
func (p *peer) call(ctx context.Context, method string, params func(token string) any, progress func(*mcp.ProgressNotificationParams)) ([]byte, error) {
	c, err := p.newCall(progress != nil)
	if err != nil {
		return nil, err
	}
	defer p.forget(c)
	body, err := strictjson.Marshal(params(fmt.Sprint(c.id.Raw())))
	if err != nil {
		return nil, err
	}
	writing, stop := context.WithCancel(ctx)
	defer stop()
	// A pipe whose reader has stopped holds a write up, whatever ctx says.
	sent := make(chan error, 1)
	if !p.begin(func() {
		sent <- p.conn.Write(writing, &jsonrpc.Request{ID: c.id, Method: method, Params: body})
	}) {
		return nil, &lossError{errors.New("the connection is closed"), true}
	}
	written := sent // nil once the request is written
	for {
		select {
		case r := <-c.answer:
			for len(c.progress) > 0 { // what came before the answer
				progress(<-c.progress)
			}
			return answered(r)
		case note := <-c.progress:
			progress(note)
		case err := <-written:
			if written = nil; err != nil && ctx.Err() == nil {
				return nil, p.notWritten(err)
			}
		case <-p.lost:
			select {
			case r := <-c.answer: // it came before the loss
				return answered(r)
			default:
				return nil, p.whenLost(written, stop)
			}
		case <-ctx.Done():
			p.giveUp(c, method, ctx.Err())
			return nil, context.Cause(ctx)
		}
	}
}

// whenLost is the outcome of a call whose connection was lost. Its Write, which is interrupted if it still runs, may know
// that the server has not seen it.
func (p *peer) whenLost(written <-chan error, stop func()) error {
	e := &lossError{cause: p.cause}
	if written != nil {
		stop()
		if err := <-written; err != nil {
			e.unsent, _ = p.judge(err)
		}
	}
	return e
}

func (p *peer) notWritten(err error) error {
	var answer *jsonrpc.Error
	if errors.As(err, &answer) && answer.Code != codeRejected {
		return answer // an HTTP status that is no success, with an answer in its body
	}
	unsent, fatal := p.judge(err)
	if fatal {
		p.lose(err)
	} else {
		p.log.Warn("mounted server not reached", "event", "mount_unreachable", "error", detail(err))
	}
	return &lossError{err, unsent}
}

// codeRejected is the code of the SDK's own error for what a transport did not carry.
const codeRejected = -32005

func answered(r *jsonrpc.Response) ([]byte, error) {
	if r.Error == nil {
		return r.Result, nil
	}
	var answer *jsonrpc.Error
	if errors.As(r.Error, &answer) && answer.Code != codeRejected {
		return nil, answer
	}
	return nil, &lossError{cause: r.Error} // the SDK's word for a stream that ended without an answer
}

// giveUp tells the server that nobody waits for the call any more.
func (p *peer) giveUp(c *pending, method string, why error) {
	if method == "initialize" {
		return // must not be cancelled
	}
	body, err := strictjson.Marshal(map[string]any{"requestId": c.id.Raw(), "reason": why.Error()})
	if err == nil {
		p.begin(func() { p.tell(&jsonrpc.Request{Method: "notifications/cancelled", Params: body}) })
	}
}
