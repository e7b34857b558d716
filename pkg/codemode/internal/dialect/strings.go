package dialect

import (
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// A part is a piece of a string: text, or a field of an f-string.
type part struct {
	text   string
	field  []token // nil: text
	at     place   // of the field's brace
	value  expr    // what the field's tokens say, once they are parsed
	conv   string  // r, s, a or nothing
	spec   []part
	isSpec bool // a spec was given, maybe empty
}

// string reads a literal with a prefix (in lower case).
func (lx *lexer) string(prefix string) {
	at := lx.here()
	if strings.Contains(prefix, "b") {
		at.failHint("write \"…\": text is Unicode", "there are no bytes, so no b\"…\"")
	}
	if strings.Contains(prefix, "t") {
		at.failHint("write f\"…\"", "there are no template strings t\"…\"")
	}
	lx.i += len(prefix)
	s := &stringReader{lexer: lx, at: at, quote: lx.src[lx.i], raw: strings.Contains(prefix, "r"), f: strings.Contains(prefix, "f")}
	lx.i++
	if lx.peek(0) == s.quote && lx.peek(1) == s.quote {
		s.triple = true
		lx.i += 2
	}
	parts := s.parts(false)
	lx.i += s.closing()
	lx.out = append(lx.out, token{place: at, kind: stringToken, text: prefix, value: parts})
}

type stringReader struct {
	*lexer
	at             place
	quote          rune
	triple, raw, f bool
}

// closing is how many characters end the string here, or 0.
func (s *stringReader) closing() int {
	switch {
	case s.peek(0) != s.quote:
		return 0
	case !s.triple:
		return 1
	case s.peek(1) == s.quote && s.peek(2) == s.quote:
		return 3
	}
	return 0
}

// parts reads to the end of the string, or of a format spec in it.
func (s *stringReader) parts(spec bool) (parts []part) {
	var text strings.Builder
	flush := func() {
		if text.Len() > 0 {
			parts = append(parts, part{text: text.String()})
			text.Reset()
		}
	}
	for {
		if s.i >= len(s.src) || s.src[s.i] == '\n' && !s.triple {
			s.unclosed()
		}
		r := s.src[s.i]
		switch {
		case s.closing() > 0:
			if spec {
				s.here().failHint("write {{ for a brace that is text", "f-string: a } is missing")
			}
			flush()
			return parts
		case spec && r == '}':
			flush()
			return parts
		case s.f && (r == '{' || r == '}') && s.peek(1) == r && !spec:
			text.WriteRune(r)
			s.i += 2
		case s.f && r == '{':
			flush()
			parts = append(parts, s.field()...)
		case s.f && r == '}':
			s.here().failHint("write }} for a brace that is text", "f-string: a single }")
		case r == '\\':
			s.escape(&text)
		default:
			if s.i++; r == '\n' {
				s.i--
				s.newline()
			}
			text.WriteRune(r)
		}
	}
}

func (s *stringReader) unclosed() {
	switch {
	case s.fields > 0:
		s.at.failHint("close the string and the field", "f-string: a quote in {…} is not closed, or a } is missing")
	case s.triple:
		s.at.fail("the text that begins with %s is never closed", strings.Repeat(string(s.quote), 3))
	}
	s.at.failHint("close it with "+string(s.quote)+"; text over several lines goes in \"\"\"…\"\"\", a line break is \\n", "the text is not closed in its line")
}

// field reads {…}. With = it is two parts: its own source, and its value.
func (s *stringReader) field() []part {
	at := s.here()
	if s.fields++; s.fields > maxNesting {
		at.tooDeep()
	}
	s.i++
	from := s.i
	f := part{at: at, field: s.fieldTokens(at)}
	var source []part
	if s.peek(0) == '=' {
		for s.i++; s.peek(0) == ' '; s.i++ {
		}
		source = []part{{text: string(s.src[from:s.i])}}
	}
	if s.peek(0) == '!' {
		f.conv = string(s.peek(1))
		if !strings.Contains("rsa", f.conv) || isNamePart(s.peek(2)) {
			s.here().failHint("there are !r, !s and !a", "f-string: no such conversion")
		}
		s.i += 2
	}
	if s.peek(0) == ':' {
		s.i++
		f.spec, f.isSpec = s.parts(true), true
	}
	if s.peek(0) != '}' {
		at.failHint("write {{ for a brace that is text", "f-string: the { is not closed")
	}
	if source != nil && f.conv == "" && !f.isSpec {
		f.conv = "r"
	}
	s.i++
	s.fields--
	return append(source, f)
}

// fieldTokens cuts the expression of a field into tokens, up to what ends it.
func (s *stringReader) fieldTokens(at place) []token {
	out, brackets := s.out, s.brackets
	s.out, s.brackets = nil, 0
	for {
		s.space()
		if s.i >= len(s.src) || s.src[s.i] == '\n' && !s.triple && s.brackets == 0 {
			at.failHint("write {{ for a brace that is text", "f-string: the { is not closed")
		}
		if s.src[s.i] == '\n' {
			s.newline()
			continue
		}
		if s.brackets == 0 && s.endsField() {
			break
		}
		s.next()
	}
	if len(s.out) == 0 {
		at.failHint("write {{}} for braces that are text", "f-string: an empty field {}")
	}
	s.add(s.here(), endToken, "", nil)
	field := s.out
	s.out, s.brackets = out, brackets
	return field
}

func (s *stringReader) endsField() bool {
	r, next := s.peek(0), s.peek(1)
	return r == '}' || r == ':' || r == '!' && next != '=' || r == '=' && next != '='
}

var escapes = map[rune]string{
	'\\': "\\", '\'': "'", '"': "\"", 'a': "\a", 'b': "\b", 'f': "\f", 'n': "\n", 'r': "\r", 't': "\t", 'v': "\v", '\n': "",
}

// escape reads a backslash and what it stands for. Of those that stand for nothing the backslash stays, as in Python.
func (s *stringReader) escape(text *strings.Builder) {
	r := s.peek(1)
	if s.i+1 >= len(s.src) {
		s.unclosed()
	}
	known, isKnown := escapes[r]
	digits := map[rune]int{'x': 2, 'u': 4, 'U': 8}[r]
	switch {
	case s.raw && s.f && (r == '{' || r == '}'):
		text.WriteRune('\\')
		s.i++
		return
	case r == '\n':
		if s.raw {
			text.WriteString("\\\n")
		}
		s.i++
		s.newline()
		return
	case s.raw:
		text.WriteString("\\" + string(r))
	case isKnown:
		text.WriteString(known)
	case r >= '0' && r <= '7':
		s.octal(text)
		return
	case digits > 0:
		s.codePoint(text, digits)
		return
	case r == 'N':
		s.here().failHint("write the character itself, or \\u and its number", "no \\N{…}: names of characters are not known")
	case s.f && (r == '{' || r == '}'):
		text.WriteRune('\\')
		s.i++
		return
	default:
		text.WriteString("\\" + string(r))
	}
	s.i += 2
}

func (s *stringReader) octal(text *strings.Builder) {
	n := rune(0)
	s.i++
	for k := 0; k < 3 && s.peek(0) >= '0' && s.peek(0) <= '7'; k++ {
		n = n*8 + s.peek(0) - '0'
		s.i++
	}
	text.WriteRune(n)
}

// codePoint reads \x, \u or \U. Two \u that are a surrogate pair are one character, as in JSON.
func (s *stringReader) codePoint(text *strings.Builder, digits int) {
	at := s.here()
	n, raw := s.hex(digits)
	if utf16.IsSurrogate(n) && s.peek(0) == '\\' && s.peek(1) == 'u' {
		second, more := s.hex(4)
		n, raw = utf16.DecodeRune(n, second), raw+more
		if n == utf8.RuneError {
			n = 0xd800
		}
	}
	if !utf8.ValidRune(n) {
		at.failHint("write the character itself", "%s is no character", raw)
	}
	text.WriteRune(n)
}

func (s *stringReader) hex(digits int) (rune, string) {
	at, from := s.here(), s.i
	s.i += 2
	n := int64(0)
	for range digits {
		d, err := strconv.ParseInt(string(s.peek(0)), 16, 32)
		if err != nil {
			at.failHint("write \\\\ for a backslash, or r\"…\"", "%s wants %d hexadecimal digits", string(s.src[from:from+2]), digits)
		}
		n = n*16 + d
		s.i++
	}
	return rune(min(n, math.MaxInt32)), string(s.src[from:s.i])
}

// number reads an integer or a float.
func (lx *lexer) number() {
	at, from := lx.here(), lx.i
	for {
		r := lx.peek(0)
		exponent := (r == '+' || r == '-') && strings.ContainsRune("eE", lx.src[max(lx.i-1, from)]) && !lx.isHex(from)
		if !isNamePart(r) && r != '.' && !exponent {
			break
		}
		lx.i++
	}
	raw := string(lx.src[from:lx.i])
	lx.add(at, numberToken, raw, parseNumber(at, raw))
}

func (lx *lexer) isHex(from int) bool {
	return lx.src[from] == '0' && from+1 < len(lx.src) && strings.ContainsRune("xXoObB", lx.src[from+1])
}

func parseNumber(at place, raw string) any {
	if len(raw) > maxDigits && !strings.ContainsAny(raw, ".eExX") || len(raw) > 4*maxDigits {
		at.fail("a number of more than %d digits", maxDigits)
	}
	text := strings.ToLower(strings.ReplaceAll(raw, "_", ""))
	if isOldOctal(text) {
		at.failHint("write "+strings.TrimLeft(text, "0")+", or 0o… for octal", "a number with zeros in front: %s", raw)
	}
	wrong := strings.HasSuffix(raw, "_") || strings.Contains(raw, "__")
	if n, ok := new(big.Int).SetString(text, 0); ok && !wrong {
		if n.IsInt64() {
			return n.Int64()
		}
		return n
	}
	if f, err := strconv.ParseFloat(text, 64); (err == nil || math.IsInf(f, 0)) && !wrong && !strings.ContainsAny(text, "xpin") {
		return f
	}
	if strings.HasSuffix(text, "j") {
		at.fail("there are no complex numbers: %s", raw)
	}
	at.failHint("a name begins with a letter or _", "%s is no number", raw)
	return nil
}

// isOldOctal tells numbers such as 007. Zeros alone are zero.
func isOldOctal(text string) bool {
	return len(text) > 1 && text[0] == '0' && strings.Trim(text, "0123456789") == "" && strings.Trim(text, "0") != ""
}
