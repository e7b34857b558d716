package mount

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// maxLine bounds one message of a mounted server, as messages are bounded at every door.
const maxLine = 100 << 20

// lines reads and writes messages, one on a line each. Read belongs to one goroutine; Write is safe for concurrent use.
type lines struct {
	in    *bufio.Reader
	noise *diary // takes what is no message

	writing chan struct{} // has the token of the one that writes
	out     io.Writer
}

func newLines(r io.Reader, w io.Writer, log *slog.Logger) *lines {
	return &lines{in: bufio.NewReaderSize(r, 64<<10), out: w, writing: make(chan struct{}, 1), noise: newDiary(log, "stdout")}
}

// Read returns the next message. Lines that cannot be meant as one are passed over, since many servers greet; one that
// begins like a message and is none ends the connection.
func (l *lines) Read(context.Context) (jsonrpc.Message, error) {
	for {
		line, err := l.line()
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] == '{' && err == nil {
			m, err := jsonrpc.DecodeMessage(line)
			if err != nil {
				return nil, fmt.Errorf("it wrote what is no message of MCP to its standard output: %s", clipped(line))
			}
			return m, nil
		}
		if len(line) > 0 {
			l.noise.note(line)
		}
		if err != nil {
			return nil, err
		}
	}
}

// line reads up to the end of a line, and fails where that is too far.
func (l *lines) line() ([]byte, error) {
	var line []byte
	for {
		part, err := l.in.ReadSlice('\n')
		line = append(line, part...) // part is the reader's own, and messages refer to their line
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
		if len(line) > maxLine {
			return nil, fmt.Errorf("it wrote a line of more than %d bytes", maxLine)
		}
	}
}

// Write writes a message. Its turn is awaited as long as ctx lasts; then it may take as long as the reader does, and
// closing the pipe interrupts it.
func (l *lines) Write(ctx context.Context, m jsonrpc.Message) error {
	b, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return err
	}
	select {
	case l.writing <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-l.writing }()
	_, err = l.out.Write(append(b, '\n'))
	return err
}

// SessionID is "": a pipe has one session.
func (l *lines) SessionID() string { return "" }

// maxShown bounds a text in a message or in the log, and maxNotes the lines that one connection may put there.
const (
	maxShown = 500
	maxNotes = 1000
)

func clipped(line []byte) string {
	if len(line) <= maxShown {
		return strings.ToValidUTF8(string(line), "�")
	}
	return strings.ToValidUTF8(string(line[:maxShown]), "�") + "…"
}

// A diary puts what a server says in the log, line by line, up to a bound. It belongs to one goroutine.
type diary struct {
	log    *slog.Logger
	stream string // stdout or stderr
	notes  int
}

func newDiary(log *slog.Logger, stream string) *diary { return &diary{log: log, stream: stream} }

func (d *diary) note(line []byte) {
	switch d.notes++; {
	case d.notes <= maxNotes:
		d.log.Info("mounted server says", "event", "mount_output", "stream", d.stream, "text", clipped(line))
	case d.notes == maxNotes+1:
		d.log.Warn("mounted server says too much; the rest is left out", "event", "mount_output", "stream", d.stream)
	}
}

// copy notes each line of r until it ends.
func (d *diary) copy(r io.Reader) {
	in := bufio.NewReaderSize(r, 4<<10)
	cont := false // the line has been noted, and goes on
	for {
		part, err := in.ReadSlice('\n')
		if line := bytes.TrimSpace(part); len(line) > 0 && !cont {
			d.note(line)
		}
		cont = errors.Is(err, bufio.ErrBufferFull)
		if err != nil && !cont {
			return
		}
	}
}
