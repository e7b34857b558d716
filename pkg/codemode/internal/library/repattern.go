package library

import (
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"go.starlark.net/starlark"

	"github.com/openenv-go/openenv-go/pkg/codemode/internal/fault"
)

// Flags of patterns, with Python's values.
const (
	ignoreCase = 2
	multiLine  = 8
	dotAll     = 16
	unicodeTxt = 32
	verbose    = 64
	asciiOnly  = 256
)

const (
	maxPattern = 16 << 10 // bytes of a pattern
	maxProgram = 20_000   // instructions of its program
)

// A pattern is a compiled regular expression.
type pattern struct {
	*library
	text  string
	flags int
	size  int            // instructions, roughly
	any   *regexp.Regexp // matches wherever it can
	names []string       // of groups; 0 is the whole

	source    string // in RE2's syntax
	here      *regexp.Regexp
	whole     *regexp.Regexp
	later     *regexp.Regexp
	laterHere *regexp.Regexp
}

func (p *pattern) String() string        { return "re.compile(" + starlark.String(p.text).String() + ")" }
func (p *pattern) Type() string          { return "pattern" }
func (p *pattern) Freeze()               {}
func (p *pattern) Truth() starlark.Bool  { return true }
func (p *pattern) Hash() (uint32, error) { return starlark.String(p.text).Hash() }

// compile makes a pattern, or takes the one that the run has made before.
func (c *call) compile(text string, flags int) (*pattern, error) {
	s := c.state()
	key := strconv.Itoa(flags) + ":" + text
	if p := s.patterns[key]; p != nil {
		return p, nil
	}
	if len(text) > maxPattern {
		return nil, badPattern("the pattern is too long: %d bytes, and there may be %d", len(text), maxPattern)
	}
	if err := c.step(1 + len(text)); err != nil {
		return nil, err
	}
	t := translator{rest: text, flags: flags}
	source, err := t.run()
	if err != nil {
		return nil, err
	}
	tree, err := syntax.Parse(source, syntax.Perl)
	if err != nil {
		return nil, badSyntax(text, err)
	}
	size := programSize(tree, maxProgram+1)
	if size > maxProgram {
		return nil, badPattern("the pattern is too large: its repeats come to more than %d instructions", maxProgram)
	}
	if err := c.step(size); err != nil {
		return nil, err
	}
	if err := c.settle(); err != nil {
		return nil, err
	}
	p := &pattern{library: c.library, text: text, flags: t.flags, size: size, source: source}
	if p.any, err = regexp.Compile(source); err != nil {
		return nil, badSyntax(text, err)
	}
	p.names = p.any.SubexpNames()
	const kept = 64
	if len(s.patterns) >= kept {
		clear(s.patterns)
	}
	s.patterns[key] = p
	return p, nil
}

func badPattern(format string, args ...any) *fault.Exception {
	return fault.New("PatternError", "re: "+format, args...)
}

func badSyntax(text string, err error) error {
	what := err.Error()
	if e, ok := err.(*syntax.Error); ok {
		what = e.Code.String()
		if e.Expr != "" && len(e.Expr) < 100 {
			what += ": " + e.Expr
		}
	}
	return badPattern("bad pattern %s: %s", Repr(starlark.String(text)), what)
}

// programSize is how many instructions a pattern comes to, up to a bound.
func programSize(r *syntax.Regexp, most int) int {
	n := 1
	for _, sub := range r.Sub {
		if n += programSize(sub, most); n > most {
			return most
		}
	}
	switch r.Op {
	case syntax.OpLiteral:
		n += len(r.Rune)
	case syntax.OpRepeat:
		n = times(n, max(r.Min, r.Max, 1))
	}
	return min(n, most)
}

// as compiles a form of the pattern once.
func (p *pattern) as(form **regexp.Regexp, before, after string) (*regexp.Regexp, error) {
	if *form == nil {
		re, err := regexp.Compile(before + "(?:" + p.source + ")" + after)
		if err != nil {
			return nil, badSyntax(p.text, err)
		}
		*form = re
	}
	return *form, nil
}

// A translator writes a pattern of Python's in RE2's syntax.
type translator struct {
	rest  string
	flags int
	out   strings.Builder
}

func (t *translator) run() (string, error) {
	if err := t.leadingFlags(); err != nil {
		return "", err
	}
	for t.rest != "" {
		if err := t.one(); err != nil {
			return "", err
		}
	}
	var letters string
	for flag, letter := range map[int]string{ignoreCase: "i", multiLine: "m", dotAll: "s"} {
		if t.flags&flag != 0 {
			letters += letter
		}
	}
	if letters != "" {
		return "(?" + letters + ":" + t.out.String() + ")", nil
	}
	return t.out.String(), nil
}

// leadingFlags reads (?i) and such, which are there for the whole pattern.
func (t *translator) leadingFlags() error {
	for strings.HasPrefix(t.rest, "(?") {
		end := strings.IndexByte(t.rest, ')')
		if end < 3 || strings.Trim(t.rest[2:end], "aimsux") != "" {
			return nil
		}
		for _, letter := range t.rest[2:end] {
			t.flags |= map[rune]int{'i': ignoreCase, 'm': multiLine, 's': dotAll, 'x': verbose, 'a': asciiOnly, 'u': unicodeTxt}[letter]
		}
		t.rest = t.rest[end+1:]
	}
	return nil
}

// take moves n bytes from the pattern to the output.
func (t *translator) take(n int) {
	t.out.WriteString(t.rest[:n])
	t.rest = t.rest[n:]
}

func (t *translator) one() error {
	switch b := t.rest[0]; {
	case b == '\\':
		return t.escape(false)
	case b == '[':
		return t.class()
	case b == '(' && strings.HasPrefix(t.rest, "(?"):
		return t.group()
	case b == '$' && t.flags&multiLine == 0:
		// In Python it is before a newline at the end, too. That cannot be said without looking ahead.
		t.take(1)
	case b == '{':
		t.braces()
	case strings.IndexByte("*+?}", b) >= 0 && len(t.rest) > 1 && t.rest[1] == '+':
		return refused(t.rest[:2], "a possessive repeat")
	case t.flags&verbose != 0 && isSpace(rune(b)):
		t.rest = t.rest[1:]
	case t.flags&verbose != 0 && b == '#':
		_, t.rest, _ = strings.Cut(t.rest, "\n")
	default:
		t.take(runeLen(t.rest))
	}
	return nil
}

// braces writes {,n}, which RE2 takes for text, as {0,n}.
func (t *translator) braces() {
	end := strings.IndexByte(t.rest, '}')
	if strings.HasPrefix(t.rest, "{,") && end > 2 && strings.Trim(t.rest[2:end], "0123456789") == "" {
		t.out.WriteString("{0")
		t.rest = t.rest[1:]
		return
	}
	t.take(1)
}

func refused(what, name string) error {
	return badPattern("%s is %s, which RE2 has not", what, name).
		Hinted("match more than you need, and look at the match in code; RE2 knows no lookaround, backreferences or possessive repeats")
}

// group is what begins with (?.
func (t *translator) group() error {
	for _, g := range []struct{ open, name string }{
		{"(?=", "a lookahead"}, {"(?!", "a lookahead"}, {"(?<=", "a lookbehind"}, {"(?<!", "a lookbehind"}, {"(?>", "an atomic group"},
		{"(?P=", "a backreference"}, {"(?(", "a condition"},
	} {
		if strings.HasPrefix(t.rest, g.open) {
			return refused(g.open, g.name)
		}
	}
	if strings.HasPrefix(t.rest, "(?#") {
		end := strings.IndexByte(t.rest, ')')
		if end < 0 {
			return badPattern("a comment (?# is never closed")
		}
		t.rest = t.rest[end+1:]
		return nil
	}
	end := strings.IndexAny(t.rest, ":)>")
	if end < 0 {
		return badPattern("a group (? is never closed")
	}
	if head := t.rest[:end]; t.rest[end] != '>' && strings.ContainsAny(head, "aux") {
		head = strings.Map(func(r rune) rune {
			if strings.ContainsRune("aux", r) {
				return -1
			}
			return r
		}, head)
		t.out.WriteString(head)
		t.rest = t.rest[end:]
		return nil
	}
	t.take(end + 1)
	return nil
}

// Classes of characters as Python has them, which are Unicode's, and RE2's are not.
const (
	digitClass = `\p{Nd}`
	wordClass  = `\p{L}\p{N}_`
	spaceClass = `\t-\r\x1c-\x20\x{85}\p{Z}`
)

// escape is what begins with a backslash; within tells whether it is in [].
func (t *translator) escape(within bool) error {
	if len(t.rest) < 2 {
		return badPattern("the pattern ends with a backslash")
	}
	n := runeLen(t.rest[1:])
	b := t.rest[1]
	if class := t.classOf(b | 0x20); class != "" && n == 1 {
		t.rest = t.rest[2:]
		return t.writeClass(class, b < 'a', within)
	}
	switch {
	case n > 1:
		t.out.WriteString(t.rest[1 : 1+n])
		t.rest = t.rest[1+n:]
	case b == 'u' || b == 'U' || b == 'x':
		return t.code(b)
	case b == '0' || within && '1' <= b && b <= '7':
		return t.octal()
	case '1' <= b && b <= '9':
		return refused(t.rest[:2], "a backreference")
	case b == 'Z':
		t.out.WriteString(`\z`)
		t.rest = t.rest[2:]
	case within && b == 'b':
		t.out.WriteString(`\x08`)
		t.rest = t.rest[2:]
	case strings.IndexByte("AbBaftnrvpP", b) >= 0, !('a' <= b|0x20 && b|0x20 <= 'z'):
		t.take(2)
	default:
		return badPattern("bad escape %s", t.rest[:2])
	}
	return nil
}

func (t *translator) classOf(b byte) string {
	if t.flags&asciiOnly != 0 {
		return map[byte]string{'d': "0-9", 'w': "0-9A-Za-z_", 's': `\t-\r\x20`}[b]
	}
	return map[byte]string{'d': digitClass, 'w': wordClass, 's': spaceClass}[b]
}

func (t *translator) writeClass(class string, negated, within bool) error {
	switch {
	case !within && negated:
		t.out.WriteString("[^" + class + "]")
	case !within:
		t.out.WriteString("[" + class + "]")
	case !negated:
		t.out.WriteString(class)
	default:
		ranges, err := complement(class)
		if err != nil {
			return err
		}
		t.out.WriteString(ranges)
	}
	return nil
}

// complements are what is not in a class, written out: in [] there is no other way.
var complements sync.Map

func complement(class string) (string, error) {
	if s, ok := complements.Load(class); ok {
		return s.(string), nil
	}
	r, err := syntax.Parse("[^"+class+"]", syntax.Perl)
	if err != nil {
		return "", badSyntax(class, err)
	}
	var b strings.Builder
	for i := 0; i+1 < len(r.Rune); i += 2 {
		b.WriteString(`\x{` + strconv.FormatInt(int64(r.Rune[i]), 16) + `}-\x{` + strconv.FormatInt(int64(r.Rune[i+1]), 16) + `}`)
	}
	complements.Store(class, b.String())
	return b.String(), nil
}

// code is \xHH, \uHHHH or \UHHHHHHHH.
func (t *translator) code(letter byte) error {
	n := map[byte]int{'x': 2, 'u': 4, 'U': 8}[letter]
	if len(t.rest) >= 2+n {
		if r, err := strconv.ParseUint(t.rest[2:2+n], 16, 32); err == nil && r <= utf8.MaxRune {
			t.out.WriteString(`\x{` + t.rest[2:2+n] + `}`)
			t.rest = t.rest[2+n:]
			return nil
		}
	}
	return badPattern("incomplete escape %s", t.rest[:2])
}

func (t *translator) octal() error {
	end := 1
	for end < len(t.rest) && end < 4 && '0' <= t.rest[end] && t.rest[end] <= '7' {
		end++
	}
	r, err := strconv.ParseUint(t.rest[1:end], 8, 32)
	if err != nil {
		return badPattern("bad escape %s", t.rest[:2])
	}
	t.out.WriteString(`\x{` + strconv.FormatUint(r, 16) + `}`)
	t.rest = t.rest[end:]
	return nil
}

// class is [...]: there, RE2 gives [ a meaning that Python does not.
func (t *translator) class() error {
	t.take(1)
	if strings.HasPrefix(t.rest, "^") {
		t.take(1)
	}
	for first := true; ; first = false {
		switch {
		case t.rest == "":
			return badPattern("a [ is never closed")
		case t.rest[0] == ']' && !first:
			t.take(1)
			return nil
		case t.rest[0] == '\\':
			if err := t.escape(true); err != nil {
				return err
			}
		case t.rest[0] == '[' || t.rest[0] == ']':
			t.out.WriteByte('\\')
			t.take(1)
		default:
			t.take(runeLen(t.rest))
		}
	}
}
