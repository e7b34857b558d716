package strictjson

import (
	"bytes"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"
)

// options: encoding/json as authors know it, with exact names and no nil slices as null.
var options = json.JoinOptions(
	jsonv1.DefaultOptionsV1(),
	json.MatchCaseInsensitiveNames(false),
	json.FormatNilSliceAsNull(false),
	json.FormatNilMapAsNull(false),
	jsontext.AllowDuplicateNames(false),
	jsontext.AllowInvalidUTF8(false),
	jsonv1.ReportErrorsWithLegacySemantics(false),
	jsontext.EscapeForHTML(false),
	jsontext.EscapeForJS(false),
	json.Deterministic(true),
	json.WithMarshalers(json.MarshalToFunc(writeNumber)),
	json.WithUnmarshalers(json.UnmarshalFromFunc(readNumber)),
)

// exact is options with numbers in interface values held to the rule of the package: a float64 that would be another
// integer than the one in the input is an error.
var exact = json.JoinOptions(options, json.WithUnmarshalers(json.JoinUnmarshalers(
	json.UnmarshalFromFunc(readNumber), json.UnmarshalFromFunc(exactAny),
)))

// The library has a Number of its own and takes the standard library's for a string.
func writeNumber(enc *jsontext.Encoder, n stdjson.Number) error {
	if n == "" {
		n = "0" // as encoding/json writes it
	}
	return enc.WriteValue(jsontext.Value(n))
}

func readNumber(dec *jsontext.Decoder, n *stdjson.Number) error {
	if dec.PeekKind() != '0' {
		return errors.ErrUnsupported // a quoted number, or null: as for a string
	}
	raw, err := dec.ReadValue()
	*n = stdjson.Number(raw)
	return err
}

// Marshal encodes v. NaN and infinities, values that marshal to invalid JSON and strings that are not valid UTF-8 are
// errors.
func Marshal(v any) ([]byte, error) { return json.Marshal(v, options) }

// Unmarshal decodes checked JSON into the pointer v. Members of v that the input does not name keep their values.
// Unknown members are ignored. A [Raw] in v is overwritten in place, so it must not be shared.
func Unmarshal(b []byte, v any) error { return json.Unmarshal(b, v, exact) }

// UnmarshalKnown is [Unmarshal], but an unknown member is an error.
func UnmarshalKnown(b []byte, v any) error {
	return json.Unmarshal(b, v, exact, json.RejectUnknownMembers(true))
}

// UnmarshalPlain is [Unmarshal] for input whose numbers [Parse] has reported to be plain; it is faster.
func UnmarshalPlain(b []byte, v any) error { return json.Unmarshal(b, v, options) }

// UnmarshalIntegers is [Unmarshal] for input in which integers may be spelled 5.0 or 1e3, as JSON Schema allows: they
// decode into Go's integer types too.
func UnmarshalIntegers(b []byte, v any) error {
	err := json.Unmarshal(b, v, exact)
	if err == nil {
		return nil
	}
	if c, changed := canonical(b); changed {
		return json.Unmarshal(c, v, exact)
	}
	return err
}

func exactAny(dec *jsontext.Decoder, v *any) error {
	if dec.PeekKind() != '0' {
		return errors.ErrUnsupported
	}
	raw, err := dec.ReadValue()
	if err != nil {
		return err
	}
	s := string(raw)
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return fmt.Errorf("%s is out of the range of a 64-bit float", s)
	}
	if digits, ok := integer(s); ok && strconv.FormatFloat(f, 'f', -1, 64) != digits && !sameInteger(f, digits) {
		return fmt.Errorf("the integer %s does not fit a 64-bit float exactly; send it as a string", s)
	}
	*v = f
	return nil
}

// sameInteger: FormatFloat prints the shortest digits that denote f, so that a large power of two that f holds exactly
// may be spelled with other digits in the input.
func sameInteger(f float64, digits string) bool {
	if digits == "-0" {
		return f == 0
	}
	return strconv.FormatFloat(f, 'f', 0, 64) == digits
}

// canonical rewrites the integers of b that are spelled with a fraction or an exponent.
func canonical(b []byte) (out []byte, changed bool) {
	dec := jsontext.NewDecoder(bytes.NewBuffer(b))
	var buf bytes.Buffer
	enc := jsontext.NewEncoder(&buf)
	for {
		tok, err := dec.ReadToken()
		if err != nil {
			break // the end: b has been checked
		}
		if tok.Kind() == '0' {
			if digits, ok := integer(tok.String()); ok && digits != tok.String() {
				changed = true
				if enc.WriteValue(jsontext.Value(digits)) != nil {
					return b, false
				}
				continue
			}
		}
		if enc.WriteToken(tok) != nil {
			return b, false
		}
	}
	return buf.Bytes(), changed
}

// Number is encoding/json's, the type in which [Parse] gives numbers.
type Number = stdjson.Number

// Raw is JSON that has been checked or made by this package, to be written as it is.
type Raw = jsontext.Value

// String returns the string that a valid JSON value is, if it is one.
func String(raw []byte) (s string, ok bool) {
	if len(raw) == 0 || raw[0] != '"' {
		return "", false
	}
	b, err := jsontext.AppendUnquote(nil, raw)
	return string(b), err == nil
}
