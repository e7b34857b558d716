package strictjson

import (
	"bytes"
	stdjson "encoding/json"
	"math"
	"math/big"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// A Value is a JSON value as schema validators take it: nil, bool, string, [stdjson.Number], []any, map[string]any.
type Value = any

// Parse reads checked JSON into a [Value]. plain reports whether every number in it is spelled so that decoding into
// the usual Go types needs no care: integers without fraction or exponent, none that a float64 would round.
func Parse(b []byte) (v Value, plain bool, err error) {
	p := parser{dec: jsontext.NewDecoder(bytes.NewBuffer(b)), plain: true}
	v, err = p.value()
	return v, p.plain, err
}

type parser struct {
	dec   *jsontext.Decoder
	plain bool
}

func (p *parser) value() (Value, error) {
	tok, err := p.dec.ReadToken()
	if err != nil {
		return nil, err
	}
	switch tok.Kind() {
	case 'n':
		return nil, nil
	case 't', 'f':
		return tok.Bool(), nil
	case '"':
		return tok.String(), nil
	case '0':
		n := stdjson.Number(tok.String())
		p.plain = p.plain && plainNumber(string(n))
		return n, nil
	case '[':
		list := []any{}
		for p.dec.PeekKind() != ']' {
			v, err := p.value()
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err := p.dec.ReadToken()
		return list, err
	default: // '{', since the decoder has checked the grammar
		obj := map[string]any{}
		for p.dec.PeekKind() != '}' {
			name, err := p.dec.ReadToken()
			if err != nil {
				return nil, err
			}
			key := name.String()
			if obj[key], err = p.value(); err != nil {
				return nil, err
			}
		}
		_, err := p.dec.ReadToken()
		return obj, err
	}
}

// plainNumber: a fraction without exponent is left to the decoder, unless it is an integer in disguise (5.0).
func plainNumber(s string) bool {
	if strings.ContainsAny(s, "eE") {
		return false
	}
	if _, frac, ok := strings.Cut(s, "."); ok {
		return strings.Trim(frac, "0") != ""
	}
	return len(s) <= 15 // below 2^53 whatever the digits
}

// integer returns the integer that a JSON number denotes, spelled in digits only, and whether it denotes one.
// Exponents beyond those of a float64 are not expanded.
func integer(s string) (string, bool) {
	if !strings.ContainsAny(s, ".eE") {
		return s, true
	}
	f, err := stdjson.Number(s).Float64()
	if err != nil || math.Abs(f) > math.MaxUint64 || f != math.Trunc(f) {
		return s, false
	}
	r, ok := new(big.Rat).SetString(s)
	if !ok || !r.IsInt() {
		return s, false
	}
	return r.Num().String(), true
}
