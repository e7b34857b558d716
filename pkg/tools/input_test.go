package tools

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/openenv-go/openenv-go/pkg/internal/strictjson"
)

type order struct {
	Name  string            `json:"name"`
	Count int               `json:"count" minimum:"1"`
	Lines []line            `json:"lines,omitempty"`
	Meta  map[string]string `json:"meta,omitempty"`
	Free  any               `json:"free,omitempty"`
}

type line struct {
	Code  string `json:"code"`
	Small int8   `json:"small,omitempty"`
	Big   uint64 `json:"big,omitempty"`
}

func mustInput[T any](t testing.TB) *Input[T] {
	t.Helper()
	in, err := NewInput[T](nil)
	if err != nil {
		t.Fatal(err)
	}
	return in
}

// fieldsOf decodes raw, which must fail.
func fieldsOf[T any](t testing.TB, in *Input[T], raw string) []FieldError {
	t.Helper()
	v, err := in.Decode([]byte(raw))
	var ie *InputError
	if !errors.As(err, &ie) {
		t.Fatalf("Decode(%.100s) = %v, %v, want an *InputError", raw, v, err)
	}
	return ie.Fields
}

func TestFieldErrors(t *testing.T) {
	in := mustInput[order](t)
	num := func(s string) json.Number { return json.Number(s) }
	for _, test := range []struct {
		name, raw string
		want      []FieldError
	}{
		{"no bytes", ``, []FieldError{
			{"missing", []any{"count"}, "field required", map[string]any{}},
			{"missing", []any{"name"}, "field required", map[string]any{}},
		}},
		{"not an object", `[1]`, []FieldError{{"dict_type", []any{}, "want object, got array", []any{num("1")}}}},
		{"null", `null`, []FieldError{{"dict_type", []any{}, "want object, got null", nil}}},
		{"several, in the order of their places", `{"zeta":1,"name":5.50,"count":0,"lines":[{"code":"a"},{"code":1,"extra":[]},{}],"alpha":null}`, []FieldError{
			{"extra_forbidden", []any{"alpha"}, "unknown field", nil},
			{"greater_than_equal", []any{"count"}, "want at least 1", num("0")},
			{"string_type", []any{"lines", 1, "code"}, "want string, got number", num("1")},
			{"extra_forbidden", []any{"lines", 1, "extra"}, "unknown field", []any{}},
			{"missing", []any{"lines", 2, "code"}, "field required", map[string]any{}},
			{"string_type", []any{"name"}, "want string, got number", num("5.50")},
			{"extra_forbidden", []any{"zeta"}, "unknown field", num("1")},
		}},
		{"a name in another case", `{"Name":"a","name":"a","count":1}`, []FieldError{{"extra_forbidden", []any{"Name"}, "unknown field", "a"}}},
		{"names with dots and digits", `{"name":"a","count":1,"meta":{"a.b":1,"0":2,"":3}}`, []FieldError{
			{"string_type", []any{"meta", ""}, "want string, got number", num("3")},
			{"string_type", []any{"meta", "0"}, "want string, got number", num("2")},
			{"string_type", []any{"meta", "a.b"}, "want string, got number", num("1")},
		}},
		{"an integer too large for the Go type", `{"name":"a","count":1,"lines":[{"code":"a","big":18446744073709551616}]}`, []FieldError{
			{"value_error", []any{"lines", 0, "big"}, "18446744073709551616 is out of the range of uint64", num("18446744073709551616")},
		}},
		{"a number that a float rounds", `{"name":"a","count":1,"free":{"x":[9007199254740993]}}`, []FieldError{
			{"value_error", []any{"free", "x", 0}, "9007199254740993 cannot be held exactly by a 64-bit float", num("9007199254740993")},
		}},
		{"a number that nobody computes with", `{"name":"a","count":1e999999999}`, []FieldError{
			{"finite_number", []any{"count"}, "1e999999999 is out of the range of a 64-bit float", "1e999999999"},
		}},
		{"unchecked input", `{"name":`, []FieldError{{"json_invalid", []any{}, "invalid JSON: invalid value (at byte 8)", nil}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			want := fmt.Sprint(&InputError{test.want})
			for range 50 {
				got := fieldsOf(t, in, test.raw)
				if diff := cmp.Diff(test.want, got); diff != "" {
					t.Fatalf("(-want +got):\n%s", diff)
				}
				if message := fmt.Sprint(&InputError{got}); message != want {
					t.Fatalf("message %s, want %s", message, want)
				}
			}
			checkFieldErrors(t, &InputError{test.want}, []byte(test.raw))
		})
	}
}

// An error's input is the value that was sent, in both encoders: a number as a number.
func TestFieldErrorInputAsSent(t *testing.T) {
	in := mustInput[order](t)
	for _, sent := range []string{`5`, `-1.50e+2`, `9007199254740993`, `true`, `null`, `[1,{"a":2.0}]`, `{"b":[null],"a":5}`} {
		f := fieldsOf(t, in, `{"name":`+sent+`,"count":1}`)[0]
		want := fmt.Sprintf(`{"type":"string_type","loc":["name"],"msg":%q,"input":%s}`, f.Msg, sent)
		if got, err := json.Marshal(f); err != nil || canonicalJSON(t, string(got)) != canonicalJSON(t, want) {
			t.Errorf("encoding/json writes %s, %v, want %s", got, err, want)
		}
		if got, err := strictjson.Marshal(f); err != nil || canonicalJSON(t, string(got)) != canonicalJSON(t, want) {
			t.Errorf("strictjson writes %s, %v, want %s", got, err, want)
		}
	}
}

// What a caller sends comes back shortened, however long it is.
func TestFieldErrorsAreShort(t *testing.T) {
	in := mustInput[order](t)
	long := strings.Repeat("é", 100_000)
	for _, test := range []struct{ name, raw, input, path string }{
		{"string", `{"name":"a","count":"` + long + `"}`, long[:200] + "…", "count"},
		{"string cut in a character", `{"name":"a","count":"x` + long + `"}`, "x" + long[:198] + "…", "count"},
		{"list", `{"name":[` + strings.Repeat("1,", 100) + `1],"count":1}`, "…", "name"},
		{"object", `{"name":{"` + long + `":1},"count":1}`, "…", "name"},
		{"number", `{"name":` + strings.Repeat("7", 999) + `,"count":1}`, strings.Repeat("7", 200) + "…", "name"},
		{"name of a member", `{"name":"a","count":1,"` + long + `":1}`, "1", long[:100] + "…"},
		{"name in a map", `{"name":"a","count":1,"meta":{"` + long + `":1}}`, "1", "meta." + long[:100] + "…"},
	} {
		t.Run(test.name, func(t *testing.T) {
			fields := fieldsOf(t, in, test.raw)
			f := fields[0]
			if len(fields) != 1 || fmt.Sprint(f.Input) != test.input || f.Path() != test.path {
				t.Errorf("got %d fields, first %.300v at %.300s", len(fields), f.Input, f.Path())
			}
			if message := (&InputError{fields}).Error(); len(message) > 1000 {
				t.Errorf("the message has %d bytes", len(message))
			}
		})
	}
	own := mustInput[holder[chatty]](t)
	if f := fieldsOf(t, own, `{"v":1}`)[0]; len(f.Msg) > 1100 || !strings.HasPrefix(f.Msg, "blah") {
		t.Errorf("an author's own error goes out with %d bytes", len(f.Msg))
	}
}

type chatty struct{}

func (*chatty) UnmarshalJSON([]byte) error { return errors.New(strings.Repeat("blah", 10_000)) }

// No input, however many faults it has, makes an error that is long, slow, or different the next time.
func TestManyFaults(t *testing.T) {
	unknown := func(prefix, suffix string, each func(i int) string) string {
		var b bytes.Buffer
		b.WriteString(prefix)
		for i := range 200_000 / slowdown {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(each(i))
		}
		b.WriteString(suffix)
		return b.String()
	}
	member := func(i int) string { return fmt.Sprintf(`"arg%06d":%d`, i, i) }
	item := func(i int) string { return fmt.Sprint(i) }
	type twenty struct {
		order
		A, B, C, D, E, F, G, H, I, J, K, L, M, N, O, P, Q, R, S, T, U, V int
	}
	decodeOrder, decodeTwenty := decoder[order](t), decoder[twenty](t)
	decodeUnions, decodeUnionIn := decoder[holder[[]shape]](t), decoder[unionIn](t)
	decodeMap := decoder[holder[map[string]string]](t)
	for _, test := range []struct {
		name   string
		decode func(string) error
		raw    string
		first  string
	}{
		{"unknown members", decodeOrder, unknown(`{"name":"a","count":1,`, `}`, member), "arg000000: unknown field"},
		{"unknown members beside missing ones", decodeTwenty, unknown(`{`, `}`, member), "A: field required"},
		{"items of the wrong type", decodeOrder, unknown(`{"name":"a","count":1,"lines":[`, `]}`, item), "lines.0: want object, got number"},
		{"members of the wrong type", decodeMap, unknown(`{"v":{`, `}}`, member), "v.arg000000: want string, got number"},
		{"unions that fit nothing", decodeUnions, unknown(`{"v":[`, `]}`, item), "v.0: fits none of the alternatives"},
		{"missing and unknown, by the general validator", decodeUnionIn, unknown(`{`, `}`, member), "fits none of the alternatives"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var message string
			for range 2 {
				start := time.Now()
				if _, _, err := strictjson.Parse([]byte(test.raw)); err != nil {
					t.Fatal(err)
				}
				parsed := time.Since(start)
				start = time.Now()
				err := test.decode(test.raw)
				if took := time.Since(start); took > 100*parsed {
					t.Errorf("the faults took %v, where parsing took %v", took, parsed)
				}
				var ie *InputError
				if !errors.As(err, &ie) {
					t.Fatalf("got %v", err)
				}
				if n := len(ie.Fields); n > MaxFieldErrors || n == 0 {
					t.Errorf("%d fields", n)
				}
				if message != "" && message != err.Error() {
					t.Errorf("the message differs: %s, then %s", message, err)
				}
				if message = err.Error(); !strings.HasPrefix(message, test.first) || len(message) > 5000 {
					t.Errorf("message of %d bytes %.200s, want %s first", len(message), message, test.first)
				}
			}
		})
	}
	// More faults than are named, in maps that Go walks in random order.
	faulty := `{"v":{`
	for i := range 100 {
		faulty += fmt.Sprintf(`"k%02d":0,`, i)
	}
	faulty += `"z":"fine"}}`
	want := decodeMap(faulty).Error()
	for range 50 {
		if got := decodeMap(faulty).Error(); got != want {
			t.Fatalf("got %s, then %s", want, got)
		}
	}
	if n := strings.Count(want, ";") + 1; n != MaxFieldErrors || !strings.Contains(want, "v.k19") {
		t.Errorf("%d faults named: %s", n, want)
	}
}

func decoder[T any](t *testing.T) func(string) error {
	in := mustInput[T](t)
	return func(raw string) error { _, err := in.Decode([]byte(raw)); return err }
}

// Numbers that would take a long time to compute with are refused before anybody does.
func TestHostileNumbers(t *testing.T) { // if somebody did, the test would not end
	in := mustInput[holder[[]float64]](t)
	for _, number := range []string{`1e-999999999`, `1e999999999`, strings.Repeat("9", 2_000_000), `0.` + strings.Repeat("0", 2_000_000) + `1`} {
		if f := fieldsOf(t, in, `{"v":[0,`+number+`]}`)[0]; f.Path() != "v.1" || f.Type != "finite_number" {
			t.Errorf("%.20s: %+v", number, f)
		}
	}
	ints := mustInput[holder[[]int]](t)
	many := `{"v":[` + strings.Repeat(`1e-400,1e400,`, 20_000) + `0]}`
	if f := fieldsOf(t, ints, many); len(f) != MaxFieldErrors {
		t.Errorf("%d fields", len(f))
	}
}

func TestInputErrorText(t *testing.T) {
	err := &InputError{[]FieldError{{Loc: []any{"a", 0, "b"}, Msg: "is bad"}, {Msg: "is worse"}}}
	if got, want := err.Error(), "a.0.b: is bad; is worse"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for path, want := range map[string][]any{
		"": {}, "a": {"a"}, "board.3": {"board", 3}, "a.0.b": {"a", 0, "b"}, "a.01": {"a", "01"}, "-1": {"-1"}, "..a.": {"a"},
	} {
		var ie *InputError
		if !errors.As(Invalid(path, "no"), &ie) {
			t.Fatal("no *InputError")
		}
		if diff := cmp.Diff([]FieldError{{Type: "value_error", Loc: want, Msg: "no"}}, ie.Fields); diff != "" {
			t.Errorf("Invalid(%q) (-want +got):\n%s", path, diff)
		}
	}
}

// An Input may be used by many goroutines, and what it decodes is each caller's own.
func TestDecodeConcurrently(t *testing.T) {
	type shared struct {
		List []string          `json:"list" default:"[\"a\",\"b\"]"`
		Map  map[string]string `json:"map" default:"{\"k\":\"v\"}"`
		Raw  json.RawMessage   `json:"raw" default:"[1,2,3]"`
		N    int               `json:"n"`
	}
	in := mustInput[shared](t)
	done := make(chan error)
	for g := range 8 {
		go func() {
			for i := range 200 {
				v, err := in.Decode(fmt.Appendf(nil, `{"n":%d.0}`, i))
				if err == nil && (v.N != i || v.List[0] != "a" || v.Map["k"] != "v" || string(v.Raw) != "[1,2,3]") {
					err = fmt.Errorf("goroutine %d got %+v", g, v)
				}
				if err != nil {
					done <- err
					return
				}
				v.List[0], v.Map["k"], v.Raw[1] = "changed", "changed", '9'
			}
			done <- nil
		}()
	}
	for range 8 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}
