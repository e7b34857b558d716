package strictjson

import (
	stdjson "encoding/json"
	"fmt"
	"slices"
	"strconv"
)

// A Value is a JSON value as schema validators take it: nil, bool, string, [Number], []any, map[string]any.
type Value = any

// Bounds of the numbers that [Parse] takes. Validators compute with them in full precision, so that a few bytes more of
// exponent would cost them any amount of time. All floats of 64 bits are well inside.
const (
	maxNumberLength = 1000
	maxExponent     = 400
)

// A NumberError is a number that is too long or too large to be looked at.
type NumberError struct {
	Loc    []any  // the path to it: member names and list indexes
	Number string // shortened
}

func (e *NumberError) Error() string {
	return fmt.Sprintf("the number %s is out of the range of a 64-bit float", e.Number)
}

// Parse reads checked JSON into a [Value]. plain reports whether every number in it is spelled so that decoding into Go
// types needs no care: integers without fraction or exponent, none that a float would round. The error is a
// *[NumberError], or a *[SyntaxError] where the input had not been checked.
func Parse(b []byte) (v Value, plain bool, err error) {
	p := parser{b: b, plain: true}
	p.space()
	if v, err = p.value(0); err != nil {
		return nil, false, err
	}
	if p.space(); p.i < len(b) {
		return nil, false, p.fault()
	}
	return v, p.plain, nil
}

// parser is a plain recursive descent. It trusts [Check] for the rules that are dear to check, and reports input that
// is not JSON at all without a word on what is wrong: it should not have come here.
type parser struct {
	b     []byte
	i     int
	plain bool
}

// maxParseDepth keeps input that nobody checked from exhausting the stack.
const maxParseDepth = 10_000

func (p *parser) fault() error {
	return &SyntaxError{Offset: int64(p.i), Msg: "invalid value"}
}

func (p *parser) space() {
	for p.i < len(p.b) {
		switch p.b[p.i] {
		case ' ', '\t', '\r', '\n':
			p.i++
		default:
			return
		}
	}
}

// take moves over c, if it is next, and the white space after it.
func (p *parser) take(c byte) bool {
	if p.i < len(p.b) && p.b[p.i] == c {
		p.i++
		p.space()
		return true
	}
	return false
}

func (p *parser) value(depth int) (Value, error) {
	if p.i == len(p.b) || depth > maxParseDepth {
		return nil, p.fault()
	}
	switch c := p.b[p.i]; c {
	case '"':
		return p.string()
	case '{':
		return p.object(depth)
	case '[':
		return p.array(depth)
	case 'n':
		return nil, p.word("null")
	case 't':
		return true, p.word("true")
	case 'f':
		return false, p.word("false")
	default:
		return p.number()
	}
}

func (p *parser) word(w string) error {
	if len(p.b)-p.i < len(w) || string(p.b[p.i:p.i+len(w)]) != w {
		return p.fault()
	}
	p.i += len(w)
	return nil
}

func (p *parser) number() (Value, error) {
	end := numberEnd(p.b, p.i)
	s := string(p.b[p.i:end])
	if !isNumber(s) {
		return nil, p.fault()
	}
	if _, exponent, ok := cutAny(s, "eE"); ok || len(s) > maxNumberLength {
		e, err := strconv.Atoi(exponent)
		if len(s) > maxNumberLength || err != nil || e > maxExponent || e < -maxExponent {
			return nil, &NumberError{Number: cut(s)}
		}
	}
	p.i = end
	p.plain = p.plain && plainNumber(s)
	return stdjson.Number(s), nil
}

func (p *parser) string() (string, error) {
	end := skipString(p.b, p.i)
	if end >= len(p.b) {
		return "", p.fault()
	}
	s, ok := String(p.b[p.i : end+1])
	if !ok {
		return "", p.fault()
	}
	p.i = end + 1
	return s, nil
}

func (p *parser) array(depth int) (Value, error) {
	p.take('[')
	list := []any{}
	if p.end(']') {
		return list, nil
	}
	for {
		v, err := p.value(depth + 1)
		if err != nil {
			return nil, within(err, len(list))
		}
		list = append(list, v)
		p.space()
		switch {
		case p.take(','):
		case p.end(']'):
			return list, nil
		default:
			return nil, p.fault()
		}
	}
}

func (p *parser) object(depth int) (Value, error) {
	p.take('{')
	obj := map[string]any{}
	if p.end('}') {
		return obj, nil
	}
	for {
		if p.i == len(p.b) || p.b[p.i] != '"' {
			return nil, p.fault()
		}
		name, err := p.string()
		if err != nil {
			return nil, err
		}
		p.space()
		if !p.take(':') {
			return nil, p.fault()
		}
		v, err := p.value(depth + 1)
		if err != nil {
			return nil, within(err, name)
		}
		n := len(obj)
		if obj[name] = v; len(obj) == n { // it is there already
			return nil, p.fault()
		}
		p.space()
		switch {
		case p.take(','):
		case p.end('}'):
			return obj, nil
		default:
			return nil, p.fault()
		}
	}
}

// end moves over the closing bracket c, if it is next.
func (p *parser) end(c byte) bool {
	if p.i < len(p.b) && p.b[p.i] == c {
		p.i++
		return true
	}
	return false
}

// within adds a step to the path of a number's error, from the inside out.
func within(err error, step any) error {
	if e, ok := err.(*NumberError); ok {
		e.Loc = slices.Insert(e.Loc, 0, step)
	}
	return err
}
