package strictjson

import (
	"bytes"
	"encoding"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// exactNumbers decodes JSON numbers into Go's floats, and into interfaces as float64, and refuses those that would
// become another integer. With spelled set it also decodes integers spelled with a fraction or an exponent into Go's
// integer types.
//
// It is a function of any type since Go has no other way to catch named number types. Types with methods of their own
// are left alone.
func exactNumbers(spelled bool) *json.Unmarshalers {
	return json.UnmarshalFromFunc(func(dec *jsontext.Decoder, p any) error {
		if dec.PeekKind() != '0' {
			return errors.ErrUnsupported
		}
		switch p.(type) {
		case stdjson.Unmarshaler, json.UnmarshalerFrom, encoding.TextUnmarshaler:
			return errors.ErrUnsupported
		}
		v := reflect.ValueOf(p).Elem()
		switch {
		case stringified(dec.Options()):
			return errors.ErrUnsupported
		case v.Kind() == reflect.Interface:
			if v.NumMethod() > 0 || v.Elem().Kind() == reflect.Pointer {
				return errors.ErrUnsupported // an error, or a pointer to decode into
			}
		case v.CanFloat():
		case spelled && (v.CanInt() || v.CanUint()):
		default:
			return errors.ErrUnsupported
		}
		raw, err := dec.ReadValue()
		if err != nil {
			return err
		}
		if err := setNumber(v, string(raw)); err != nil {
			return &json.SemanticError{JSONKind: '0', GoType: v.Type(), Err: err} // the caller fills in where
		}
		return nil
	})
}

func setNumber(v reflect.Value, s string) error {
	digits, isInteger := integer(s)
	switch {
	case v.Kind() == reflect.Interface:
		f, err := exactFloat(s, digits, isInteger, 64)
		if err == nil {
			v.Set(reflect.ValueOf(f))
		}
		return err
	case v.CanFloat():
		f, err := exactFloat(s, digits, isInteger, v.Type().Bits())
		if err == nil {
			v.SetFloat(f)
		}
		return err
	case !isInteger && IsInteger(Number(s)): // too long to be spelled
		return fmt.Errorf("%s is out of the range of %s", cut(s), v.Type())
	case !isInteger:
		return fmt.Errorf("%s is not an integer that %s can hold", cut(s), v.Type())
	case v.CanInt():
		n, err := strconv.ParseInt(digits, 10, v.Type().Bits())
		if err != nil {
			return fmt.Errorf("%s is out of the range of %s", cut(s), v.Type())
		}
		v.SetInt(n)
	default:
		n, err := strconv.ParseUint(digits, 10, v.Type().Bits())
		if err != nil {
			return fmt.Errorf("%s is out of the range of %s", cut(s), v.Type())
		}
		v.SetUint(n)
	}
	return nil
}

func exactFloat(s, digits string, isInteger bool, bits int) (float64, error) {
	f, err := strconv.ParseFloat(s, bits)
	if err != nil {
		return 0, fmt.Errorf("%s is out of the range of a %d-bit float", cut(s), bits)
	}
	if isInteger && !sameInteger(f, digits, bits) {
		return 0, fmt.Errorf("%s cannot be held exactly by a %d-bit float", cut(s), bits)
	}
	return f, nil
}

// sameInteger reports whether f is what digits say, or the float that is usually printed so: 1e23 has no exact float,
// but no other float is written 1e23.
func sameInteger(f float64, digits string, bits int) bool {
	if digits == "0" {
		return f == 0 // -0.0 too
	}
	return strconv.FormatFloat(f, 'f', -1, bits) == digits || strconv.FormatFloat(f, 'f', 0, 64) == digits
}

// maxExpanded is how many digits an exponent is expanded to: as many as the largest integer of 64 bits has. It keeps
// 1e999999999 from becoming a string of that length.
const maxExpanded = 20

// integer returns the integer that a JSON number denotes, spelled in digits only, and whether it denotes one. Integers
// that only an exponent makes longer than [maxExpanded] are reported as none: they are beyond Go's integers, and no more
// exact than any float.
func integer(s string) (digits string, ok bool) {
	if !strings.ContainsAny(s, ".eE") {
		if s == "-0" {
			return "0", true
		}
		return s, true
	}
	digits, point := decimal(s)
	switch {
	case digits == "":
		return "0", true
	case point < len(digits) || point > max(len(s), maxExpanded):
		return s, false
	}
	digits += strings.Repeat("0", point-len(digits))
	if s[0] == '-' {
		digits = "-" + digits
	}
	return digits, true
}

// IsInteger reports whether a number is an integer by JSON Schema's rules, however it is spelled.
func IsInteger(n Number) bool {
	digits, point := decimal(string(n))
	return digits == "" || point >= len(digits)
}

// decimal takes a number apart: 0.digits times ten to the power of point, without zeros at either end of digits. Zero
// has no digits.
func decimal(s string) (digits string, point int) {
	mantissa, exponent, _ := cutAny(strings.TrimPrefix(s, "-"), "eE")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits = strings.TrimLeft(whole+fraction, "0")
	point = len(digits) - len(fraction)
	digits = strings.TrimRight(digits, "0")
	e, _ := strconv.Atoi(exponent) // the nearest int, where it is beyond the range
	return digits, point + min(max(e, -math.MaxInt/2), math.MaxInt/2)
}

func cutAny(s, chars string) (before, after string, found bool) {
	if i := strings.IndexAny(s, chars); i >= 0 {
		return s[:i], s[i+1:], true
	}
	return s, "", false
}

// plainNumber reports whether decoding a number into any of Go's types needs no care: an integer in digits that no
// float type rounds (below 2^24, whatever the digits), or a fraction that is not an integer in disguise like 5.0.
func plainNumber[T ~string | ~[]byte](s T) bool {
	point := -1
	for i := range len(s) {
		switch s[i] {
		case 'e', 'E':
			return false
		case '.':
			point = i
		}
	}
	if point < 0 {
		return len(s) <= 7 && !(len(s) == 2 && s[0] == '-' && s[1] == '0')
	}
	for i := point + 1; i < len(s); i++ {
		if s[i] != '0' {
			return true
		}
	}
	return false
}

// onlyPlainNumbers looks at the numbers of checked JSON. On anything else its answer is of no use, but it comes.
func onlyPlainNumbers(b []byte) bool {
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case c == '"':
			i = skipString(b, i)
		case c == '-' || '0' <= c && c <= '9':
			end := numberEnd(b, i)
			if !plainNumber(b[i:end]) {
				return false
			}
			i = end - 1
		}
	}
	return true
}

// skipString returns where the string that begins at b[i] ends: the index of its closing quote, or len(b).
func skipString(b []byte, i int) int {
	for begin := i + 1; ; {
		i++
		n := bytes.IndexByte(b[i:], '"')
		if n < 0 {
			return len(b)
		}
		i += n
		escapes := 0 // right before the quote
		for j := i - 1; j >= begin && b[j] == '\\'; j-- {
			escapes++
		}
		if escapes%2 == 0 {
			return i
		}
	}
}

// numberEnd returns the index after the number that begins at b[i].
func numberEnd(b []byte, i int) int {
	for ; i < len(b); i++ {
		switch c := b[i]; {
		case '0' <= c && c <= '9', c == '.', c == 'e', c == 'E', c == '+', c == '-':
		default:
			return i
		}
	}
	return i
}

// isNumber reports whether s is a JSON number and nothing else.
func isNumber(s string) bool {
	s = strings.TrimPrefix(s, "-")
	rest := strings.TrimLeft(s, "0123456789")
	whole := s[:len(s)-len(rest)]
	if whole == "" || whole[0] == '0' && len(whole) > 1 {
		return false
	}
	if strings.HasPrefix(rest, ".") {
		fraction := rest[1:]
		if rest = strings.TrimLeft(fraction, "0123456789"); len(rest) == len(fraction) {
			return false
		}
	}
	if rest == "" {
		return true
	}
	if rest[0] != 'e' && rest[0] != 'E' {
		return false
	}
	exponent := rest[1:]
	if exponent != "" && (exponent[0] == '+' || exponent[0] == '-') {
		exponent = exponent[1:]
	}
	return exponent != "" && strings.TrimLeft(exponent, "0123456789") == ""
}

// cut shortens a number for a message.
func cut(s string) string {
	if len(s) > 40 {
		return s[:40] + "…"
	}
	return s
}
