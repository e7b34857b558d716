package tools

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/openenv-go/openenv-go/pkg/internal/strictjson"
)

// cassetteVersion is that of the form of recordings. A cassette of another is refused.
const cassetteVersion = 1

// A cassette is lines of JSON. The first is a header; another one begins where a recorder was started again on the same
// file, and numbers after it have nothing to do with those before. All others are calls, in the order in which they were
// answered.
type cassetteHeader struct {
	Version int `json:"openenv_cassette"`
}

// A cassetteCall is a line. It has one of Value (what a typed function returned), Result (a result as MCP spells it),
// Failure (the tool's own) and Error.
type cassetteCall struct {
	Session   int            `json:"session"` // counted from 1 in order of first calls: it opens nothing
	Episode   int            `json:"episode"` // of the session: 0 before the first reset
	Tool      string         `json:"tool"`
	Arguments strictjson.Raw `json:"arguments"` // canonical; a mark where a secret was
	Value     strictjson.Raw `json:"value,omitempty"`
	Result    strictjson.Raw `json:"result,omitempty"`
	Failure   *string        `json:"failure,omitempty"`
	Error     *cassetteError `json:"error,omitempty"`
}

type cassetteError struct {
	Type    ErrorType       `json:"type"`
	Message string          `json:"message"`
	Fields  []cassetteField `json:"fields,omitempty"`
}

type cassetteField struct {
	Type  string         `json:"type"`
	Loc   []any          `json:"loc"`
	Msg   string         `json:"msg"`
	Input strictjson.Raw `json:"input,omitempty"`
}

// Bounds of a line: its bytes, and how deeply it nests.
const (
	maxCassetteLine  = 100 << 20
	maxCassetteDepth = 1000
)

// A Recorder writes the calls of sessions to a cassette. Safe for concurrent use. Lines are written whole and in the order
// in which calls were answered; the first write that fails ends the recording, so that what there is of it has no gaps.
type Recorder struct {
	mu       sync.Mutex
	w        io.Writer
	file     fs.FileInfo // that it opened; nil: none
	header   []byte
	close    func() error
	sessions int
	ended    bool // a write has failed, or it was closed
}

// NewRecorder begins a recording on w. The error is that of the first write.
func NewRecorder(w io.Writer) (*Recorder, error) {
	line, err := strictjson.Marshal(cassetteHeader{cassetteVersion})
	if err != nil {
		return nil, err
	}
	r := &Recorder{w: w, header: append(line, '\n'), close: func() error { return nil }}
	return r, r.write(line)
}

// OpenRecorder begins a recording in a file, which only its owner may read if it is made by this. A recording that is
// there is continued; any other file is refused, and so is a recording that ends within a line. One recorder at a time may
// have a file, until it is closed: another's is refused where the system knows locks, in this process and in others.
func OpenRecorder(path string) (*Recorder, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w; make its directory first: mkdir -p %s", err, filepath.Dir(path))
	}
	if err != nil {
		return nil, err
	}
	r, err := recorderOf(f)
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}

// errTaken is a file that another recorder has.
var errTaken = errors.New("it is being recorded into by another process, or by another recorder of this one; give each its own file")

// recorderOf locks a file before it looks at it: what another recorder is writing may end anywhere.
func recorderOf(f *os.File) (*Recorder, error) {
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if st.Mode().IsRegular() {
		if err := lock(f); err != nil {
			return nil, err
		}
		if err := continuable(f); err != nil {
			return nil, err
		}
	}
	r, err := NewRecorder(wholeLines{f})
	if err != nil {
		return nil, err
	}
	r.file = st
	r.close = func() error { return errors.Join(r.unchanged(f), synced(f), f.Close()) }
	return r, nil
}

// unchanged takes the header back from a recording that was there and that nothing has been added to.
func (r *Recorder) unchanged(f *os.File) error {
	was := r.file.Size()
	st, err := f.Stat()
	if err != nil || !st.Mode().IsRegular() || was == 0 || st.Size() != was+int64(len(r.header)) {
		return err
	}
	return f.Truncate(was)
}

// synced has a file on its disk; what is no file of a disk cannot be.
func synced(f *os.File) error {
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		return err
	}
	return f.Sync()
}

// continuable reports a file of a disk that is neither empty nor a recording of this version that ends with a line.
func continuable(f *os.File) error {
	st, err := f.Stat()
	if err != nil || st.Size() == 0 {
		return err
	}
	first := make([]byte, min(st.Size(), 1<<10))
	if _, err := f.ReadAt(first, 0); err != nil {
		return err
	}
	line, _, _ := bytes.Cut(first, []byte("\n"))
	if _, err := parseHeader(line); err != nil {
		return fmt.Errorf("it is not empty and no recording (%w); choose another file", err)
	}
	last := make([]byte, 1)
	if _, err := f.ReadAt(last, st.Size()-1); err != nil {
		return err
	}
	if last[0] != '\n' {
		return errors.New("the recording in it ends in the middle of a line; remove that part (its last line, which a process that was killed has left), or choose another file")
	}
	return nil
}

// wholeLines takes back what was written of a line that could not be written whole.
type wholeLines struct{ *os.File }

func (w wholeLines) Write(line []byte) (int, error) {
	n, err := w.File.Write(line)
	if err != nil && n > 0 {
		if st, failed := w.Stat(); failed == nil && st.Mode().IsRegular() {
			err = errors.Join(err, w.Truncate(st.Size()-int64(n)))
		}
	}
	return n, err
}

// write appends a line; it reports the first failure only.
func (r *Recorder) write(line []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return nil
	}
	_, err := r.w.Write(append(line, '\n'))
	r.ended = err != nil
	return err
}

// fail ends the recording with err, or reports nothing if it has ended.
func (r *Recorder) fail(err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return nil
	}
	r.ended = true
	return err
}

// Close ends the recording and closes the file that [OpenRecorder] opened, which is as it was if it was a recording and no
// call came. Calls that are answered later are not recorded.
func (r *Recorder) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = true
	return r.close()
}

// number counts the sessions that have recorded anything.
func (r *Recorder) number() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sessions++
	return r.sessions
}

// Session is the recording of one session. A nil Recorder gives a nil one, which records nothing.
func (r *Recorder) Session() *Recording {
	if r == nil {
		return nil
	}
	return &Recording{r: r}
}

// A Recording is one session's part of what a [Recorder] writes. Safe for concurrent use; a nil one records nothing.
type Recording struct {
	r *Recorder

	mu      sync.Mutex // guards what follows, and holds the session's lines in their order
	number  int        // 0: nothing recorded yet
	episode int
	known   map[string]*parts // by tool, as long as its specification is the same
	memory  memory
}

// parts are what is secret in a tool's arguments and results.
type parts struct {
	spec    *mcp.Tool
	in, out *secrets
}

// Reset begins a new episode.
func (s *Recording) Reset() {
	if s != nil {
		s.mu.Lock()
		s.episode++
		s.mu.Unlock()
	}
}

// Call records a call of the tool of that specification and what it came to: res, or fault. A call that never reached the
// tool (see [Error]) is not recorded. What the specification's schemas mark as secret is not written, nor what
// repeats it. The error is the first one of the whole recording, which ends with it.
func (s *Recording) Call(spec *mcp.Tool, args []byte, res *mcp.CallToolResult, fault *Error) error {
	if s == nil || fault != nil && fault.Refused {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.number == 0 {
		s.number = s.r.number()
	}
	line, err := s.line(spec, args, res, fault)
	if err == nil {
		err = fitting(line)
	}
	if err != nil {
		return s.r.fail(fmt.Errorf("a call of tool %q cannot be recorded: %w", spec.Name, err))
	}
	return s.r.write(line)
}

// fitting reports a line that no cassette may have.
func fitting(line []byte) error {
	if len(line) > maxCassetteLine {
		return fmt.Errorf("its line would have %d bytes, and may have %d", len(line), maxCassetteLine)
	}
	return strictjson.Check(line, maxCassetteDepth)
}

func (s *Recording) line(spec *mcp.Tool, args []byte, res *mcp.CallToolResult, fault *Error) ([]byte, error) {
	p, err := s.partsOf(spec)
	if err != nil {
		return nil, err
	}
	call := cassetteCall{Session: s.number, Episode: s.episode, Tool: spec.Name}
	v, _, err := strictjson.Parse(argumentsOf(args))
	if err != nil {
		return nil, err
	}
	v, own := p.in.take(v, false)
	texts := s.memory.with(own)
	if call.Arguments, err = appendCanonical(nil, scrub(v, texts, p.in.names)); err != nil {
		return nil, err
	}
	if fault != nil {
		call.Error, err = recordedError(fault, texts, p.in.any)
	} else {
		err = call.answer(res, p, &s.memory, own)
	}
	if err != nil {
		return nil, err
	}
	return strictjson.Marshal(call)
}

func (s *Recording) partsOf(spec *mcp.Tool) (*parts, error) {
	if p := s.known[spec.Name]; p != nil && p.spec == spec {
		return p, nil
	}
	p := &parts{spec: spec}
	var err error
	if p.in, err = newSecrets(spec.InputSchema); err != nil {
		return nil, err
	}
	if p.out, err = newSecrets(spec.OutputSchema); err != nil {
		return nil, err
	}
	if s.known == nil {
		s.known = map[string]*parts{}
	}
	s.known[spec.Name] = p
	return p, nil
}

// answer fills in what a call came to.
func (c *cassetteCall) answer(res *mcp.CallToolResult, p *parts, m *memory, texts []string) error {
	if s, ok := res.StructuredContent.(Structured); ok {
		value, err := redactStructured(s, p.out, m, texts)
		c.Value = value
		return err
	}
	if message, ok := ownFailure(res); ok {
		message = scrubMessage(message, m.with(texts))
		c.Failure = &message
		return nil
	}
	raw, err := json.Marshal(res)
	if err != nil {
		return err
	}
	c.Result, err = redactResult(raw, p.out, m, texts)
	return err
}

// ownFailure is the message of a result that [FailureResult] makes.
func ownFailure(res *mcp.CallToolResult) (string, bool) {
	if !res.IsError || res.StructuredContent != nil || len(res.Meta) > 0 || len(res.Content) != 1 {
		return "", false
	}
	t, ok := res.Content[0].(*mcp.TextContent)
	if !ok || t.Meta != nil || t.Annotations != nil {
		return "", false
	}
	return t.Text, true
}

// redactStructured is a typed function's value without its secrets. The schema speaks of the wrapped one.
func redactStructured(s Structured, out *secrets, m *memory, texts []string) (strictjson.Raw, error) {
	raw, err := s.AppendJSON(nil)
	if err != nil {
		return nil, err
	}
	clean, _, err := redactJSON(out, raw, m, texts)
	if err != nil {
		return nil, err
	}
	value := strictjson.Raw(slices.Clone(clean))
	if s.Wrapped {
		if value, err = member(clean, "result"); err != nil {
			return nil, err
		}
	}
	return value, value.Compact()
}

func member(object []byte, name string) (strictjson.Raw, error) {
	var m map[string]strictjson.Raw
	if err := strictjson.UnmarshalPlain(object, &m); err != nil {
		return nil, err
	}
	return m[name], nil
}

// redactResult is a whole result without its secrets. If its structured content has any, its content, which repeats that
// in words, is replaced by what is left of it.
func redactResult(raw []byte, out *secrets, m *memory, texts []string) (strictjson.Raw, error) {
	var res map[string]strictjson.Raw
	if err := strictjson.UnmarshalPlain(raw, &res); err != nil {
		return nil, err
	}
	if string(res["resultType"]) == `"complete"` {
		delete(res, "resultType") // the SDK's, by the door of the call
	}
	all := m.with(texts)
	if structured := res["structuredContent"]; structured != nil {
		clean, more, err := redactJSON(out, structured, m, texts)
		if err != nil {
			return nil, err
		}
		res["structuredContent"] = strictjson.Raw(clean)
		if out.any {
			all = more
			if res["content"], err = strictjson.Marshal([]mcp.Content{&mcp.TextContent{Text: string(clean)}}); err != nil {
				return nil, err
			}
		}
	}
	for _, name := range []string{"content", "_meta"} {
		if res[name] == nil || len(all) == 0 {
			continue
		}
		v, _, err := strictjson.Parse(res[name])
		if err == nil {
			res[name], err = strictjson.Marshal(scrubContent(v, all))
		}
		if err != nil {
			return nil, err
		}
	}
	return strictjson.Marshal(res)
}

// recordedError is a failed call as a line has it. Where the tool has secret arguments, the inputs that fields repeat are
// left out.
func recordedError(e *Error, texts []string, hasSecrets bool) (*cassetteError, error) {
	out := &cassetteError{Type: e.Type, Message: scrubMessage(e.Message, texts)}
	for _, f := range e.Fields {
		field := cassetteField{Type: f.Type, Msg: scrubMessage(f.Msg, texts), Loc: slices.Clone(f.Loc)}
		for i, step := range field.Loc {
			if name, ok := step.(string); ok {
				field.Loc[i] = scrub(name, texts, nil)
			}
		}
		if f.Input != nil && !hasSecrets && len(texts) == 0 {
			var err error
			if field.Input, err = strictjson.Marshal(f.Input); err != nil {
				return nil, err
			}
		}
		out.Fields = append(out.Fields, field)
	}
	return out, nil
}
