package strictjson

import (
	stdjson "encoding/json"
	"errors"
	"math"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

type sample struct {
	Name   string             `json:"name"`
	List   []int              `json:"list"`
	Map    map[string]any     `json:"map"`
	Bytes  []byte             `json:"bytes"`
	When   time.Time          `json:"when"`
	Addr   netip.Addr         `json:"addr"`
	Raw    Raw                `json:"raw"`
	Std    stdjson.RawMessage `json:"std"`
	Ptr    *string            `json:"ptr"`
	Opt    string             `json:"opt,omitempty"`
	Zero   time.Time          `json:"zero,omitzero"`
	Hidden string             `json:"-"`
	lower  string
}

func TestUnmarshal(t *testing.T) {
	when := time.Date(2026, 2, 3, 4, 5, 6, 700_000_000, time.UTC)
	text := "x"
	for _, test := range []struct {
		name, text string
		want       sample
	}{
		{"all members", `{"name":"n","list":[1,2],"map":{"a":[null,true]},"bytes":"AQID","when":"2026-02-03T04:05:06.7Z",
			"addr":"10.0.0.1","raw":{"a": 1},"std":[1, 2],"ptr":"x","opt":"o"}`, sample{
			Name: "n", List: []int{1, 2}, Map: map[string]any{"a": []any{nil, true}}, Bytes: []byte{1, 2, 3}, When: when,
			Addr: netip.MustParseAddr("10.0.0.1"), Raw: Raw(`{"a": 1}`), Std: stdjson.RawMessage(`[1, 2]`), Ptr: &text, Opt: "o",
		}},
		{"names that differ in case", `{"Name":"n","NAME":"m","List":[1],"hidden":"h","Hidden":"h","lower":"l"}`, sample{}},
		{"names by escapes", `{"n\u0061me":"n"}`, sample{Name: "n"}},
		{"unknown members", `{"what":{"name":"inner"},"name":"n"}`, sample{Name: "n"}},
		{"null", `{"name":null,"list":null,"map":null,"bytes":null,"when":null,"ptr":null,"raw":null,"std":null}`,
			sample{Raw: Raw(`null`), Std: stdjson.RawMessage(`null`)}},
		{"empty", `{"list":[],"map":{},"bytes":""}`, sample{List: []int{}, Map: map[string]any{}, Bytes: []byte{}}},
		{"bytes as a list", `{"bytes":[1,2]}`, sample{Bytes: []byte{1, 2}}}, // as encoding/json
		{"white space in base64", `{"bytes":"AQ\r\nID"}`, sample{Bytes: []byte{1, 2, 3}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			for name, unmarshal := range map[string]func([]byte, any) error{
				"Unmarshal": Unmarshal, "UnmarshalPlain": UnmarshalPlain, "UnmarshalIntegers": UnmarshalIntegers, "exact": unmarshalExactly,
			} {
				var got sample
				if err := unmarshal([]byte(test.text), &got); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(sample{}), cmp.Comparer(sameAddr)); diff != "" {
					t.Errorf("%s (-want +got):\n%s", name, diff)
				}
			}
		})
	}
}

func sameAddr(a, b netip.Addr) bool { return a == b }

func TestUnmarshalErrors(t *testing.T) {
	for _, test := range []struct{ name, text, want string }{
		{"wrong type", `{"list":[1,"2"]}`, `list.1: a string does not fit int`},
		{"wrong type of the whole", `[]`, `a list does not fit strictjson.sample`},
		{"fraction", `{"list":[1.5]}`, `list.0: 1.5 is not an integer that int can hold`},
		{"out of range", `{"list":[9223372036854775808]}`, `list.0: 9223372036854775808 is out of the range of int`},
		{"bad time", `{"when":"yesterday"}`, `when: parsing time "yesterday" as "2006-01-02T15:04:05Z07:00": cannot parse "yesterday" as "2006"`},
		{"bad base64", `{"bytes":"!"}`, `bytes: illegal base64 data at input byte 0`},
		{"bad text", `{"addr":"10.0.0"}`, `addr: ParseAddr("10.0.0"): IPv4 address too short`},
		{"not text", `{"addr":{}}`, `addr: JSON value must be string type`},

		// Unchecked input:
		{"malformed", `{"name":`, `invalid JSON: the input ends in the middle of a value (at byte 8)`},
		{"empty", ``, `invalid JSON: the input ends in the middle of a value (at byte 0)`},
		{"trailing data", `{} {}`, `invalid JSON: invalid character '{' after top-level value (at byte 3)`},
		{"duplicate", `{"what":1,"name":"a","what":2}`, `invalid JSON: member "what" appears twice (at byte 21)`},
		{"duplicate in a map", `{"map":{"a":1,"a":2}}`, `invalid JSON: member "a" appears twice (at byte 14)`},
		{"invalid UTF-8", "{\"name\":\"\xff\"}", `invalid JSON: invalid UTF-8 (at byte 9)`},
	} {
		t.Run(test.name, func(t *testing.T) {
			for range 20 {
				if err := Unmarshal([]byte(test.text), new(sample)); err == nil || err.Error() != test.want {
					t.Fatalf("got %v, want %s", err, test.want)
				}
			}
		})
	}
	err := UnmarshalKnown([]byte(`{"name":"n","Name":"m"}`), new(sample))
	if err == nil || err.Error() != `Name: unknown member` {
		t.Errorf("UnmarshalKnown of a name in another case: %v", err)
	}
	if err := UnmarshalKnown([]byte(`{"map":{"free":1}}`), new(sample)); err != nil {
		t.Errorf("UnmarshalKnown of a free map: %v", err)
	}
}

// A free map keeps names that differ in case apart.
func TestUnmarshalMapNames(t *testing.T) {
	var got map[string]int
	if err := Unmarshal([]byte(`{"a":1,"A":2,"ä":3}`), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]int{"a": 1, "A": 2, "ä": 3}, got); diff != "" {
		t.Error(diff)
	}
}

func TestUnmarshalKeepsWhatIsNotNamed(t *testing.T) {
	got := sample{Name: "kept", List: []int{1}, Opt: "kept"}
	if err := Unmarshal([]byte(`{"list":[2,3],"opt":"new"}`), &got); err != nil {
		t.Fatal(err)
	}
	if got.Name != "kept" || got.Opt != "new" || !cmp.Equal(got.List, []int{2, 3}) {
		t.Errorf("got %+v", got)
	}
}

// Decoding into a variable must not write over what the variable shared with others, and what was decoded must not
// change with the input's memory.
func TestUnmarshalAliasing(t *testing.T) {
	for name, unmarshal := range map[string]func([]byte, any) error{
		"Unmarshal": Unmarshal, "UnmarshalKnown": UnmarshalKnown, "UnmarshalPlain": UnmarshalPlain,
		"UnmarshalIntegers": UnmarshalIntegers, "exact": unmarshalExactly,
	} {
		t.Run(name, func(t *testing.T) {
			raw, std, top := Raw(`"shared raw"`), stdjson.RawMessage(`"shared std"`), Raw(`"shared top"`)
			got := sample{Raw: raw, Std: std}
			in := []byte(`{"raw":1,"std":2,"name":"abc","map":{"k":"abc"}}`)
			if err := unmarshal(in, &got); err != nil {
				t.Fatal(err)
			}
			whole := top
			if err := unmarshal([]byte(`3`), &whole); err != nil {
				t.Fatal(err)
			}
			list := []Raw{raw}
			if err := unmarshal([]byte(`[4]`), &list); err != nil {
				t.Fatal(err)
			}
			if string(raw) != `"shared raw"` || string(std) != `"shared std"` || string(top) != `"shared top"` {
				t.Errorf("overwritten: %s %s %s", raw, std, top)
			}
			clear(in)
			if string(got.Raw) != `1` || string(got.Std) != `2` || got.Name != "abc" || got.Map["k"] != "abc" || string(whole) != `3` {
				t.Errorf("got %s %s %s %v %s", got.Raw, got.Std, got.Name, got.Map, whole)
			}
		})
	}
}

func TestMarshal(t *testing.T) {
	text := "x"
	for _, test := range []struct {
		name string
		v    any
		want string
	}{
		{"zero struct", sample{}, `{"name":"","list":[],"map":{},"bytes":"","when":"0001-01-01T00:00:00Z","addr":"","raw":null,"std":null,"ptr":null}`},
		{"filled struct", sample{
			Name: "n", List: []int{1}, Map: map[string]any{"b": 1, "a": nil, "c": []string(nil)}, Bytes: []byte{1, 2, 3},
			When: time.Date(2026, 2, 3, 4, 5, 6, 700_000_000, time.FixedZone("", 3600)), Addr: netip.MustParseAddr("::1"),
			Raw: Raw(`{"b": 1.0, "a": "\u0041"}`), Std: stdjson.RawMessage(`[1, 2]`), Ptr: &text, Opt: "o", Hidden: "h", lower: "l",
		}, `{"name":"n","list":[1],"map":{"a":null,"b":1,"c":[]},"bytes":"AQID","when":"2026-02-03T04:05:06.7+01:00","addr":"::1","raw":{"b":1.0,"a":"\u0041"},"std":[1,2],"ptr":"x","opt":"o"}`},
		{"nil slice", []int(nil), `[]`},
		{"nil slice in a list", [][]int{nil}, `[[]]`},
		{"nil map", map[string]int(nil), `{}`},
		{"nil slice in an interface", map[string]any{"a": []any(nil)}, `{"a":[]}`},
		{"nil pointer", (*sample)(nil), `null`},
		{"nil", nil, `null`},
		{"maps are sorted", map[string]int{"b": 1, "a": 2, "B": 3}, `{"B":3,"a":2,"b":1}`},
		{"markup is not escaped", "<a href='x'>&\u2028", "\"<a href='x'>&\u2028\""},
		{"control characters", "\x00\t\"\\\u007f", "\"\\u0000\\t\\\"\\\\\u007f\""},
		{"a byte array", [2]byte{1, 2}, `[1,2]`},
		{"pointer methods of values", struct {
			A pointerText
			B map[string]pointerJSON
			C []any
		}{"a", map[string]pointerJSON{"k": 1}, []any{pointerText("c")}}, `{"A":"text:a","B":{"k":{"v":1}},"C":["text:c"]}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := Marshal(test.v)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, string(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// encoding/json leaves out the methods of values that it cannot address, so that one type would have two JSON forms.
type (
	pointerText string
	pointerJSON int
)

func (p *pointerText) MarshalText() ([]byte, error) { return []byte("text:" + *p), nil }
func (p *pointerJSON) MarshalJSON() ([]byte, error) {
	return stdjson.Marshal(map[string]int{"v": int(*p)})
}

func TestMarshalErrors(t *testing.T) {
	for _, test := range []struct {
		name string
		v    any
		want string
	}{
		{"NaN", map[string]any{"a": []float64{0, math.NaN()}}, `a.1: unsupported value: NaN`},
		{"invalid UTF-8", "a\xff", `invalid UTF-8`},
		{"invalid UTF-8 in a name", map[string]int{"a\xff": 1}, `invalid UTF-8`},
		{"malformed raw", Raw(`{`), `unexpected EOF`},
		{"raw with a duplicate", Raw(`{"a":1,"a":2}`), `duplicate`},
		{"raw with NaN", stdjson.RawMessage(`NaN`), `invalid character 'N'`},
		{"empty raw", Raw{}, ``},
		{"a function", map[string]any{"f": func() {}}, `f: the Go type func() has no JSON form`},
		{"a channel", make(chan int), `the Go type chan int has no JSON form`},
		{"a complex number", 1i, `the Go type complex128 has no JSON form`},
		{"an author's error", struct{ B badMarshaler }{}, `B: no luck`},
		{"conflicting names", reflect.Zero(reflect.StructOf([]reflect.StructField{ // vet would not have it in the source
			{Name: "A", Type: reflect.TypeFor[int](), Tag: `json:"x"`},
			{Name: "B", Type: reflect.TypeFor[int](), Tag: `json:"x"`},
		})).Interface(), `Go struct fields A and B conflict over JSON object name "x"`},
	} {
		if b, err := Marshal(test.v); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %s, %v, want %s", test.name, b, err, test.want)
		}
	}
}

type badMarshaler struct{}

func (badMarshaler) MarshalJSON() ([]byte, error) { return nil, errors.New("no luck") }

func TestParse(t *testing.T) {
	long := strings.Repeat("7", maxNumberLength)
	for _, test := range []struct {
		text string
		want any
	}{
		{` null `, nil}, {"\ttrue", true}, {`false`, false}, {`""`, ""}, {`"a\n\u0041\ud83d\ude00ä"`, "a\nA😀ä"},
		{`-1.50e+2`, Number("-1.50e+2")}, {`9007199254740993`, Number("9007199254740993")},
		{`1e400`, Number("1e400")}, {`1e-400`, Number("1e-400")}, {long, Number(long)},
		{` [ ] `, []any{}}, {` { } `, map[string]any{}},
		{` [ 1 , [ ] , { "a" : [ "b" ] } ] `, []any{Number("1"), []any{}, map[string]any{"a": []any{"b"}}}},
		{`{"":0,"a b":{"\u0061":null}}`, map[string]any{"": Number("0"), "a b": map[string]any{"a": nil}}},
	} {
		got, _, err := Parse([]byte(test.text))
		if err != nil {
			t.Errorf("Parse(%.60s): %v", test.text, err)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("Parse(%.60s) (-want +got):\n%s", test.text, diff)
		}
	}
}

// A few bytes of exponent must not buy hours of arithmetic in whoever computes with the number.
func TestParseBoundsNumbers(t *testing.T) {
	for _, test := range []struct {
		text string
		want NumberError
	}{
		{`1e401`, NumberError{nil, "1e401"}},
		{`{"a":[0,1e999999999]}`, NumberError{[]any{"a", 1}, "1e999999999"}},
		{`[{"b":0e-99999999999999999999}]`, NumberError{[]any{0, "b"}, "0e-99999999999999999999"}},
		{strings.Repeat("7", maxNumberLength+1), NumberError{nil, strings.Repeat("7", 40) + "…"}},
	} {
		if err := Check([]byte(test.text), 9); err != nil {
			t.Fatal(err)
		}
		_, _, err := Parse([]byte(test.text))
		got, ok := err.(*NumberError)
		if !ok {
			t.Errorf("Parse(%.60s): %v", test.text, err)
			continue
		}
		if diff := cmp.Diff(test.want, *got); diff != "" {
			t.Errorf("Parse(%.60s) (-want +got):\n%s", test.text, diff)
		}
	}
}

// Parse is for checked input; on anything else it may be lenient, but it must come back, without a value if the grammar
// is broken.
func TestParseUnchecked(t *testing.T) {
	for _, text := range []string{
		``, ` `, `nul`, `nulll`, `[`, `[1`, `[1,`, `[1,]`, `[,]`, `[1 2]`, `{`, `{"a"`, `{"a":`, `{"a":1`, `{"a":1,`, `{"a":1,}`, `{,}`,
		`{a:1}`, `{"a" 1}`, `{1:2}`, `"`, `"\`, `"\"`, `"\x"`, `"\ud800"`, `1 2`, `-`, `+1`, `01`, `1e`, `NaN`, `]`, `[}`,
		strings.Repeat("[", 1_000_000), strings.Repeat(`{"a":`, 200_000),
	} {
		if v, _, err := Parse([]byte(text)); err == nil {
			t.Errorf("Parse(%.40q) = %v", text, v)
		}
	}
}

func TestString(t *testing.T) {
	for _, test := range []struct {
		raw, want string
		ok        bool
	}{
		{`"a\u0041\n"`, "aA\n", true}, {`""`, "", true}, {`"😀"`, "😀", true},
		{``, "", false}, {`null`, "", false}, {`5`, "", false}, {`["a"]`, "", false},
	} {
		if got, ok := String([]byte(test.raw)); got != test.want || ok != test.ok {
			t.Errorf("String(%s) = %q, %v", test.raw, got, ok)
		}
	}
}

func TestMembers(t *testing.T) {
	for _, test := range []struct {
		text string
		want map[string]Raw // nil: no object
	}{
		{`{}`, map[string]Raw{}},
		{" { } ", map[string]Raw{}},
		{`{"a":1}`, map[string]Raw{"a": Raw(`1`)}},
		{" {\n\"a\" : [ 1, {\"b\" : \"]}\"} ] , \"c\" :{ } ,\"d\": \"\\\"\" }", map[string]Raw{
			"a": Raw(`[ 1, {"b" : "]}"} ]`), "c": Raw(`{ }`), "d": Raw(`"\""`),
		}},
		{`{"\u0061\"":-1.5e3,"":null}`, map[string]Raw{`a"`: Raw(`-1.5e3`), "": Raw(`null`)}},
		{`[]`, nil}, {`"{}"`, nil}, {`null`, nil}, {``, nil},
	} {
		if diff := cmp.Diff(test.want, membersOf([]byte(test.text))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.text, diff)
		}
	}
	for _, unchecked := range []string{`{`, `{"`, `{"\`, `{"a`, `{"a"`, `{"a":`, `{"a":"`, `{"a":[`, `{"a":1,`, `{"a":}`, `{1}`, `{"a":]]]`, `{"0"  "0`} {
		membersOf([]byte(unchecked)) // anything, but it comes back
	}
	m, _ := MembersOf([]byte(`{"a":1,"b":2}`))
	_, v, _ := m.Next()
	_ = append(v, "overwritten"...)
	if name, v, ok := m.Next(); string(name) != "b" || string(v) != "2" || !ok {
		t.Errorf("appending to a value changed the next: %s %s", name, v)
	}
}

// What is appended piece by piece is what Marshal writes.
func TestAppend(t *testing.T) {
	for _, v := range []any{nil, "a<b>\"\\\n\u2028\x00é", 5, 1.5, []string(nil), map[string]any{"b": 1, "a": nil}, Raw(`{"a":1}`), Raw(nil), Number("5.0")} {
		want, err := Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Append([]byte("before "), v)
		if err != nil || string(got) != "before "+string(want) {
			t.Errorf("Append(%v) = %s, %v, want %s", v, got, err, want)
		}
		if s, ok := v.(string); ok {
			if got, err := AppendString(nil, s); err != nil || string(got) != string(want) {
				t.Errorf("AppendString(%q) = %s, %v, want %s", s, got, err, want)
			}
		}
	}
	if got, err := Append([]byte("before "), Raw(`{ "a": 1 }`)); string(got) != `before { "a": 1 }` || err != nil {
		t.Errorf("a Raw with spaces: %s, %v", got, err)
	}
	if got, err := Append([]byte("before "), appender{}); string(got) != "before itself" || err != nil {
		t.Errorf("an Appender: %s, %v", got, err)
	}
	if _, err := AppendString(nil, "\xff"); err == nil {
		t.Error("invalid UTF-8 was written")
	}
	if _, err := Append(nil, math.NaN()); err == nil {
		t.Error("NaN was written")
	}
}

type appender struct{}

func (appender) AppendJSON(b []byte) ([]byte, error) { return append(b, "itself"...), nil }

// The words of a fault may be of any bytes.
func TestMarshalFault(t *testing.T) {
	fault := map[string]any{"of caf\xe9": []string{"\xff", "é"}, "n": 1}
	if b, err := MarshalFault(fault); err != nil || string(b) != `{"n":1,"of caf`+"\uFFFD"+`":["`+"\uFFFD"+`","é"]}` {
		t.Errorf("got %s, %v", b, err)
	}
	if _, err := Marshal(fault); err == nil {
		t.Error("Marshal wrote what is no UTF-8")
	}
	if _, err := MarshalFault(Raw(`{`)); err == nil {
		t.Error("what is no JSON was written")
	}
}
