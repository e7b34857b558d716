package strictjson

import (
	stdjson "encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// refused stands for an error in the tables below.
const refused = "refused"

// numberTargets are the Go types a JSON number may be decoded into, by name.
var numberTargets = map[string]reflect.Type{
	"int":       reflect.TypeFor[int](),
	"int8":      reflect.TypeFor[int8](),
	"int64":     reflect.TypeFor[int64](),
	"uint":      reflect.TypeFor[uint](),
	"uint64":    reflect.TypeFor[uint64](),
	"float32":   reflect.TypeFor[float32](),
	"float64":   reflect.TypeFor[float64](),
	"any":       reflect.TypeFor[any](),
	"list":      reflect.TypeFor[[]any](),
	"map":       reflect.TypeFor[map[string]any](),
	"named":     reflect.TypeFor[score](),
	"named int": reflect.TypeFor[level](),
	"duration":  reflect.TypeFor[time.Duration](),
	"Number":    reflect.TypeFor[Number](),
	"Raw":       reflect.TypeFor[Raw](),
	"Message":   reflect.TypeFor[stdjson.RawMessage](),
	"pointer":   reflect.TypeFor[*int64](),
	"interface": reflect.TypeFor[empty](),
	"string":    reflect.TypeFor[string](),
}

type (
	score float32
	level int8
	empty interface{}
)

// decodeAs decodes text into a new value of the named type and gives it as it would be encoded.
func decodeAs(t *testing.T, unmarshal func([]byte, any) error, typ, text string) string {
	t.Helper()
	v := reflect.New(numberTargets[typ])
	if err := unmarshal([]byte(text), v.Interface()); err != nil {
		return refused
	}
	b, err := Marshal(v.Interface())
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestUnmarshalNumbers(t *testing.T) {
	const both = ""
	for _, test := range []struct {
		typ, text string
		want      string
		integers  string // what UnmarshalIntegers gives, where it differs
	}{
		{"int", `5`, `5`, both},
		{"int", `-0`, `0`, both},
		{"int", `5.0`, refused, `5`},
		{"int", `1e2`, refused, `100`},
		{"int", `1E+2`, refused, `100`},
		{"int", `120e-1`, refused, `12`},
		{"int", `-5.00`, refused, `-5`},
		{"int", `0e999999999`, refused, `0`},
		{"int", `-0.0`, refused, `0`},
		{"int", `5.5`, refused, both},
		{"int", `1e-1`, refused, both},
		{"int", `1e-999999999`, refused, both},
		{"int", `1e999999999`, refused, both},
		{"int", `1.0000000000000000000000000000001`, refused, both}, // a float64 would say 1
		{"int", `9007199254740993`, `9007199254740993`, both},
		{"int", `9007199254740993.0`, refused, `9007199254740993`},
		{"int", `0.9007199254740993e16`, refused, `9007199254740993`},
		{"int", `null`, `0`, both}, // as encoding/json: no change
		{"int", `"5"`, refused, both},
		{"int", `true`, refused, both},

		{"int8", `127`, `127`, both},
		{"int8", `128`, refused, both},
		{"int8", `-128`, `-128`, both},
		{"int8", `-1.28e2`, refused, `-128`},
		{"int8", `1.28e2`, refused, both},
		{"named int", `1e2`, refused, `100`},
		{"duration", `1e9`, refused, `1000000000`},
		{"int64", `9223372036854775807`, `9223372036854775807`, both},
		{"int64", `9223372036854775808`, refused, both},
		{"int64", `-9223372036854775808`, `-9223372036854775808`, both},
		{"int64", `9223372036854775807e0`, refused, `9223372036854775807`},
		{"int64", `922337203685477580.7e1`, refused, `9223372036854775807`},
		{"int64", `9.3e18`, refused, both},
		{"pointer", `9007199254740993`, `9007199254740993`, both},
		{"pointer", `1e1`, refused, `10`},
		{"pointer", `null`, `null`, both},
		{"uint", `-0`, refused, `0`}, // encoding/json refuses it too; for JSON Schema it is 0
		{"uint", `-1`, refused, both},
		{"uint64", `18446744073709551615`, `18446744073709551615`, both},
		{"uint64", `18446744073709551616`, refused, both},
		{"uint64", `1.8446744073709551615e19`, refused, `18446744073709551615`},
		{"uint64", `1e20`, refused, both},

		{"float64", `9007199254740992`, `9007199254740992`, both},
		{"float64", `9007199254740993`, refused, both},
		{"float64", `9007199254740993.0`, refused, both},
		{"float64", `9007199254740993e0`, refused, both},
		{"float64", `-9007199254740993`, refused, both},
		{"float64", `9007199254740994`, `9007199254740994`, both},
		{"float64", `18014398509481984`, `18014398509481984`, both},           // 2^54
		{"float64", `1180591620717411303424`, `1.1805916207174113e+21`, both}, // 2^70
		{"float64", `1180591620717411303425`, refused, both},
		{"float64", `100000000000000000000000`, `1e+23`, both}, // no float is 10^23, but only one is written so
		{"float64", `1e23`, `1e+23`, both},
		{"float64", `1e308`, `1e+308`, both},
		{"float64", `1e400`, refused, both},
		{"float64", `-1e400`, refused, both},
		{"float64", `1e999999999999999999999`, refused, both},
		{"float64", `1e-400`, `0`, both},
		{"float64", `0.1`, `0.1`, both},
		{"float64", `0.1000000000000000055511151231257827`, `0.1`, both},
		{"float64", `-0`, `-0`, both},
		{"float64", `-0.0`, `-0`, both},
		{"float32", `16777216`, `16777216`, both},
		{"float32", `16777217`, refused, both},
		{"float32", `1e10`, `10000000000`, both},
		{"float32", `1e39`, refused, both},
		{"float32", `3.4e38`, `3.4e+38`, both},
		{"float32", `0.1`, `0.1`, both},
		{"named", `16777217`, refused, both},
		{"named", `1.5`, `1.5`, both},

		{"any", `5`, `5`, both},
		{"any", `9007199254740993`, refused, both},
		{"any", `123456789012345`, `123456789012345`, both},
		{"any", `1e400`, refused, both},
		{"any", `-0`, `-0`, both},
		{"any", `-0.0`, `-0`, both},
		{"any", `-0e5`, `-0`, both},
		{"any", `[{"a":[9007199254740993]}]`, refused, both},
		{"interface", `9007199254740993`, refused, both},
		{"interface", `9007199254740992`, `9007199254740992`, both},
		{"list", `[1,9007199254740993]`, refused, both},
		{"map", `{"a":9007199254740993}`, refused, both},
		{"map", `{"a":"9007199254740993"}`, `{"a":"9007199254740993"}`, both},

		{"Number", `9007199254740993`, `9007199254740993`, both},
		{"Number", `1e400`, `1e400`, both},
		{"Number", `1.50`, `1.50`, both},
		{"Number", `"5"`, `5`, both}, // as encoding/json
		{"Number", `"five"`, refused, both},
		{"Number", `""`, refused, both},
		{"Number", `" 5"`, refused, both},
		{"Number", `"[5]"`, refused, both},
		{"Number", `true`, refused, both},
		{"Raw", `1.50e+2`, `1.50e+2`, both},
		{"Raw", `[9007199254740993,5.0]`, `[9007199254740993,5.0]`, both},
		{"Message", `[9007199254740993,5.0]`, `[9007199254740993,5.0]`, both},
		{"Message", `null`, `null`, both},
		{"string", `5.0`, refused, both},
	} {
		t.Run(test.typ+" "+test.text, func(t *testing.T) {
			if got := decodeAs(t, Unmarshal, test.typ, test.text); got != test.want {
				t.Errorf("Unmarshal gives %s, want %s", got, test.want)
			}
			if got := decodeAs(t, UnmarshalKnown, test.typ, test.text); got != test.want {
				t.Errorf("UnmarshalKnown gives %s, want %s", got, test.want)
			}
			want := test.want
			if test.integers != both {
				want = test.integers
			}
			if got := decodeAs(t, UnmarshalIntegers, test.typ, test.text); got != want {
				t.Errorf("UnmarshalIntegers gives %s, want %s", got, want)
			}
		})
	}
}

// Numbers that the types beside them keep as they are spelled do not change when an integer is respelled.
func TestUnmarshalIntegersKeepsSpelling(t *testing.T) {
	var got struct {
		N int
		R Raw
		M stdjson.RawMessage
		J Number
	}
	if err := UnmarshalIntegers([]byte(`{"N":5.0,"R":[5.0],"M":{"a":1e2},"J":1e2}`), &got); err != nil {
		t.Fatal(err)
	}
	if got.N != 5 || string(got.R) != `[5.0]` || string(got.M) != `{"a":1e2}` || got.J != "1e2" {
		t.Errorf("got %d %s %s %s", got.N, got.R, got.M, got.J)
	}
}

// Types with methods of their own, and fields whose tag asks for strings, see numbers as they were sent.
func TestUnmarshalNumbersLeavesOthersAlone(t *testing.T) {
	var got struct {
		Own    ownNumber
		Text   ownText
		Quoted int     `json:",string"`
		Number Number  `json:",string"`
		Float  float64 `json:",string"`
	}
	if err := UnmarshalIntegers([]byte(`{"Own":1e2,"Text":"1e2","Quoted":"7","Number":"1e2","Float":"2.5"}`), &got); err != nil {
		t.Fatal(err)
	}
	if got.Own != "1e2" || got.Text != "1e2" || got.Quoted != 7 || got.Number != "1e2" || got.Float != 2.5 {
		t.Errorf("got %+v", got)
	}
	for _, text := range []string{`{"Text":1e2}`, `{"Quoted":1e0}`, `{"Quoted":7}`, `{"Number":1e2}`, `{"Float":25e-1}`, `{"Quoted":"1e0"}`} {
		if UnmarshalIntegers([]byte(text), &got) == nil {
			t.Errorf("%s: no error", text)
		}
	}
	var pointee int8
	var v any = &pointee // as encoding/json: decoded into what the interface points to
	if err := UnmarshalIntegers([]byte(`1e1`), &v); err != nil || pointee != 10 {
		t.Errorf("through an interface: %v, %v", pointee, err)
	}
}

type ownNumber string

func (n *ownNumber) UnmarshalJSON(b []byte) error { *n = ownNumber(b); return nil }

type ownText string

func (n *ownText) UnmarshalText(b []byte) error { *n = ownText(b); return nil }

func TestUnmarshalNumberErrors(t *testing.T) {
	type in struct {
		A struct {
			B []int8 `json:"b"`
		} `json:"a"`
		F float64 `json:"f"`
		X any     `json:"x"`
	}
	long := strings.Repeat("7", 5000)
	for _, test := range []struct{ text, want string }{
		{`{"a":{"b":[1,3e2]}}`, `a.b.1: 3e2 is out of the range of int8`},
		{`{"a":{"b":[1.0,1.5e0]}}`, `a.b.1: 1.5e0 is not an integer that int8 can hold`},
		{`{"f":9007199254740993}`, `f: 9007199254740993 cannot be held exactly by a 64-bit float`},
		{`{"x":1e400}`, `x: 1e400 is out of the range of a 64-bit float`},
		{`{"f":` + long + `}`, `f: ` + long[:40] + `… is out of the range of a 64-bit float`},
	} {
		err := UnmarshalIntegers([]byte(test.text), new(in))
		if err == nil || err.Error() != test.want {
			t.Errorf("%.80s:\n got %v\nwant %s", test.text, err, test.want)
		}
	}
}

func TestInteger(t *testing.T) {
	for s, want := range map[string]string{
		"0": "0", "-0": "0", "7": "7", "-7": "-7", "0.0": "0", "-0.00": "0", "0e5": "0", "0e-5": "0",
		"5.0": "5", "5.00e0": "5", "50e-1": "5", "0.5e1": "5", "0.05e2": "5", "-0.05e2": "-5", "500.0e-2": "5",
		"1e3": "1000", "1.5e3": "1500", "12.30e2": "1230", "1e19": "10000000000000000000",
		strings.Repeat("9", 50) + ".0": strings.Repeat("9", 50),
		"1e0000000000000000001":        "10",

		"0.5": refused, "5e-1": refused, "1.05e1": refused, "1e-400": refused, "1e21": refused, "0.1e-1": refused,
		"1e99999999999999999999": refused, "1e-99999999999999999999": refused, "0e99999999999999999999": "0",
	} {
		got, ok := integer(s)
		if !ok {
			got = refused
		}
		if got != want {
			t.Errorf("integer(%s) = %s, want %s", s, got, want)
		}
		if ok && !IsInteger(Number(s)) {
			t.Errorf("IsInteger(%s) = false", s)
		}
	}
	for s, want := range map[string]bool{
		"7": true, "5.0": true, "1e400": true, "1e99999999999999999999": true, "0e-99999999999999999999": true, "0.0": true,
		"5.5": false, "1e-1": false, "1e-99999999999999999999": false, "1.5e0": false, "10.01e1": false,
	} {
		if got := IsInteger(Number(s)); got != want {
			t.Errorf("IsInteger(%s) = %v", s, got)
		}
	}
}

func TestIsNumber(t *testing.T) {
	for _, s := range []string{"0", "-0", "10", "1.0", "1.05", "-1.5e10", "1E5", "1e+5", "1e-05", "0e0"} {
		if !isNumber(s) {
			t.Errorf("isNumber(%q) = false", s)
		}
	}
	for _, s := range []string{"", "-", "+1", "01", "-01", "1.", ".5", "1e", "1e+", "1.e5", "1 ", " 1", "1.5.5", "1e5.0", "NaN", "Infinity", "0x1", "1_0", "٣", "[1]", "--1", "1-1"} {
		if isNumber(s) {
			t.Errorf("isNumber(%q) = true", s)
		}
	}
}

// What is called plain must decode without care into any type: each such number, alone, gives the same with the slow
// decoder.
func TestPlainNumbers(t *testing.T) {
	for s, want := range map[string]bool{
		"0": true, "-1": true, "9999999": true, "-999999": true, "0.5": true, "3.14": true, "1.05": true, "5.10": true,
		"10000000": false, "16777217": false, "-0": false, "5.0": false, "5.000": false, "-0.0": false, "1e2": false, "1.5E3": false,
	} {
		if got := plainNumber(s); got != want {
			t.Errorf("plainNumber(%s) = %v, want %v", s, got, want)
		}
		text := []byte(`{"a":["5.0",` + s + `,"\"1e5"]}`)
		if got := onlyPlainNumbers(text); got != want {
			t.Errorf("onlyPlainNumbers(%s) = %v, want %v", text, got, want)
		}
		if _, got, err := Parse(text); got != want || err != nil {
			t.Errorf("Parse(%s): plain = %v, %v, want %v", text, got, err, want)
		}
		if want {
			for typ := range numberTargets {
				if plain, careful := decodeAs(t, UnmarshalPlain, typ, s), decodeAs(t, unmarshalExactly, typ, s); plain != careful {
					t.Errorf("%s into %s: %s when taken for plain, else %s", s, typ, plain, careful)
				}
			}
		}
	}
}

func TestMarshalNumbers(t *testing.T) {
	for _, test := range []struct {
		v    any
		want string
	}{
		{math.NaN(), refused}, {math.Inf(1), refused}, {float32(math.Inf(-1)), refused},
		{[]any{map[string]any{"a": math.NaN()}}, refused},
		{uint64(math.MaxUint64), `18446744073709551615`}, {int64(math.MinInt64), `-9223372036854775808`},
		{1e21, `1e+21`}, {1e20, `100000000000000000000`}, {float32(0.1), `0.1`}, {math.Copysign(0, -1), `-0`},
		{Number("1.50"), `1.50`}, {Number(""), `0`}, {Number("five"), refused}, {Number("[1]"), refused}, {Number(" 5"), refused},
		{[]any{Number("1e400")}, `[1e400]`}, {map[string]any{"a": Number("5.0")}, `{"a":5.0}`},
		{map[Number]int{"5": 1}, `{"5":1}`},
		{struct {
			N Number `json:",string"`
			I int64  `json:",string"`
		}{"5", 6}, `{"N":"5","I":"6"}`},
		{time.Second, `1000000000`},
	} {
		got := refused
		if b, err := Marshal(test.v); err == nil {
			got = string(b)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("Marshal(%#v) (-want +got):\n%s", test.v, diff)
		}
	}
}
