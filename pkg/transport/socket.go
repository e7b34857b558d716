package transport

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/coder/websocket"

	"github.com/openenv-go/openenv-go/pkg/access"
	"github.com/openenv-go/openenv-go/pkg/session"
)

// A socket is one WebSocket and the session that it serves. Frames are answered one by one, in order, and read while one
// is answered, so that pings, a close and a loss are noticed.
//
// There are two parts to play, reading and answering. The goroutine that reads a frame answers it too, if nobody else is
// answering: handing it to another would cost more than most answers. Four things move a part to another goroutine.
//   - The answer takes long: another goroutine takes over the reading (see relieve), and what it reads is queued.
//   - The call is given up while its handler runs: the goroutine that tells the client goes on answering, and the one in
//     the handler has no part any more when it returns.
//   - There are queued frames: who answers goes on with them.
//   - The reader has answered for the first time in a second: a new goroutine reads on, whose stack is small again.
//
// An idle socket has one goroutine, which reads.
type socket struct {
	s       *Server
	conn    *websocket.Conn
	wire    sieve // what conn is over
	joint   joint // what it writes to
	session *session.Session
	// answer makes the reply to a text message and gives it to reply, once. here says whether it did in this goroutine.
	answer func(ctx context.Context, text []byte, reply replyFunc) (here bool)
	// refuse makes the message that tells an error: why there is no session, above all.
	refuse func(err error) []byte
	// goodbye reports whether a message asks for the socket to be closed; nil: none does.
	goodbye     func(text []byte) bool
	dialog      *dialog // on /mcp
	caller      access.Caller
	counted     string         // whose messages its own are counted among
	origin      session.Origin // how a session that the socket opens came to be
	hold        session.Hold   // what the socket has of its session; set with it
	agent       bool           // it came by a handle
	overstepped atomic.Bool    // a message wanted what the caller may not have
	tell        atomic.Bool    // the next observation is to tell the session's id
	base        string         // where the client reaches the server
	remote      string         // the client's address
	resume      time.Duration  // how long the session waits for the client if the socket is lost
	parted      atomic.Bool    // the client has closed the socket, or has broken its rules: the session does not wait for it

	ctx    context.Context // ends when the socket has gone, and with it the call that runs
	gone   context.CancelCauseFunc
	calls  context.Context         // of calls: ends with ctx and with the session; set with it
	free   context.CancelFunc      // releases calls
	why    atomic.Pointer[parting] // why it goes; see because
	pulse  pulse
	slow   *time.Timer            // runs while somebody has the turn to write; guarded by mu
	late   *time.Timer            // runs while a long message is read, which counts in the budget
	long   func()                 // starts it
	unread atomic.Bool            // frames are not being read, since the queue is full
	due    atomic.Pointer[[]byte] // pongs that are to be written
	paying atomic.Bool            // a goroutine waits for its turn to write them
	shut   atomic.Bool            // a close frame is being written, or was

	mu        sync.Mutex // guards what follows
	answering bool       // somebody plays the answering part, or the session is being opened
	over      bool       // the session has ended: close the socket when nobody answers
	queue     [][]byte   // frames that wait for it
	queued    int        // their bytes
	room      sync.Cond  // signals that the queue is not full any more, that answering has ended, or that a turn has
	turn      bool       // somebody writes; see takeTurn
	frame     int        // counts the frames that their readers answer
	inline    int        // the frame that the reader is answering, or 0
	watched   bool       // the timer of relieve runs
	seen      int        // inline, when relieve last looked
	relief    *time.Timer
	renewed   time.Time      // when the reading part was last given to a new goroutine for the sake of its stack
	renew     bool           // it is to be given, after this frame
	expiry    *time.Timer    // calls expire; nil: never
	players   sync.WaitGroup // goroutines that play a part, or once did
	letGo     sync.Once      // lets the session go
	unlink    func() bool    // stops the watch over the session; set with session
}

// A replyFunc takes the reply to a message; nil means none. last says that the socket is to be closed after it.
type replyFunc func(reply []byte, last, here bool)

// queuedFrames is how many frames of one socket may wait for the one that is answered. A client that sends more is not
// read until it has had answers.
const queuedFrames = 16

// queuedBytes bounds the queue likewise; one frame may wait whatever its size.
const queuedBytes = 8 << 20

func (k *socket) init(conn *websocket.Conn, ctx context.Context, gone context.CancelCauseFunc) {
	k.conn, k.ctx, k.gone = conn, ctx, gone
	k.room.L = &k.mu
	k.relief = time.AfterFunc(time.Hour, k.relieve)
	k.relief.Stop()
	k.slow = time.AfterFunc(time.Hour, func() {
		k.because(slog.LevelWarn, "does not read")
		k.conn.CloseNow()
	})
	k.slow.Stop()
	k.late = time.AfterFunc(time.Hour, func() {
		k.because(slog.LevelWarn, "sends a message too slowly")
		k.conn.CloseNow()
	})
	k.late.Stop()
	k.long = func() { k.late.Reset(timeFor(k.s.opts.MaxMessage)) }
}

// serve finds the session and has the parts played until the socket has gone. It does not wait for that.
func (k *socket) serve(id string) {
	k.pulse.start(k)
	if until := k.caller.Expires; !until.IsZero() {
		k.expiry = time.AfterFunc(time.Until(until), k.expire)
	}
	k.answering = true // frames queue while the session is being opened
	k.players.Go(func() {
		if k.open(id) {
			k.goOn()
		} else {
			k.gone(errSocketGone)
			k.next()
		}
	})
	k.players.Go(k.read)
	context.AfterFunc(k.ctx, k.leave)
}

// leave is called when the socket has gone. The session is let go when nobody answers any more: at once, even if the handler
// of a call that was given up runs on. leave returns when that has returned too.
func (k *socket) leave() {
	defer k.s.sockets.Done()
	k.conn.CloseNow() // ends what is being written to a peer that does not read
	k.mu.Lock()
	for k.answering { // the call that runs has been cancelled, and is given up
		k.room.Wait()
	}
	k.mu.Unlock()
	if k.dialog != nil {
		k.dialog.leave()
	}
	k.logGone() // by now it is known whether there was a session
	k.release()
	k.players.Wait()
	if k.dialog != nil {
		k.dialog.leaving.Wait()
	}
	k.pulse.stop()
	k.relief.Stop()
	if k.expiry != nil {
		k.expiry.Stop()
	}
}

// read plays the reading part until the socket goes, or another goroutine has taken it over.
func (k *socket) read() {
	for {
		data, ok := k.receive()
		if !ok {
			k.gone(errSocketGone)
			return
		}
		frame := k.begin(data)
		if frame == 0 {
			continue // who answers has it
		}
		k.answerFrom(data)
		if !k.end(frame) {
			return
		}
	}
}

// receive reads one text message. A message of another kind closes the socket.
func (k *socket) receive() (data []byte, ok bool) {
	kind, r, err := k.conn.Reader(context.Background()) // a context that can end costs two goroutine hand-overs
	if err == nil {
		data, err = k.s.budget.read(r, k.long)
		k.late.Stop()
	}
	switch {
	case errors.Is(err, errOverBudget):
		k.because(slog.LevelWarn, err.Error())
		k.close(websocket.StatusTryAgainLater, errOverBudget.Error())
		return nil, false
	case err != nil:
		if k.becauseOf(err) {
			k.close(websocket.StatusProtocolError, "the frame is no good") // the library has told most clients so, but not all
		}
		switch websocket.CloseStatus(err) {
		case websocket.StatusNormalClosure, websocket.StatusGoingAway, websocket.StatusNoStatusRcvd:
			k.parted.Store(true)
		}
		if errors.Is(err, websocket.ErrMessageTooBig) {
			k.parted.Store(true)
		}
		return nil, false
	}
	switch {
	case kind == websocket.MessageBinary:
		k.parted.Store(true)
		k.because(slog.LevelWarn, "a binary message")
		k.close(websocket.StatusUnsupportedData, "send text messages")
		k.s.budget.release(data)
		return nil, false
	case !utf8.Valid(data):
		k.parted.Store(true)
		k.because(slog.LevelWarn, "text that is not UTF-8")
		k.close(websocket.StatusInvalidFramePayloadData, "the text is not valid UTF-8")
		k.s.budget.release(data)
		return nil, false
	}
	return data, true
}

// begin gives a frame that was read to who answers, and returns 0; or, if nobody does, the part and the frame's number to
// the reader.
func (k *socket) begin(data []byte) (frame int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for k.answering && (len(k.queue) >= queuedFrames || k.queued > 0 && k.queued+len(data) > queuedBytes) && k.ctx.Err() == nil {
		k.unread.Store(true)
		k.room.Wait()
		k.pulse.beat() // whatever the peer has sent meanwhile is still to be read
	}
	k.unread.Store(false)
	switch {
	case k.ctx.Err() != nil: // after a close frame, say
		k.drop(data)
		return 0
	case k.answering:
		k.queue = append(k.queue, data)
		k.queued += len(data)
		return 0
	}
	k.answering = true
	k.frame++
	k.inline = k.frame
	if !k.watched {
		k.watched = true
		k.relief.Reset(reliefAfter)
		if now := time.Now(); now.Sub(k.renewed) > renewAfter {
			k.renewed, k.renew = now, true
		}
	}
	return k.inline
}

// renewAfter is how long a goroutine that has answered reads, at least. An answer makes its stack as large as the deepest of
// its functions needs, and an idle goroutine keeps it; a new one is small. One that answers often is not worth the trouble.
const renewAfter = time.Second

// end reports whether the reader of that frame still has the reading part.
func (k *socket) end(frame int) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.inline != frame {
		return false
	}
	k.inline = 0
	if k.renew {
		k.renew = false
		k.players.Go(k.read)
		return false
	}
	return true
}

// reliefAfter is how long a reader may answer before another goroutine reads: once to twice that long.
const reliefAfter = 10 * time.Millisecond

// relieve looks whether the reader has been answering the same frame since the last look, and then has another goroutine
// read. One look serves many frames, so that a frame costs no timer.
func (k *socket) relieve() {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch k.inline {
	case 0:
		k.watched = false
	case k.seen:
		k.watched = false
		k.inline = 0
		k.players.Go(k.read)
	default:
		k.seen = k.inline
		k.relief.Reset(reliefAfter)
	}
}

// answerFrom plays the answering part, which the caller has taken, until no frame is left or the part is another
// goroutine's.
func (k *socket) answerFrom(data []byte) {
	for ok := true; ok; data, ok = k.next() {
		if !k.answerOne(data) {
			return
		}
	}
}

// goOn plays the answering part, which the caller has, with what is queued.
func (k *socket) goOn() {
	if data, ok := k.next(); ok {
		k.answerFrom(data)
	}
}

// next takes the next queued frame; where there is none, the session has ended or the socket has gone, it lays the
// answering part down.
func (k *socket) next() (data []byte, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.over && k.ctx.Err() == nil {
		k.mu.Unlock()
		k.closeOver()
		k.mu.Lock()
	}
	if len(k.queue) == 0 || k.ctx.Err() != nil {
		k.answering = false
		k.drop(k.queue...)
		k.queue, k.queued = nil, 0
		k.room.Broadcast()
		return nil, false
	}
	data = k.queue[0]
	k.queued -= len(data)
	k.queue[0] = nil
	k.queue = k.queue[1:]
	k.room.Broadcast()
	return data, true
}

// drop leaves frames unanswered, since the socket has gone; but a client that has said goodbye is not awaited.
func (k *socket) drop(frames ...[]byte) {
	for _, f := range frames {
		k.s.budget.release(f)
	}
	if k.goodbye != nil && slices.ContainsFunc(frames, k.goodbye) {
		k.parted.Store(true)
	}
}

// answerOne answers one frame. here says whether the answering part is still this goroutine's.
func (k *socket) answerOne(text []byte) (here bool) {
	k.s.limits.pace(k.calls, k.counted)
	defer k.s.budget.release(text)
	defer func() {
		if r := recover(); r != nil {
			k.send(k.panicked(r), false)
			here = true
		}
	}()
	return k.answer(k.calls, text, func(reply []byte, last, here bool) {
		k.send(reply, last)
		if !here {
			k.goOn()
		}
	})
}

// send writes a reply. After the last one the socket is closed, which ends the reading.
func (k *socket) send(reply []byte, last bool) {
	if reply != nil {
		k.put(reply)
	}
	if last {
		k.parted.Store(true)
		k.because(slog.LevelDebug, "closed by the client")
		k.release() // the client has said goodbye, and may take its time with the socket's own
		k.close(websocket.StatusNormalClosure, "")
		k.gone(errSocketGone) // what came after a close frame is not answered
	}
}

// put writes one message. A socket that does not take it has gone.
func (k *socket) put(text []byte) {
	if k.ctx.Err() != nil {
		return
	}
	if err := k.write(text); err != nil {
		k.lose(err)
	}
}

// lose gives the socket up, since it takes nothing more.
func (k *socket) lose(err error) {
	k.becauseOf(err)
	k.conn.CloseNow()
	k.gone(errSocketGone)
}

// sessionOver takes the socket along with its session: at once if nobody answers, else after the answers that are due.
func (k *socket) sessionOver() {
	k.mu.Lock()
	k.over = true
	idle := !k.answering
	k.answering = k.answering || idle
	if k.turn { // somebody writes, to a peer that may not be reading
		k.slow.Reset(hurryTime)
	}
	k.mu.Unlock()
	if idle {
		k.next()
	}
}

func (k *socket) closeOver() {
	if k.dialog != nil {
		k.dialog.await()
	}
	code, cause := websocket.StatusNormalClosure, "the session has ended"
	if k.s.stopping() {
		code, cause = websocket.StatusGoingAway, "the server is stopping"
	}
	k.because(slog.LevelDebug, cause)
	k.close(code, "the session has ended")
	k.gone(errSocketGone)
}

// expire closes the socket since its caller's token is good no more. The session does not wait for the caller.
func (k *socket) expire() {
	k.parted.Store(true)
	k.because(slog.LevelInfo, "its token has expired")
	k.close(websocket.StatusPolicyViolation, errExpired.message)
	k.gone(errSocketGone)
}

// contained makes a reply. A panic is contained to the socket, as net/http does for a request: what an author's types do
// when they are written as JSON is not in the session's hands.
func (k *socket) contained(reply func() []byte) (text []byte) {
	defer func() {
		if r := recover(); r != nil {
			text = k.panicked(r)
		}
	}()
	return reply()
}

func (k *socket) panicked(r any) []byte {
	k.s.log.Error("answering panicked", "event", "door_panic", "session", k.session.ID, "panic", fmt.Sprint(r), "stack", string(debug.Stack()))
	return k.refuse(errors.New("the server failed to answer; its log has the stack"))
}
