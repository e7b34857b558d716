package strictjson

import (
	"bytes"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"math/big"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
)

// unmarshalExactly takes no number for plain.
func unmarshalExactly(b []byte, v any) error { return wrap(json.Unmarshal(b, v, integers), b) }

var seeds = []string{
	``, ` `, `null`, `true`, `-0`, `5.0`, `1e2`, `1E-3`, `9007199254740993`, `1e400`, `18446744073709551615`, `0e99`,
	`""`, `"a\u0061\ud83d\ude00"`, `"\ud800"`, "\"\xff\"", "\ufeff1", `[]`, `[[[]]]`, `[1,]`, `{}`, `{"a":1,"b":[{"a":2}]}`,
	`{"a":1,"\u0061":2}`, `{"a":{"b":"[[{{\"["}}`, `{} {}`, `[NaN]`, "[\"\u2028\",\"<>&\"]", `{"":{"":[null,false]}}`,
	`{"i":5.0,"u":1e1,"f":16777217,"g":1e39,"x":[9007199254740993],"n":"5","s":"7","p":-1,"t":"x","m":{"a":128}}`,
}

// FuzzCheck holds Check to what other implementations and a walk of its own say of the input, and Parse to what was
// checked.
func FuzzCheck(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		const limit = 20
		before := bytes.Clone(b)
		err := Check(b, limit)
		if !bytes.Equal(b, before) {
			t.Fatal("Check changed its input")
		}
		parsed, plain, parseErr := Parse(b) // unchecked input may come to anything but a panic
		members := membersOf(b)
		if err != nil {
			var se *SyntaxError
			if !errors.As(err, &se) || se.Offset < 0 || se.Offset > int64(len(b)) || !utf8.ValidString(se.Msg) {
				t.Fatalf("error %#v", err)
			}
			if stdjson.Valid(b) && utf8.Valid(b) && !bytes.Contains(b, []byte(`\u`)) && walk(b, limit) == nil {
				t.Fatalf("refused: %v", err)
			}
			return
		}
		if !stdjson.Valid(b) {
			t.Fatal("accepted what encoding/json refuses")
		}
		if !utf8.Valid(b) {
			t.Fatal("accepted invalid UTF-8")
		}
		if err := walk(b, limit); err != nil {
			t.Fatalf("accepted: %v", err)
		}
		var tooLong *NumberError
		if errors.As(parseErr, &tooLong) {
			return
		}
		if parseErr != nil {
			t.Fatalf("Parse: %v", parseErr)
		}
		if plain != onlyPlainNumbers(b) {
			t.Fatalf("Parse calls the numbers plain: %v", plain)
		}
		dec := stdjson.NewDecoder(bytes.NewReader(b))
		dec.UseNumber()
		var want any
		if err := dec.Decode(&want); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, parsed); diff != "" {
			t.Fatalf("Parse (-encoding/json +got):\n%s", diff)
		}
		obj, isObject := parsed.(map[string]any)
		if isObject != (members != nil) || len(obj) != len(members) {
			t.Fatalf("MembersOf finds %d members, of %d", len(members), len(obj))
		}
		for name, raw := range members {
			if v, _, err := Parse(raw); err != nil || !cmp.Equal(v, obj[name]) {
				t.Fatalf("MembersOf gives %q: %s", name, raw)
			}
		}
		again, err := Marshal(parsed)
		if err != nil {
			t.Fatalf("Marshal: %v", err)
		}
		if err := Check(again, limit); err != nil {
			t.Fatalf("Marshal wrote %s: %v", again, err)
		}
		if v, _, err := Parse(again); err != nil || !cmp.Equal(v, parsed) {
			t.Fatalf("%s came back as %v, %v", again, v, err)
		}
	})
}

// membersOf gathers the members of an object, or returns nil for anything else.
func membersOf(b []byte) map[string]Raw {
	m, ok := MembersOf(b)
	if !ok {
		return nil
	}
	all := map[string]Raw{}
	for {
		name, value, ok := m.Next()
		if !ok {
			return all
		}
		all[string(name)] = value
	}
}

// walk reports duplicate names and excess depth, with encoding/json's tokens.
func walk(b []byte, limit int) error {
	dec := stdjson.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	type level struct {
		names map[string]bool // nil in a list
		value bool            // in an object: a value is due
	}
	var stack []level
	for {
		tok, err := dec.Token()
		if err != nil {
			return nil // the end
		}
		top := len(stack) - 1
		if d, ok := tok.(stdjson.Delim); ok && (d == '}' || d == ']') {
			stack = stack[:top]
			continue
		}
		if top >= 0 && stack[top].names != nil {
			if !stack[top].value {
				name := tok.(string)
				if stack[top].names[name] {
					return fmt.Errorf("duplicate %q", name)
				}
				stack[top].names[name], stack[top].value = true, true
				continue
			}
			stack[top].value = false
		}
		if d, ok := tok.(stdjson.Delim); ok {
			l := level{}
			if d == '{' {
				l.names = map[string]bool{}
			}
			if stack = append(stack, l); len(stack) > limit {
				return errors.New("too deep")
			}
		}
	}
}

// FuzzUnmarshalIntegers holds single numbers to arithmetic in full precision, and everything else to not panicking.
func FuzzUnmarshalIntegers(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		type fields struct {
			I int              `json:"i"`
			U uint16           `json:"u"`
			F float32          `json:"f"`
			G float64          `json:"g"`
			X any              `json:"x"`
			N Number           `json:"n"`
			S int64            `json:"s,string"`
			P *int8            `json:"p"`
			M map[string]uint8 `json:"m"`
			R Raw              `json:"r"`
		}
		before := bytes.Clone(b)
		var v fields
		_ = UnmarshalIntegers(b, &v)
		_ = UnmarshalKnown(b, &v)
		if Check(b, DefaultMaxDepth) != nil || !isNumber(string(b)) || len(b) > 60 {
			return
		}
		exact, ok := rational(string(b))
		if !ok {
			return
		}
		for _, target := range []any{
			new(int), new(int8), new(int16), new(int32), new(int64), new(uint), new(uint8), new(uint32), new(uint64),
			new(float32), new(float64), new(any), new(Number), new(Raw), new(level), new(score),
		} {
			err := UnmarshalIntegers(b, target)
			if problem := judge(string(b), exact, reflect.ValueOf(target).Elem(), err); problem != "" {
				t.Errorf("%s into %T: %s (%v)", b, target, problem, err)
			}
		}
		if !bytes.Equal(b, before) {
			t.Error("the input was changed")
		}
	})
}

// rational is the value of a JSON number whose exponent is small enough to compute with.
func rational(s string) (*big.Rat, bool) {
	if _, e, ok := cutAny(s, "eE"); ok {
		if n, err := strconv.Atoi(e); err != nil || n > 60 || n < -60 {
			return nil, false
		}
	}
	return new(big.Rat).SetString(s)
}

// judge says what is wrong with v, decoded from s with err, or nothing.
func judge(s string, exact *big.Rat, v reflect.Value, err error) string {
	if v.Kind() == reflect.Interface && err == nil {
		v = v.Elem()
	}
	switch {
	case v.Kind() == reflect.Slice:
		if err != nil || string(v.Bytes()) != s {
			return "not kept"
		}
	case v.Kind() == reflect.String:
		if err != nil || v.String() != s {
			return "not kept"
		}
	case v.CanInt():
		fits := exact.IsInt() && exact.Num().IsInt64() && !v.OverflowInt(exact.Num().Int64())
		if fits != (err == nil) {
			return fmt.Sprintf("fits: %v", fits)
		}
		if fits && v.Int() != exact.Num().Int64() {
			return "another integer"
		}
	case v.CanUint():
		fits := exact.IsInt() && exact.Num().IsUint64() && !v.OverflowUint(exact.Num().Uint64())
		if fits != (err == nil) {
			return fmt.Sprintf("fits: %v", fits)
		}
		if fits && v.Uint() != exact.Num().Uint64() {
			return "another integer"
		}
	case err == nil: // a float
		digits := exact.FloatString(0)
		same := new(big.Rat).SetFloat64(v.Float()).Cmp(exact) == 0
		printed := strconv.FormatFloat(v.Float(), 'f', -1, v.Type().Bits()) == digits
		if exact.IsInt() && !same && !printed && len(strings.TrimPrefix(digits, "-")) <= maxExpanded {
			return "rounded to another integer"
		}
	default: // refused for a float or an interface
		bits := 64
		if v.CanFloat() {
			bits = v.Type().Bits()
		}
		f, parseErr := strconv.ParseFloat(s, bits)
		if parseErr == nil && !exact.IsInt() {
			return "a fraction refused"
		}
		if parseErr == nil && new(big.Rat).SetFloat64(f).Cmp(exact) == 0 {
			return "an exact float refused"
		}
	}
	return ""
}
