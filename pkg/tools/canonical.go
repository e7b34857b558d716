package tools

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/openenv-go/openenv-go/pkg/internal/strictjson"
)

// appendCanonical writes a value in the one form that equal values have: names sorted, no white space, and numbers spelled
// by their exact value, so that 5, 5.0 and 50e-1 are one and 2^53+1 is another than 2^53.
func appendCanonical(b []byte, v strictjson.Value) (_ []byte, err error) {
	switch v := v.(type) {
	case []any:
		b = append(b, '[')
		for i, item := range v {
			if i > 0 {
				b = append(b, ',')
			}
			if b, err = appendCanonical(b, item); err != nil {
				return b, err
			}
		}
		return append(b, ']'), nil
	case map[string]any:
		b = append(b, '{')
		for i, name := range slices.Sorted(maps.Keys(v)) {
			if i > 0 {
				b = append(b, ',')
			}
			if b, err = strictjson.AppendString(b, name); err != nil {
				return b, err
			}
			if b, err = appendCanonical(append(b, ':'), v[name]); err != nil {
				return b, err
			}
		}
		return append(b, '}'), nil
	case strictjson.Number:
		return append(b, canonicalNumber(string(v))...), nil
	}
	return strictjson.Append(b, v)
}

// maxPlainZeros is how many zeros a canonical integer ends in before it gets an exponent.
const maxPlainZeros = 20

// canonicalNumber spells a JSON number as digits without zeros at either end, and an exponent where that is not 0; an
// integer keeps a few zeros. It computes with the digits alone, so nothing is rounded.
func canonicalNumber(s string) string {
	digits, negative := strings.CutPrefix(s, "-")
	exponent := 0
	if i := strings.IndexAny(digits, "eE"); i >= 0 {
		var err error
		if exponent, err = strconv.Atoi(digits[i+1:]); err != nil {
			return s // no exponent of this size passes strictjson.Parse
		}
		digits = digits[:i]
	}
	whole, fraction, _ := strings.Cut(digits, ".")
	exponent -= len(fraction)
	digits = strings.TrimLeft(whole+fraction, "0")
	short := strings.TrimRight(digits, "0")
	if short == "" {
		return "0" // -0 too
	}
	exponent += len(digits) - len(short)
	out := short
	switch {
	case exponent > 0 && exponent <= maxPlainZeros:
		out += strings.Repeat("0", exponent)
	case exponent != 0:
		out += "e" + strconv.Itoa(exponent)
	}
	if negative {
		return "-" + out
	}
	return out
}
