package tools

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openenv-go/openenv-go/pkg/internal/strictjson"
)

type flatArgs struct {
	S    string  `json:"s"`
	B    bool    `json:"b,omitempty"`
	I    int     `json:"i,omitzero"`
	I8   int8    `json:"i8"`
	U    uint    `json:"u"`
	U16  uint16  `json:"u16"`
	F    float64 `json:"f"`
	Skip string  `json:"-"`
	Name string
}

type withMethod struct{ S string }

func (*withMethod) UnmarshalJSON([]byte) error { return nil }

type named string

func TestShallowTypes(t *testing.T) {
	if shallowOf(reflect.TypeFor[flatArgs]()) == nil {
		t.Error("flatArgs is not shallow")
	}
	for _, typ := range []reflect.Type{
		reflect.TypeFor[withMethod](),
		reflect.TypeFor[map[string]string](),
		reflect.TypeFor[struct{ P *string }](),
		reflect.TypeFor[struct{ L []string }](),
		reflect.TypeFor[struct{ N named }](),
		reflect.TypeFor[struct{ N json.Number }](),
		reflect.TypeFor[struct{ F float32 }](), // which rounds integers that are plain
		reflect.TypeFor[struct{ A any }](),
		reflect.TypeFor[struct {
			I int `json:"i,string"`
		}](),
		reflect.TypeFor[struct {
			S string `json:"s,case:ignore"`
		}](),
		reflect.TypeFor[struct{ flatArgs }](),
		reflect.TypeFor[struct{ withMethod }](),
	} {
		if shallowOf(typ) != nil {
			t.Errorf("%v is taken for shallow", typ)
		}
	}
}

// FuzzShallow: whatever fill takes, the decoder of text takes too, and makes the same of it.
func FuzzShallow(f *testing.F) {
	for _, seed := range []string{
		`{}`, `[]`, `null`, `{"s":"a\u00e9\n","b":true,"i":-0,"i8":127,"u":7,"u16":65535,"f":-3,"Name":"x","own":1,"other":[1]}`,
		`{"s":null}`, `{"s":1}`, `{"b":"true"}`, `{"i":"1"}`, `{"i8":128}`, `{"i8":-128}`, `{"u":-1}`, `{"u":-0}`, `{"u16":65536}`,
		`{"i":1.0}`, `{"f":0.1}`, `{"f":1e3}`, `{"f":9007199254740993}`, `{"i":9223372036854775807}`, `{"i":9223372036854775808}`,
		`{"S":"case"}`, `{"Skip":"x","-":"y"}`, `{"s":{}}`, `{"name":"x"}`, `{"f":-0}`,
	} {
		f.Add([]byte(seed))
	}
	s := shallowOf(reflect.TypeFor[flatArgs]())
	f.Fuzz(func(t *testing.T, b []byte) {
		if strictjson.Check(b, strictjson.DefaultMaxDepth) != nil {
			return
		}
		v, plain, err := strictjson.Parse(b)
		var got, want flatArgs
		if err != nil || !plain || !s.fill(reflect.ValueOf(&got).Elem(), v) {
			return
		}
		if err := strictjson.UnmarshalPlain(b, &want); err != nil {
			t.Fatalf("%s: %v", b, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-text +filled):\n%s", b, diff)
		}
	})
}

// What fill does not take is read from the text, from the beginning.
func TestShallowFallsBack(t *testing.T) {
	in, err := NewInput[flatArgs](nil)
	if err != nil {
		t.Fatal(err)
	}
	const rest = `"i8":1,"u":2,"u16":3,"f":4,"s":"a","Name":"b"`
	for text, want := range map[string]flatArgs{
		`{"i":5,` + rest + `}`:     {S: "a", I: 5, I8: 1, U: 2, U16: 3, F: 4, Name: "b"},
		`{"i":5.0,` + rest + `}`:   {S: "a", I: 5, I8: 1, U: 2, U16: 3, F: 4, Name: "b"},
		`{"i":50e-1,` + rest + `}`: {S: "a", I: 5, I8: 1, U: 2, U16: 3, F: 4, Name: "b"},
	} {
		got, err := in.Decode([]byte(text))
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", text, err, diff)
		}
	}
	if got, err := in.Decode([]byte(`{"i8":1099511627776,"s":"a","u":2,"u16":3,"f":4,"Name":"b"}`)); err == nil || got != (flatArgs{}) {
		t.Errorf("an int8 of 2^40: %+v, %v", got, err)
	}
}
