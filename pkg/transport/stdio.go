package transport

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/openenv-go/openenv-go/pkg/session"
)

// Standard input and output as one client's connection: a message on each line, one session.

// lastAnswers is how long the calls of a client that has closed its end may take before they are cancelled.
const lastAnswers = 2 * time.Second

// serveStdio serves one client, who writes to in and reads from out, on a session of its own. It returns when the input
// ends, when nobody reads the output, or when ctx ends; then the session has ended. A read that is under way is left behind,
// since nothing interrupts it. The error is that there is no session, or that it has not ended in time.
func (s *Server) serveStdio(ctx context.Context, in io.Reader, out io.Writer) error {
	live, err := s.sessions.Open(ctx, session.ByStdio, "")
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	defer context.AfterFunc(live.Context(), func() { stop(errors.New("the session has ended")) })()
	w := &lineWriter{out: out, hurry: ctx.Done(), lost: stop}
	// Who has standard input is an agent: for it there are tools and nothing else.
	d := &dialog{s: s, peer: func() peer { return peer{session: live, agent: true} }, write: w.write}
	lines := s.readLines(ctx, in, func() { time.AfterFunc(lastAnswers, func() { stop(errInputEnded) }) })
	for open := true; open && ctx.Err() == nil; {
		var l line
		select {
		case l, open = <-lines:
			switch {
			case !open:
			case l.err != nil:
				w.write(encodeRPC(nullID, nil, l.err))
			default:
				if reply := s.answerLine(ctx, d, l.text); reply != nil {
					w.write(reply)
				}
			}
			l.done()
		case <-ctx.Done():
		}
	}
	if conn := d.last(); conn != nil {
		select {
		case <-conn.settled():
		case <-ctx.Done():
		}
	}
	stop(errInputEnded)
	s.log.Info("standard input is not served any more", "event", "stdio_closed", "cause", context.Cause(ctx).Error())
	d.leave()
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
	defer cancel()
	if live.Release(end, session.Owner); end.Err() != nil { // what the environment's Close returned is in the log
		return fmt.Errorf("the session has not ended: %w", end.Err())
	}
	d.leaving.Wait()
	return nil
}

var errInputEnded = errors.New("standard input has ended")

// answerLine contains a panic to its message.
func (s *Server) answerLine(ctx context.Context, d *dialog, text []byte) (reply []byte) {
	defer func() {
		if r := recover(); r != nil {
			s.log.Error("answering panicked", "event", "door_panic", "session", d.peer().session.ID, "panic", fmt.Sprint(r), "stack", string(debug.Stack()))
			reply = encodeRPC(nullID, nil, errors.New("the server failed to answer; its log has the stack"))
		}
	}()
	return d.answer(ctx, text)
}

// A line is a message, or why there is none on the line.
type line struct {
	text []byte
	err  error
	room func() // gives its place in the queue back
}

func (l line) done() {
	if l.room != nil {
		l.room()
	}
}

// readLines reads lines until the input ends, which it tells, or ctx does. As many wait as frames of a socket may.
func (s *Server) readLines(ctx context.Context, in io.Reader, ended func()) <-chan line {
	lines := make(chan line, queuedFrames)
	room := semaphore.NewWeighted(queuedBytes)
	go func() {
		defer close(lines)
		r := bufio.NewReaderSize(in, writeChunk)
		for ctx.Err() == nil {
			text, err := s.readLine(r)
			var long *rpcError
			if errors.As(err, &long) {
				text, err = nil, nil
			}
			if text = bytes.TrimSpace(text); len(text) > 0 || long != nil {
				l := line{text: text}
				if long != nil {
					l.err = long
				}
				size := min(int64(len(text)), queuedBytes)
				if room.Acquire(ctx, size) != nil {
					return
				}
				l.room = func() { room.Release(size) }
				select {
				case lines <- l:
				case <-ctx.Done():
					return
				}
			}
			if err != nil {
				ended()
				return
			}
		}
	}()
	return lines
}

// readLine reads up to the end of a line. Of one that is too long it reads the rest, and returns an *rpcError.
func (s *Server) readLine(r *bufio.Reader) (text []byte, err error) {
	var size int64
	for {
		part, err := r.ReadSlice('\n')
		size += int64(len(part))
		if size > s.opts.MaxMessage+1 { // and the newline
			text = nil
		} else {
			text = append(text, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case size > s.opts.MaxMessage+1 && (err == nil || errors.Is(err, io.EOF)): // after which the next read has EOF again
			return nil, &rpcError{Code: rpcInvalidRequest, Message: fmt.Sprintf("a message over %d bytes", s.opts.MaxMessage)}
		default:
			return text, err
		}
	}
}

// A lineWriter writes messages, one on each line. A reader that has gone, or that has stopped reading, is lost; what is
// written to it then is dropped.
type lineWriter struct {
	out   io.Writer
	hurry <-chan struct{} // closed when there is no more time than a reader that reads needs
	lost  context.CancelCauseFunc

	mu   sync.Mutex // held by who writes
	over bool
}

func (w *lineWriter) write(text []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over {
		return
	}
	if bytes.ContainsAny(text, "\r\n") { // between the tokens, where an author's own JSON has it
		var b bytes.Buffer
		if json.Compact(&b, text) == nil {
			text = b.Bytes()
		}
	}
	done := make(chan error, 1)
	go func() { // nothing interrupts a write to a pipe
		_, err := w.out.Write(append(text, '\n'))
		done <- err
	}()
	limit := time.NewTimer(timeFor(int64(len(text))))
	defer limit.Stop()
	for hurry := w.hurry; ; {
		select {
		case err := <-done:
			if err != nil {
				w.over = true
				w.lost(fmt.Errorf("standard output: %w", err))
			}
			return
		case <-hurry:
			hurry = nil
			limit.Reset(hurryTime)
		case <-limit.C:
			w.over = true
			w.lost(errors.New("standard output is not read"))
			return
		}
	}
}

// runStdio serves standard input and output, and closes the server. It returns the exit code.
func (s *Server) runStdio(ctx context.Context, log *slog.Logger, in io.Reader, out, stderr io.Writer) int {
	served := s.serveStdio(ctx, in, out)
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
	defer cancel()
	if err := errors.Join(served, s.Close(end)); err != nil {
		fmt.Fprintln(stderr, "error:", oneLine(err))
		return exitFailed
	}
	log.Info("stopped", "event", "stopped")
	return exitOK
}
