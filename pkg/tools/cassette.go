package tools

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/openenv-go/openenv-go/pkg/internal/strictjson"
)

// A Cassette is recorded calls, to be replayed: see [Replay]. One that cannot be read carries the error until the set of
// the tool that replays it is registered. It does not change; safe for concurrent use.
type Cassette struct {
	tape   *tape
	strict bool
	err    error
}

// A tape is what was read, which the cassettes made of one another by Strict and Free share.
type tape struct {
	name    string      // of the file; "": it has none
	file    fs.FileInfo // nil: none
	entries []*entry
}

// An entry is one recorded call.
type entry struct {
	cassetteCall
	line int
	run  int // which of the recorder's starts it is of
}

// A CassetteError is a cassette that cannot be used, or a line of it.
type CassetteError struct {
	Name string // of the file; "": it has none
	Line int    // from 1; 0: the error is of no line
	Err  error
}

func (e *CassetteError) Error() string {
	name := e.Name
	if name == "" {
		name = "the cassette"
	}
	if e.Line == 0 {
		return fmt.Sprintf("%s: %v", name, e.Err)
	}
	return fmt.Sprintf("%s: line %d: %v", name, e.Line, e.Err)
}

func (e *CassetteError) Unwrap() error { return e.Err }

// OpenCassette reads a file that a [Recorder] has written. See [Cassette.Err] for what is wrong with it.
func OpenCassette(path string) *Cassette {
	t, err := openTape(path)
	if err != nil {
		if at, ok := errors.AsType[*CassetteError](err); ok {
			at.Name = path
		} else {
			err = &CassetteError{Name: path, Err: err}
		}
		return &Cassette{err: err}
	}
	return &Cassette{tape: t}
}

func openTape(path string) (*tape, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &missingError{path, err}
	}
	if failed, ok := errors.AsType[*fs.PathError](err); ok {
		return nil, failed.Err // the path is the cassette's name
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	t := &tape{name: path}
	if t.file, err = f.Stat(); err != nil {
		return nil, err
	}
	return t, t.read(f)
}

// A missingError is a file that has yet to be recorded.
type missingError struct {
	path string
	err  error
}

func (e *missingError) Error() string {
	where := ""
	if wd, err := os.Getwd(); err == nil && !filepath.IsAbs(e.path) {
		where = " in the working directory " + wd
	}
	return fmt.Sprintf("there is no such file%s; record it with -mode production -record %s", where, e.path)
}

func (e *missingError) Unwrap() error { return e.err }

// ReadCassette reads what a [Recorder] has written: from an embedded file, say.
func ReadCassette(r io.Reader) *Cassette {
	t := &tape{}
	if err := t.read(r); err != nil {
		return &Cassette{err: err}
	}
	return &Cassette{tape: t}
}

// Err is why the cassette cannot be used, or nil: a *[CassetteError], unless the cassette itself is none. A file that does
// not exist is fs.ErrNotExist within it.
func (c *Cassette) Err() error {
	switch {
	case c == nil:
		return errors.New("the cassette is nil: make it with OpenCassette or ReadCassette")
	case c.err == nil && c.tape == nil:
		return errors.New("the cassette is empty: make it with OpenCassette or ReadCassette")
	}
	return c.err
}

// Strict is the cassette with calls held to the recorded order: the calls of an episode, of all tools that are replayed
// from it, must be those of a recorded episode from its first call on. Any other call is a [*DivergenceError]. Where
// several recorded episodes begin alike, the first in the file that goes on as the calls do answers.
func (c *Cassette) Strict() *Cassette { return c.ordered(true) }

// Free is the cassette with calls in any order, which it has to begin with: the nth call of a tool with the same arguments
// in an episode is answered as an nth such call in a recorded episode was, the first in the file that has so many; where
// none has, the last answer repeats. A call that was never recorded is a [*NotRecordedError].
func (c *Cassette) Free() *Cassette { return c.ordered(false) }

func (c *Cassette) ordered(strict bool) *Cassette {
	if c == nil {
		return nil
	}
	return &Cassette{c.tape, strict, c.err}
}

// errLongLine is a line beyond the bound.
var errLongLine = fmt.Errorf("it is longer than %d bytes", maxCassetteLine)

func (t *tape) read(r io.Reader) error {
	in := bufio.NewReaderSize(r, 64<<10)
	run := 0
	for n := 1; ; n++ {
		line, err := boundedLine(in)
		if err == io.EOF && n > 1 {
			return nil
		}
		if err == io.EOF {
			err = errors.New("it is empty; a recording begins with a header")
		}
		if err == nil {
			err = t.add(line, n, &run)
		}
		if err != nil {
			return &CassetteError{Line: n, Err: err}
		}
	}
}

// boundedLine reads a line without its end. io.EOF: there is none. A last line without an end is no line, since it may not
// be whole.
func boundedLine(in *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		if line = append(line, part...); len(line) > maxCassetteLine+1 {
			return nil, errLongLine
		}
		switch {
		case err == nil:
			return line[:len(line)-1], nil
		case err == io.EOF && len(line) > 0:
			return nil, errors.New("it does not end with a line break, so it may not be whole; remove this last line, and record its call again")
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}

func (t *tape) add(line []byte, n int, run *int) error {
	if *run == 0 || bytes.Contains(line[:min(len(line), len(`{ "openenv_cassette"`))], []byte("openenv_cassette")) {
		if _, err := parseHeader(line); err != nil {
			return err
		}
		*run++
		return nil
	}
	call, err := parseCall(line)
	if err != nil {
		return err
	}
	t.entries = append(t.entries, &entry{*call, n, *run})
	return nil
}

func parseHeader(line []byte) (h cassetteHeader, err error) {
	if err := strictjson.Check(line, maxCassetteDepth); err != nil {
		return h, fmt.Errorf("want the header of a recording: %w", err)
	}
	if err := strictjson.UnmarshalKnown(line, &h); err != nil || h.Version == 0 {
		return h, fmt.Errorf(`want the header of a recording, {"openenv_cassette":%d}`, cassetteVersion)
	}
	if h.Version != cassetteVersion {
		return h, fmt.Errorf("it is of version %d, and only %d is understood; record again", h.Version, cassetteVersion)
	}
	return h, nil
}

// errorTypes are those that a line may have.
var errorTypes = []ErrorType{ExecutionError, InvalidArgs, TransportError, ToolNotFound, Timeout}

// parseCall reads a line, and takes nothing that it does not understand.
func parseCall(line []byte) (*cassetteCall, error) {
	if err := strictjson.Check(line, maxCassetteDepth); err != nil {
		return nil, err
	}
	c := &cassetteCall{}
	if err := strictjson.UnmarshalKnown(line, c); err != nil {
		return nil, err
	}
	outcomes := 0
	for _, there := range []bool{c.Value != nil, c.Result != nil, c.Failure != nil, c.Error != nil} {
		if there {
			outcomes++
		}
	}
	switch {
	case c.Session < 1 || c.Episode < 0:
		return nil, errors.New("want a session from 1 on, and an episode from 0 on")
	case !validName.MatchString(c.Tool):
		return nil, fmt.Errorf("tool %.200q: %w", c.Tool, CheckName(c.Tool))
	case c.Arguments.Kind() != '{':
		return nil, errors.New("want arguments, an object")
	case outcomes != 1:
		return nil, fmt.Errorf("want one of value, result, failure and error, got %d of them", outcomes)
	case c.Result != nil && c.Result.Kind() != '{':
		return nil, errors.New("want an object as the result")
	case c.Error != nil && !slices.Contains(errorTypes, c.Error.Type):
		return nil, fmt.Errorf("error type %.200q: want one of %v", c.Error.Type, errorTypes)
	}
	if _, _, err := strictjson.Parse(c.Arguments); err != nil {
		return nil, fmt.Errorf("arguments: %w", err)
	}
	if c.Result != nil {
		if _, err := parseResult(c.Result); err != nil {
			return nil, fmt.Errorf("result: %w", err)
		}
	}
	return c, nil
}

// failed is the error that the line has.
func (e *entry) failed() *Error {
	out := &Error{Type: e.Error.Type, Tool: e.Tool, Message: e.Error.Message}
	for _, f := range e.Error.Fields {
		field := FieldError{Type: f.Type, Loc: []any{}, Msg: f.Msg}
		for _, step := range f.Loc {
			if n, ok := step.(float64); ok {
				step = int(n)
			}
			field.Loc = append(field.Loc, step)
		}
		if f.Input != nil {
			field.Input = f.Input
		}
		out.Fields = append(out.Fields, field)
	}
	if out.Type == InvalidArgs {
		out.Err = &InputError{Fields: out.Fields}
	}
	return out
}
