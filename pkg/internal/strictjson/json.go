package strictjson

import (
	"bytes"
	stdjson "encoding/json"
	"errors"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"
)

// options: encoding/json as authors know it, with exact names, no nil slices as null, and methods that are called
// whether or not a value can be addressed.
var options = json.JoinOptions(
	jsonv1.DefaultOptionsV1(),
	json.MatchCaseInsensitiveNames(false),
	json.FormatNilSliceAsNull(false),
	json.FormatNilMapAsNull(false),
	jsontext.AllowDuplicateNames(false),
	jsontext.AllowInvalidUTF8(false),
	jsonv1.ReportErrorsWithLegacySemantics(false),
	jsonv1.CallMethodsWithLegacySemantics(false),
	jsontext.EscapeForHTML(false),
	jsontext.EscapeForJS(false),
	json.Deterministic(true),
	json.WithMarshalers(json.MarshalToFunc(writeNumber)),
	json.WithUnmarshalers(own),
)

var lenient = json.JoinOptions(options, jsontext.AllowInvalidUTF8(true))

var own = json.JoinUnmarshalers(
	json.UnmarshalFromFunc(readNumber),
	json.UnmarshalFromFunc(readRaw[Raw]),
	json.UnmarshalFromFunc(readRaw[stdjson.RawMessage]),
)

// exact is options with numbers held to the rule of the package; integers takes integers in any spelling besides. They
// look at every value, so they are used only for input that has a number which is not plain.
var (
	exact    = json.JoinOptions(options, json.WithUnmarshalers(json.JoinUnmarshalers(own, exactNumbers(false))))
	integers = json.JoinOptions(options, json.WithUnmarshalers(json.JoinUnmarshalers(own, exactNumbers(true))))
)

// Number is encoding/json's, the type in which [Parse] gives numbers.
type Number = stdjson.Number

// Raw is JSON that has been checked or made by this package, to be written as it is.
type Raw = jsontext.Value

// Marshal encodes v. NaN and infinities, values that marshal to invalid JSON and strings that are not valid UTF-8 are
// errors.
func Marshal(v any) ([]byte, error) {
	if s, ok := v.(string); ok { // as many tools return
		if b, err := AppendString(make([]byte, 0, len(s)+len(s)/8+2), s); err == nil {
			return b, nil
		}
	}
	b, err := json.Marshal(v, options)
	return b, wrap(err, nil)
}

// MarshalFault is [Marshal] for what tells of a fault, whose words may be anybody's, such as a file's name: what is not valid
// UTF-8 in its strings is replaced by U+FFFD.
func MarshalFault(v any) ([]byte, error) {
	b, err := json.Marshal(v, lenient)
	return b, wrap(err, nil)
}

// Unmarshal decodes checked JSON into the pointer v. Members of v that the input does not name keep their values.
// Unknown members are ignored. The error is a *[ValueError], or a *[SyntaxError] where the input had not been checked.
func Unmarshal(b []byte, v any) error { return wrap(json.Unmarshal(b, v, numberOptions(b, exact)), b) }

// UnmarshalKnown is [Unmarshal], but an unknown member is an error.
func UnmarshalKnown(b []byte, v any) error {
	return wrap(json.Unmarshal(b, v, numberOptions(b, exact), json.RejectUnknownMembers(true)), b)
}

// UnmarshalPlain is [Unmarshal] for input whose numbers [Parse] has reported to be plain; it saves a look at them.
func UnmarshalPlain(b []byte, v any) error { return wrap(json.Unmarshal(b, v, options), b) }

// UnmarshalIntegers is [Unmarshal] for input in which integers may be spelled 5.0 or 1e3, as JSON Schema allows: they
// decode into Go's integer types too.
func UnmarshalIntegers(b []byte, v any) error {
	return wrap(json.Unmarshal(b, v, numberOptions(b, integers)), b)
}

func numberOptions(b []byte, careful json.Options) json.Options {
	if onlyPlainNumbers(b) {
		return options
	}
	return careful
}

// The library has a Number of its own and takes the standard library's for a string.
func writeNumber(enc *jsontext.Encoder, n stdjson.Number) error {
	if n == "" {
		n = "0" // as encoding/json writes it
	}
	if !isNumber(string(n)) {
		return errors.New("invalid number " + cut(string(n)))
	}
	kind, length := enc.StackIndex(enc.StackDepth())
	if name := kind == '{' && length%2 == 0; name || stringified(enc.Options()) {
		return enc.WriteToken(jsontext.String(string(n)))
	}
	return enc.WriteValue(jsontext.Value(n))
}

// readNumber keeps a number as it is spelled. Like encoding/json it takes a number in a string too.
func readNumber(dec *jsontext.Decoder, n *stdjson.Number) error {
	quoted := false
	switch dec.PeekKind() {
	case '0':
		if stringified(dec.Options()) {
			return errors.ErrUnsupported
		}
	case '"':
		quoted = true
	default:
		return errors.ErrUnsupported // null, or an error
	}
	raw, err := dec.ReadValue()
	if err != nil {
		return err
	}
	s := string(raw)
	if quoted {
		if s, _ = String(raw); !isNumber(s) {
			return errors.New("the string is not a number")
		}
	}
	*n = stdjson.Number(s)
	return nil
}

// readRaw gives each value memory of its own. The types' methods reuse what the variable held before, which may be in
// use elsewhere.
func readRaw[T ~[]byte](dec *jsontext.Decoder, v *T) error {
	raw, err := dec.ReadValue()
	if err != nil {
		return err
	}
	*v = T(slices.Clone(raw))
	return nil
}

// stringified reports whether a field's tag asks for its number in a string.
func stringified(o json.Options) bool {
	on, _ := json.GetOption(o, json.StringifyNumbers)
	return on
}

// String returns the string that a valid JSON value is, if it is one.
func String(raw []byte) (s string, ok bool) {
	last := len(raw) - 1
	if last <= 0 || raw[0] != '"' || raw[last] != '"' {
		return "", false
	}
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1:last]), true
	}
	b, err := jsontext.AppendUnquote(make([]byte, 0, last), raw) // which is as much as there can be
	return string(b), err == nil
}

// AppendString appends s as a JSON string. A string that is not valid UTF-8 is an error.
func AppendString(b []byte, s string) ([]byte, error) { return jsontext.AppendQuote(b, s) }

// An Appender writes itself as JSON, as this package would.
type Appender interface {
	AppendJSON(b []byte) ([]byte, error)
}

// Append appends v to b, as [Marshal] writes it, and a [Raw] as it is, white space too: it has been looked at before.
func Append(b []byte, v any) ([]byte, error) {
	switch v := v.(type) {
	case nil:
		return append(b, "null"...), nil
	case Raw:
		if v != nil {
			return append(b, v...), nil
		}
		return append(b, "null"...), nil
	case Appender:
		return v.AppendJSON(b)
	}
	raw, err := Marshal(v)
	return append(b, raw...), err
}
