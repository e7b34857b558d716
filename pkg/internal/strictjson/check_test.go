package strictjson

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestCheckAccepts(t *testing.T) {
	for _, text := range []string{
		`null`, `true`, `false`, `0`, `-0`, `-1.5e-3`, `1e400`, `""`, `[]`, `{}`, " \t\r\n{} \t\r\n",
		`{"a":1,"A":2," a":3,"":4}`,
		`{"a":{"a":{"a":1}},"b":[{"a":1},{"a":1}]}`, // the same name in different objects
		`"\ud83d\ude00"`, `"\u0000"`, `"😀"`, `"\/"`,
		"\"\u2028\u2029\u007f\ufffd\ufeff\"",
		"{\"\u00e9\":1,\"e\u0301\":2}", // one letter, composed and decomposed: different names
		`["[[[[[[[[[[[[","\"[[[[[[[[","\\","{{{{{{{{"]`,
		`{"a":` + strings.Repeat("9", 10_000) + `}`,
	} {
		if err := Check([]byte(text), 4); err != nil {
			t.Errorf("Check(%.60q): %v", text, err)
		}
	}
}

func TestCheckRefuses(t *testing.T) {
	for _, test := range []struct {
		name, text string
		want       SyntaxError
	}{
		{"empty", "", SyntaxError{0, "empty input"}},
		{"white space only", " \t\r\n", SyntaxError{0, "empty input"}},
		{"byte order mark", "\ufeff{}", SyntaxError{0, "a byte order mark before the value"}},

		{"duplicate", `{"a":1,"b":2,"a":3}`, SyntaxError{13, `member "a" appears twice`}},
		{"duplicate by escape", `{"a":1,"\u0061":2}`, SyntaxError{7, `member "a" appears twice`}},
		{"duplicate, both escaped", `{"\u0061":1,"\u0061":2}`, SyntaxError{12, `member "a" appears twice`}},
		{"duplicate by surrogate escape", `{"😀":1,"\ud83d\ude00":2}`, SyntaxError{10, `member "😀" appears twice`}},
		{"duplicate by slash escape", `{"/":1,"\/":2}`, SyntaxError{7, `member "/" appears twice`}},
		{"duplicate, deep", `[0,{"b":[{"a":1,"x":{},"a":2}]}]`, SyntaxError{23, `member "a" appears twice`}},
		{"duplicate after a nested object", `{"a":{"b":1},"b":2,"a":3}`, SyntaxError{19, `member "a" appears twice`}},
		{"duplicate of the empty name", `{"":1,"":2}`, SyntaxError{6, `member "" appears twice`}},
		{"duplicate with pointer characters", `{"~/":1,"~/":2}`, SyntaxError{8, `member "~/" appears twice`}},

		{"invalid UTF-8 in a string", "[\"ab\xff\"]", SyntaxError{4, "invalid UTF-8"}},
		{"invalid UTF-8 in a name", "{\"\xc3\x28\":1}", SyntaxError{2, "invalid UTF-8"}},
		{"overlong UTF-8", "\"\xc0\xaf\"", SyntaxError{1, "invalid UTF-8"}},
		{"surrogate in UTF-8", "\"\xed\xa0\x80\"", SyntaxError{1, "invalid UTF-8"}},
		{"invalid UTF-8 outside of strings", "\xff", SyntaxError{0, `invalid character '\xff' at start of value`}},
		{"lone high surrogate", `["\ud800"]`, SyntaxError{2, "invalid surrogate pair `\\ud800\"]` in string"}},
		{"lone low surrogate", `"\udc00"`, SyntaxError{1, "invalid surrogate pair `\\udc00\"` in string"}},
		{"surrogates the wrong way round", `"\udc00\ud800"`, SyntaxError{1, "invalid surrogate pair `\\udc00\\ud800` in string"}},

		{"NaN", `[NaN]`, SyntaxError{1, `invalid character 'N' at start of value`}},
		{"Infinity", `{"a":Infinity}`, SyntaxError{5, `invalid character 'I' at start of value`}},
		{"-Infinity", `-Infinity`, SyntaxError{1, `invalid character 'I' in number (expecting digit)`}},
		{"leading zero", `01`, SyntaxError{1, "more data after the value"}},
		{"plus", `+1`, SyntaxError{0, `invalid character '+' at start of value`}},
		{"hexadecimal", `0x10`, SyntaxError{1, "more data after the value"}},
		{"no digit after the point", `[1.]`, SyntaxError{3, `invalid character ']' in number (expecting digit)`}},

		{"trailing value", `{} {}`, SyntaxError{3, "more data after the value"}},
		{"trailing character", "{}\x00", SyntaxError{2, "more data after the value"}},
		{"trailing bracket", `[]]`, SyntaxError{2, "more data after the value"}},
		{"trailing comma in a list", `[1,]`, SyntaxError{2, `invalid character ',' at start of value`}},
		{"trailing comma in an object", `{"a":1,}`, SyntaxError{6, `invalid character ',' at start of value`}},
		{"comment", `/**/1`, SyntaxError{0, `invalid character '/' at start of value`}},
		{"single quotes", `'a'`, SyntaxError{0, `invalid character '\'' at start of value`}},
		{"bare name", `{a:1}`, SyntaxError{1, `invalid character 'a' at start of value`}},
		{"control character in a string", "\"a\nb\"", SyntaxError{2, `invalid character '\n' in string (expecting non-control character)`}},
		{"unknown escape", `"\x"`, SyntaxError{1, "invalid escape sequence `\\x` in string"}},
		{"wrong bracket", `[1}`, SyntaxError{2, `invalid character '}' after array element (expecting ',' or ']')`}},
		{"closing bracket", `]`, SyntaxError{0, `invalid character ']' at start of value`}},

		{"truncated word", `nul`, SyntaxError{3, "the input ends in the middle of a value"}},
		{"truncated string", `"ab`, SyntaxError{3, "the input ends in the middle of a value"}},
		{"truncated list", `[1,`, SyntaxError{3, "the input ends in the middle of a value"}},
		{"truncated object", `{"a":`, SyntaxError{5, "the input ends in the middle of a value"}},
		{"truncated number", `-`, SyntaxError{1, "the input ends in the middle of a value"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var got *SyntaxError
			if err := Check([]byte(test.text), DefaultMaxDepth); !errors.As(err, &got) {
				t.Fatalf("Check(%q) = %v, want a *SyntaxError", test.text, err)
			}
			if diff := cmp.Diff(test.want, *got); diff != "" {
				t.Errorf("Check(%q) (-want +got):\n%s", test.text, diff)
			}
		})
	}
	e := &SyntaxError{Offset: 7, Msg: `member "a" appears twice`}
	if got, want := e.Error(), `invalid JSON: member "a" appears twice (at byte 7)`; got != want {
		t.Errorf("Error() = %q, want %q", got, want)
	}
}

// The limit is exact, whatever opens the levels and whatever strings hold.
func TestCheckDepth(t *testing.T) {
	nested := func(open, core, end string, n int) string {
		return strings.Repeat(open, n) + core + strings.Repeat(end, n)
	}
	for _, test := range []struct{ name, open, core, end string }{
		{"lists", `[`, ``, `]`},
		{"objects", `{"a":`, `1`, `}`},
		{"lists with brackets in strings", `["[[{{\"[",`, `0`, `]`},
		{"objects with brackets in names", `{"[{\\":`, `"]}"`, `}`},
		{"lists with siblings", `[[],{},[],`, `0`, `]`},
	} {
		for _, limit := range []int{1, 2, 17, DefaultMaxDepth} {
			t.Run(fmt.Sprintf("%s/%d", test.name, limit), func(t *testing.T) {
				n := limit
				if strings.Contains(test.open, "[]") {
					n-- // the siblings are one level deeper
				}
				if err := Check([]byte(nested(test.open, test.core, test.end, n)), limit); err != nil {
					t.Errorf("at the limit: %v", err)
				}
				err := Check([]byte(nested(test.open, test.core, test.end, n+1)), limit)
				want := fmt.Sprintf("objects and arrays nest deeper than %d", limit)
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("one deeper: %v, want %q", err, want)
				}
			})
		}
	}
	t.Run("limit 0 is scalars only", func(t *testing.T) {
		if err := Check([]byte(`"[]"`), 0); err != nil {
			t.Error(err)
		}
		var e *SyntaxError
		if err := Check([]byte(` []`), 0); !errors.As(err, &e) || e.Offset != 1 {
			t.Errorf("got %v, want an error at byte 1", err)
		}
	})
	t.Run("closing brackets buy no depth", func(t *testing.T) {
		if Check([]byte(`]]]][[[[0]]]]`), 3) == nil {
			t.Error("accepted")
		}
	})
}

// Time grows with the length and no faster. The bounds are far above what is needed, and far below what anything
// quadratic needs.
func TestCheckLargeInputs(t *testing.T) {
	var keys bytes.Buffer
	keys.WriteByte('{')
	for i := range 200_000 {
		fmt.Fprintf(&keys, `"key%d":%d,`, i, i)
	}
	distinct := append(bytes.Clone(keys.Bytes()), `"last":0}`...)
	duplicate := append(bytes.Clone(keys.Bytes()), `"key0":0}`...)

	for _, test := range []struct {
		name string
		text []byte
		want string // part of the error, or empty
	}{
		{"200k names", distinct, ""},
		{"200k names and a duplicate", duplicate, `member "key0" appears twice`},
		{"deep brackets", bytes.Repeat([]byte("["), 5_000_000), "nest deeper"},
		{"many objects", append(append([]byte("["), bytes.Repeat([]byte(`{"a":[{}]},`), 300_000)...), "0]"...), ""},
		{"a long string", append(append([]byte(`"`), bytes.Repeat([]byte(`\u0041\\`), 500_000)...), '"'), ""},
		{"a long string that does not end", append([]byte(`"`), bytes.Repeat([]byte(`\"`), 2_000_000)...), "ends in the middle"},
		{"a long number", bytes.Repeat([]byte("7"), 4_000_000), ""},
		{"much white space", append(bytes.Repeat([]byte(" "), 4_000_000), "{}x"...), "more data"},
		{"a long duplicate", []byte(`{"` + strings.Repeat("n", 1_000_000) + `":1,"` + strings.Repeat("n", 1_000_000) + `":2}`), "appears twice"},
	} {
		t.Run(test.name, func(t *testing.T) {
			start := time.Now()
			err := Check(test.text, DefaultMaxDepth)
			if took := time.Since(start); took > time.Minute {
				t.Errorf("took %v", took)
			}
			switch {
			case err == nil && test.want != "", err != nil && test.want == "":
				t.Errorf("got %v, want %q", err, test.want)
			case err != nil && !strings.Contains(err.Error(), test.want):
				t.Errorf("got %v, want %q", err, test.want)
			case err != nil && len(err.Error()) > 300:
				t.Errorf("the message has %d bytes", len(err.Error()))
			}
		})
	}
}
