package dialect

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
)

type kind int

const (
	endToken     kind = iota // of the source, or of a field of an f-string
	newlineToken             // of a logical line
	indentToken
	dedentToken
	nameToken
	keywordToken
	numberToken // value: int64, *big.Int or float64
	stringToken // value: []part
	opToken
	faultToken // value: *Error
)

// A token is a word of the source.
type token struct {
	place
	kind  kind
	text  string
	value any
	first bool // of its line
}

var keywords = map[string]bool{
	"False": true, "None": true, "True": true, "and": true, "as": true, "assert": true, "async": true, "await": true, "break": true,
	"class": true, "continue": true, "def": true, "del": true, "elif": true, "else": true, "except": true, "finally": true,
	"for": true, "from": true, "global": true, "if": true, "import": true, "in": true, "is": true, "lambda": true, "nonlocal": true,
	"not": true, "or": true, "pass": true, "raise": true, "return": true, "try": true, "while": true, "with": true, "yield": true,
}

// IsKeyword tells the words that cannot be names.
func IsKeyword(word string) bool { return keywords[word] }

// operators are tried in this order.
var operators = []string{
	"**=", "//=", ">>=", "<<=", "...", ":=", "->", "==", "!=", "<=", ">=", "<<", ">>", "**", "//", "+=", "-=", "*=", "/=", "%=", "&=", "|=",
	"^=", "@=", "+", "-", "*", "/", "%", "@", "&", "|", "^", "~", "<", ">", "(", ")", "[", "]", "{", "}", ",", ":", ".", ";", "=",
}

type lexer struct {
	src       []rune
	i         int
	line      int32
	lineStart int
	indents   []int
	brackets  int // that are open
	fields    int // of f-strings, within each other
	out       []token
}

// lex cuts source into tokens. A fault ends them, as a token, so that one before it is found first.
func lex(src []rune) (out []token) {
	lx := &lexer{src: src, line: 1, indents: []int{0}}
	defer func() {
		if r := recover(); r != nil {
			e, ok := r.(*Error)
			if !ok {
				panic(r)
			}
			out = append(lx.out, token{place: place{int32(e.Line), int32(e.Column)}, kind: faultToken, value: e})
		}
	}()
	lx.all()
	return lx.out
}

func (lx *lexer) all() {
	for fresh := true; ; {
		if fresh && lx.brackets == 0 {
			lx.indentation()
		}
		lx.space()
		if lx.i >= len(lx.src) {
			break
		}
		if fresh = lx.src[lx.i] == '\n'; fresh {
			lx.endLine()
			lx.newline()
			continue
		}
		lx.next()
		lx.out[len(lx.out)-1].first = lx.isFirst(lx.out)
	}
	lx.endLine()
	for range lx.indents[1:] {
		lx.add(lx.here(), dedentToken, "", nil)
	}
	lx.add(lx.here(), endToken, "", nil)
}

func (lx *lexer) isFirst(out []token) bool {
	n := len(out)
	return n == 1 || out[n-2].line < out[n-1].line
}

func (lx *lexer) here() place { return place{lx.line, int32(lx.i-lx.lineStart) + 1} }

func (lx *lexer) peek(ahead int) rune {
	if lx.i+ahead < len(lx.src) {
		return lx.src[lx.i+ahead]
	}
	return 0
}

func (lx *lexer) add(at place, k kind, text string, value any) {
	lx.out = append(lx.out, token{place: at, kind: k, text: text, value: value})
}

// newline passes the end of a line of the source.
func (lx *lexer) newline() {
	lx.i++
	lx.line++
	lx.lineStart = lx.i
}

// endLine ends a logical line, if one has begun and no bracket is open.
func (lx *lexer) endLine() {
	n := len(lx.out)
	if lx.brackets > 0 || n == 0 {
		return
	}
	switch lx.out[n-1].kind {
	case newlineToken, indentToken, dedentToken:
		return
	}
	at := lx.here()
	for i := lx.i; i > lx.lineStart; i-- { // the end of the text, not of a comment or of white space
		if at.col--; !unicode.IsSpace(lx.src[i-1]) {
			break
		}
	}
	lx.add(place{at.line, max(at.col+1, 1)}, newlineToken, "", nil)
}

// space passes white space, comments and lines that go on.
func (lx *lexer) space() {
	for lx.i < len(lx.src) {
		switch r := lx.src[lx.i]; {
		case r == ' ' || r == '\t' || r == '\f':
			lx.i++
		case r == '#' && lx.fields == 0:
			for lx.i < len(lx.src) && lx.src[lx.i] != '\n' {
				lx.i++
			}
		case r == '\\' && lx.peek(1) == '\n':
			lx.i++
			lx.newline()
		default:
			return
		}
	}
}

// indentation compares the white space at the beginning of a line with that of the lines before. A tab goes to the next
// column that a multiple of eight precedes.
func (lx *lexer) indentation() {
	width := 0
	for ; ; lx.i++ {
		switch lx.peek(0) {
		case ' ':
			width++
			continue
		case '\t':
			width = width/8*8 + 8
			continue
		case '\f':
			width = 0
			continue
		}
		break
	}
	if r := lx.peek(0); r == '\n' || r == '#' || lx.i >= len(lx.src) {
		return
	}
	at := lx.here()
	if top := lx.indents[len(lx.indents)-1]; width > top {
		lx.indents = append(lx.indents, width)
		if len(lx.indents) > maxNesting {
			at.tooDeep()
		}
		lx.add(at, indentToken, "", nil)
		return
	}
	open := slices.Clone(lx.indents)
	for width < lx.indents[len(lx.indents)-1] {
		lx.indents = lx.indents[:len(lx.indents)-1]
		lx.add(at, dedentToken, "", nil)
	}
	if top := lx.indents[len(lx.indents)-1]; width != top {
		at.failHint("begin the line under the block that it belongs to; a tab counts as eight columns",
			"the indentation of %d columns fits no block above: those have %s", width, numbers(open))
	}
}

func numbers(ns []int) string {
	var words []string
	for _, n := range ns {
		words = append(words, strconv.Itoa(n))
	}
	return Listed(words, "or")
}

// next reads one token.
func (lx *lexer) next() {
	at, r := lx.here(), lx.src[lx.i]
	switch {
	case r >= '0' && r <= '9', r == '.' && isDigit(lx.peek(1)):
		lx.number()
		return
	case r == '"' || r == '\'':
		lx.string("")
		return
	case isNameStart(r):
		lx.word()
		return
	}
	for _, op := range operators {
		if lx.has(op) {
			lx.i += len(op)
			lx.operator(at, op)
			return
		}
	}
	lx.strange(at, r)
}

func (lx *lexer) has(op string) bool {
	for j := range len(op) {
		if lx.peek(j) != rune(op[j]) {
			return false
		}
	}
	return true
}

func (lx *lexer) operator(at place, op string) {
	switch op {
	case "(", "[", "{":
		if lx.brackets++; lx.brackets > maxNesting { // before a token of each takes memory
			at.tooDeep()
		}
	case ")", "]", "}":
		lx.brackets = max(lx.brackets-1, 0)
	}
	lx.add(at, opToken, op, nil)
}

func isDigit(r rune) bool { return r >= '0' && r <= '9' }

func isNameStart(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.Is(unicode.Nl, r) }

func isNamePart(r rune) bool {
	return isNameStart(r) || unicode.IsDigit(r) || unicode.Is(unicode.Mn, r) || unicode.Is(unicode.Mc, r) || unicode.Is(unicode.Pc, r)
}

// word reads a name, a keyword, or a string with a prefix.
func (lx *lexer) word() {
	at, from := lx.here(), lx.i
	for lx.i < len(lx.src) && isNamePart(lx.src[lx.i]) {
		lx.i++
	}
	text := string(lx.src[from:lx.i])
	if q := lx.peek(0); (q == '"' || q == '\'') && len(text) <= 2 {
		if prefix := strings.ToLower(text); slices.Contains([]string{"r", "f", "u", "fr", "rf", "b", "br", "rb", "t", "tr", "rt"}, prefix) {
			lx.i = from
			lx.string(prefix)
			return
		}
	}
	k := nameToken
	if keywords[text] {
		k = keywordToken
	}
	lx.add(at, k, text, nil)
}

// strange refuses a character that begins no token.
func (lx *lexer) strange(at place, r rune) {
	switch r {
	case '`':
		at.failHint("text goes in \" or '; send the code alone, without ``` around parts of it", "the character ` means nothing here")
	case '“', '”', '„', '‘', '’', '«', '»':
		at.failHint("text goes in \" or '", "the character %c is a typographic quote", r)
	case '!':
		at.failHint("write not x, or x != y", "the character ! means nothing here")
	case '?':
		at.failHint("write a if c else b, or x or y", "the character ? means nothing here")
	case '\\':
		at.failHint("\\ goes at the very end of a line that the next one continues", "a \\ in the midst of a line")
	case '#':
		at.fail("a # in a field of an f-string")
	}
	if unicode.IsPrint(r) {
		at.fail("the character %c means nothing here", r)
	}
	if unicode.IsSpace(r) {
		at.failHint("write a plain space", "the character U+%04X, a space of another kind", r)
	}
	at.failHint("leave it out", "the character U+%04X, which cannot be seen", r)
}
