package codemode

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.starlark.net/starlark"

	"github.com/openenv-go/openenv-go/pkg/codemode/internal/dialect"
	"github.com/openenv-go/openenv-go/pkg/codemode/internal/fault"
)

// report makes an Error of what came out of the code, or of why the run is over.
func (r *run) report(err error) *Error {
	e := r.classify(cmp.Or(r.ended(), err))
	var eval *starlark.EvalError
	if !errors.As(err, &eval) {
		return e
	}
	e.Trace = trace(eval.CallStack)
	if n := len(e.Trace); n > 1 && r.isFunction(e.Trace[n-1]) {
		e.Trace = e.Trace[:n-1]
	}
	if n := len(e.Trace); n > 0 {
		r.place(e, e.Trace[n-1].Line, e.Trace[n-1].column)
		if raised := (*fault.Exception)(nil); e.Kind == Runtime && errors.As(err, &raised) {
			if _, own := raised.Value.(*exception); !own { // a built-in function's: its class is what an except clause has to name
				e.Message = raised.Class + ": " + e.Message
			}
		}
	}
	if len(e.Trace) == 1 {
		e.Trace = nil
	}
	return e
}

func (r *run) classify(err error) *Error {
	e := &Error{Kind: Runtime, Message: messageOf(err)}
	var limit *fault.Limit
	var raised *fault.Exception
	switch {
	case errors.As(err, &limit):
		e.Kind, e.Message, e.Limit = Limited, limit.Message, limit.Name
	case errors.As(err, &raised):
		e.Message, e.Hint = raised.Message, raised.Hint
		switch x, _ := raised.Value.(*exception); {
		case x == nil: // a built-in function's
		case x.call != nil:
			e.Kind, e.Tool, e.Type = ToolErr, x.tool, x.call.Type
		case x.text != "":
			e.Message = x.class.name + ": " + x.text
		}
	case errors.Is(err, context.Canceled):
		e.Message = "the run was cancelled"
	}
	return e
}

// messageOf is what an error of the interpreter's own says, with the names of functions as the code spells them.
func messageOf(err error) string {
	text := err.Error()
	var eval *starlark.EvalError
	if errors.As(err, &eval) && len(eval.CallStack) > 0 {
		if name := eval.CallStack.At(0).Name; strings.HasSuffix(name, " ") {
			text = strings.Replace(text, name, strings.TrimRight(name, " "), 1)
		}
	}
	return text
}

// trace is the part of a stack that the code can know, outermost first. The functions that stand for the blocks of a try
// statement are part of the function around them.
func trace(stack starlark.CallStack) []Frame {
	var frames []Frame
	for _, f := range stack {
		if f.Pos.Filename() != dialect.FileName {
			continue
		}
		at := Frame{Line: int(f.Pos.Line), column: int(f.Pos.Col)}
		switch n := len(frames); {
		case n == 0: // the top level
			frames = append(frames, at)
		case isHidden(f.Name):
			at.Function = frames[n-1].Function
			frames[n-1] = at
		default:
			at.Function = clip(strings.TrimRight(f.Name, " "), maxName)
			frames = append(frames, at)
		}
	}
	return frames[max(0, len(frames)-maxFrames):]
}

// place says where in the code the fault is; a line of 0 says nothing.
func (r *run) place(e *Error, line, column int) {
	if line < 1 || line > len(r.lines) {
		return
	}
	e.Line, e.Column = line, column
	e.Source = window(strings.TrimRight(r.lines[line-1], "\r"), column)
}

// What an Error shows of things that the code can make as large as it likes.
const (
	maxMessage = 8 << 10 // bytes as JSON
	maxSource  = 300     // code points
	maxName    = 100     // bytes
	maxFrames  = 20
)

const cut = "…"

// window is a line, or what of a long line is around a column.
func window(line string, column int) string {
	runes := []rune(line)
	if len(runes) <= maxSource {
		return line
	}
	from := min(max(0, column-maxSource/2), len(runes)-maxSource)
	s := string(runes[from : from+maxSource])
	if from > 0 {
		s = cut + s
	}
	if from+maxSource < len(runes) {
		s += cut
	}
	return s
}

func (e *Error) shorten(output int) {
	e.Message = clip(printable(e.Message), min(maxMessage, output))
	e.Hint = clip(printable(e.Hint), min(maxMessage, output))
}

// printable is s with its control characters escaped, save those that make lines.
func printable(s string) string {
	hidden := func(c rune) bool { return unicode.IsControl(c) && c != '\n' && c != '\t' }
	if !strings.ContainsFunc(s, hidden) {
		return s
	}
	var b strings.Builder
	for _, c := range s {
		if hidden(c) {
			fmt.Fprintf(&b, "\\x%02x", c)
		} else {
			b.WriteRune(c)
		}
	}
	return b.String()
}

// clip is the beginning of s that takes no more than n bytes as JSON, in valid UTF-8.
func clip(s string, n int) string {
	if len(s) <= n/6 && utf8.ValidString(s) {
		return s
	}
	kept, used := 0, 0
	for i, c := range s {
		if used += jsonLength(c); used > n-len(cut) {
			return strings.ToValidUTF8(s[:kept], "\uFFFD") + cut
		}
		kept = i + utf8.RuneLen(c)
		if c == utf8.RuneError {
			kept = i + 1
		}
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// jsonLength is the most that a character takes as JSON.
func jsonLength(c rune) int {
	switch {
	case c < ' ', c == '<', c == '>', c == '&', c == '\u2028', c == '\u2029', c == utf8.RuneError:
		return 6
	case c == '"', c == '\\':
		return 2
	}
	return utf8.RuneLen(c)
}

// Text is the error as a model is told it: the message, the place with the source line and a mark below the column, the
// hint, and the calls that led there.
func (e *Error) Text() string {
	var b strings.Builder
	b.WriteString(e.Message)
	if e.Tool != "" && !names(e.Message, e.Tool) {
		b.Reset()
		fmt.Fprintf(&b, "%s: %s", e.Tool, e.Message)
	}
	if e.Line > 0 {
		e.writePlace(&b)
	}
	if e.Hint != "" {
		fmt.Fprintf(&b, "\nhint: %s", e.Hint)
	}
	for i := len(e.Trace) - 2; i >= 0; i-- {
		f, times := e.Trace[i], 1
		for ; i > 0 && e.Trace[i-1] == f; i-- {
			times++
		}
		fmt.Fprintf(&b, "\ncalled from line %d%s", f.Line, inFunction(f.Function))
		if times > 1 {
			fmt.Fprintf(&b, " (%d times)", times)
		}
	}
	return b.String()
}

// names reports whether a message has a tool's name as words of its own: answered is not answer.
func names(message, tool string) bool {
	for from := 0; ; {
		at := strings.Index(message[from:], tool)
		if at < 0 {
			return false
		}
		at += from
		before, _ := utf8.DecodeLastRuneInString(message[:at])
		after, _ := utf8.DecodeRuneInString(message[at+len(tool):])
		if !unicode.IsLetter(before) && !unicode.IsLetter(after) {
			return true
		}
		from = at + len(tool)
	}
}

func (e *Error) writePlace(b *strings.Builder) {
	fmt.Fprintf(b, "\nline %d", e.Line)
	if n := len(e.Trace); n > 0 {
		b.WriteString(inFunction(e.Trace[n-1].Function))
	}
	fmt.Fprintf(b, ":\n    %s", e.Source)
	before := []rune(e.Source)
	if e.Column < 1 || e.Column > len(before)+1 || strings.HasPrefix(e.Source, cut) {
		return
	}
	b.WriteString("\n    ")
	for _, c := range before[:e.Column-1] {
		if c == '\t' {
			b.WriteRune(c)
		} else {
			b.WriteByte(' ')
		}
	}
	b.WriteByte('^')
}

func inFunction(name string) string {
	if name == "" {
		return ""
	}
	return ", in " + name
}
