package dialect

import (
	"fmt"
	"strings"

	"go.starlark.net/syntax"
)

// FileName is the file of all positions of a program.
const FileName = "code"

const (
	maxNesting = 100  // levels of source within itself
	maxDepth   = 1000 // of the tree, chains like a+b+c and a.b.c included: Starlark's compiler recurses over it
	maxDigits  = 4300 // of an integer literal, as in Python: reading them takes time that is quadratic
)

// Options are what code finds. The zero value knows nothing but the language.
type Options struct {
	Known     []string          // names that are predeclared: built-ins, modules, the tools' functions
	Functions map[string]string // the tools' functions by published name
	Refused   map[string]string // of names that are not known: what to do instead. They add to those that the package has
}

// A Program is code that was read.
type Program struct {
	File  *syntax.File // to be compiled by starlark.FileProgram, once
	Lines []string     // the source, as it was given
}

// An Error is the first fault of code that cannot be read.
type Error struct {
	Line, Column int    // from 1; columns are code points
	Message      string // what is wrong
	Hint         string // what to write instead; "" for none
	Limit        string // "nesting" if that bound was reached
}

func (e *Error) Error() string {
	text := fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, e.Message)
	if e.Hint != "" {
		text += "; " + e.Hint
	}
	return text
}

// Parse reads code. Its error is an [*Error]. It keeps nothing of o, and may be called from many goroutines.
func Parse(source string, o Options) (p *Program, err error) {
	defer func() {
		if r := recover(); r != nil {
			fault, ok := r.(*Error)
			if !ok {
				panic(r)
			}
			if fault.Hint == "" && strings.Contains("\n"+source, "\n```") {
				fault.Hint = "send the code alone, without ``` and prose"
			}
			p, err = nil, fault
		}
	}()
	code := newCode(source)
	tree := newParser(lex(code.text), o).file()
	scopes := analyse(tree, newNames(code, o))
	return &Program{File: lower(tree, scopes), Lines: code.lines}, nil
}

// A place is a position in the source: a line and a column of code points, from 1.
type place struct{ line, col int32 }

func (p place) at() place { return p }

func (p place) before(q place) bool { return p.line < q.line || p.line == q.line && p.col < q.col }

// fail ends the parse with a message.
func (p place) fail(format string, args ...any) { panic(p.fault(format, args...)) }

// failHint ends the parse with a message and a hint.
func (p place) failHint(hint, format string, args ...any) {
	e := p.fault(format, args...)
	e.Hint = hint
	panic(e)
}

func (p place) fault(format string, args ...any) *Error {
	return &Error{Line: int(p.line), Column: int(p.col), Message: fmt.Sprintf(format, args...)}
}

// tooDeep ends the parse since the source nests too deeply.
func (p place) tooDeep() {
	e := p.fault("the code nests too deeply")
	e.Hint = "name parts of it, line by line"
	e.Limit = "nesting"
	panic(e)
}

// A code is source made ready for the lexer.
type code struct {
	lines []string
	text  []rune // line ends are \n, a fence around the whole is blank
}

func newCode(source string) *code {
	source = strings.TrimPrefix(source, "\ufeff")
	source = strings.ReplaceAll(strings.ReplaceAll(source, "\r\n", "\n"), "\r", "\n")
	lines := strings.Split(source, "\n")
	checkText(lines)
	return &code{lines, []rune(strings.Join(unfenced(lines), "\n"))}
}

// checkText refuses what is no text: bytes that are not UTF-8, and NUL.
func checkText(lines []string) {
	for n, line := range lines {
		col := int32(1)
		for i, r := range line {
			at := place{int32(n + 1), col}
			switch {
			case r == 0:
				at.failHint("leave it out; in text, write \\0", "the character U+0000 (NUL)")
			case r == '\ufffd' && !strings.HasPrefix(line[i:], "\ufffd"):
				at.failHint("send the code as UTF-8", "the byte 0x%02x is not UTF-8", line[i])
			}
			col++
		}
	}
}

// unfenced returns the lines without a Markdown fence around the whole: its lines are blank, so that numbers stay.
func unfenced(lines []string) []string {
	first, last := 0, len(lines)-1
	for first < last && strings.TrimSpace(lines[first]) == "" {
		first++
	}
	for last > first && strings.TrimSpace(lines[last]) == "" {
		last--
	}
	if first >= last || !strings.HasPrefix(lines[first], "```") || strings.Contains(lines[first][3:], "`") {
		return lines
	}
	out := append([]string(nil), lines...)
	out[first] = ""
	if strings.TrimSpace(lines[last]) == "```" {
		out[last] = ""
	}
	return out
}
