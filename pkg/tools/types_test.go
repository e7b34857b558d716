package tools

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
)

type (
	color       string
	grade       int
	flags       [2]byte
	point       struct{ X, Y int }
	pair[T any] struct {
		First  T  `json:"first"`
		Second *T `json:"second"`
	}
	common struct {
		ID   int    `json:"id"`
		Note string `json:"note,omitempty"`
	}
	plainEmbed struct {
		common
		Name string `json:"name"`
	}
	pointerEmbed struct {
		*Shared
		Name string `json:"name"`
	}
	Shared struct {
		ID int `json:"id"`
	}
	namedEmbed struct {
		Shared `json:"shared"`
		Name   string `json:"name"`
	}
	deepEmbed struct {
		pointerEmbed
		ID string `json:"id"` // hides the embedded one
	}
	clash struct { // two fields of one name at the same depth: none of them takes part
		left
		right
		Own int `json:"own"`
	}
	left   struct{ Same int }
	right  struct{ Same int }
	hidden struct {
		Shown  int `json:"shown"`
		secret int
		Never  int    `json:"-"`
		Go     string // named as in Go
	}
	optionals struct {
		Pointer *int       `json:"pointer"`
		Both    *int       `json:"both,omitempty"`
		Empty   int        `json:"empty,omitempty"`
		Zero    time.Time  `json:"zero,omitzero"`
		List    *[]string  `json:"list"`
		Struct  *point     `json:"struct"`
		Deep    **int      `json:"deep"`
		Any     *any       `json:"any"`
		Must    int        `json:"must"`
		Time    *time.Time `json:"time"`
	}
	bounded struct {
		Count int      `json:"count" minimum:"1" maximum:"10" multipleOf:"2" jsonschema:"how many"`
		Ratio float64  `json:"ratio" exclusiveMinimum:"0" exclusiveMaximum:"1"`
		Name  string   `json:"name" minLength:"2" maxLength:"4" pattern:"^[a-z😀]+$"`
		Color color    `json:"color" enum:"red, green,blue"`
		Level grade    `json:"level" enum:"1,2,3"`
		Tags  []string `json:"tags" minItems:"1" maxItems:"3" uniqueItems:"true" enum:"a,b,c,d"`
		Maybe *color   `json:"maybe" enum:"red,green"`
		Mail  string   `json:"mail,omitempty" format:"email"`
		Grid  [][]int  `json:"grid,omitempty" maxItems:"2" maximum:"9"`
	}
	quoted1 struct {
		Int    int         `json:"int,string"`
		Uint   uint8       `json:"uint,string"`
		Float  float64     `json:"float,string"`
		Bool   bool        `json:"bool,string"`
		Text   string      `json:"text,string"`
		Number json.Number `json:"number,string"`
		Maybe  *int        `json:"maybe,string"`
	}
	ownJSON struct{ n int }
	ownText struct{ s string }
	writer  struct{ N int }
	reader  struct{ N int }
)

// writer has a method for its way out only, reader for its way in.
func (w writer) MarshalJSON() ([]byte, error)  { return fmt.Appendf(nil, "%d", w.N), nil }
func (r *reader) UnmarshalText(b []byte) error { _, err := fmt.Sscan(string(b), &r.N); return err }

func (o ownJSON) MarshalJSON() ([]byte, error) { return fmt.Appendf(nil, `["own",%d]`, o.n), nil }
func (o *ownJSON) UnmarshalJSON(b []byte) error {
	if _, err := fmt.Sscanf(string(b), `["own",%d]`, &o.n); err != nil {
		return errors.New("want the list own, number")
	}
	return nil
}

// The methods of ownText are of the pointer, so that encoding/json would not always call them.
func (o *ownText) MarshalText() ([]byte, error) { return []byte(o.s), nil }
func (o *ownText) UnmarshalText(b []byte) error {
	if strings.Contains(string(b), "!") {
		return errors.New("no shouting")
	}
	o.s = string(b)
	return nil
}

// shape is a union: a struct in Go, one of two objects in JSON.
type shape struct {
	Kind   string  `json:"kind"`
	Radius float64 `json:"radius,omitempty"`
	Side   float64 `json:"side,omitempty"`
}

func (shape) JSONSchema() *jsonschema.Schema {
	object := func(kind, size string) *jsonschema.Schema {
		return &jsonschema.Schema{
			Type: "object", Required: []string{"kind", size}, AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}},
			Properties: map[string]*jsonschema.Schema{"kind": {Type: "string", Enum: []any{kind}}, size: {Type: "number"}},
		}
	}
	return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{object("circle", "radius"), object("square", "side")}}
}

// idOrName is a union of scalars, with a part that takes anything.
type idOrName struct{ v any }

func (i idOrName) MarshalJSON() ([]byte, error)  { return json.Marshal(i.v) }
func (i *idOrName) UnmarshalJSON(b []byte) error { return json.Unmarshal(b, &i.v) }
func (*idOrName) JSONSchema() *jsonschema.Schema {
	return &jsonschema.Schema{OneOf: []*jsonschema.Schema{{Type: "integer"}, {Type: "string"}, {Type: "array", Items: &jsonschema.Schema{}}}}
}

const anyJSON = `{"description":"any JSON value"}`

func orNil[T any](v T) *T { return &v }

var someTime = time.Date(2026, 2, 3, 4, 5, 6, 700_000_000, time.UTC)

var typeCases = []typeCase{
	caseOf("bool", `{"type":"boolean"}`, "", []bool{true, false}, []string{`true`}, []badSample{{`1`, "v"}, {`"true"`, "v"}, {`null`, "v"}, {absent, "v"}}),
	caseOf("string", `{"type":"string"}`, "", []string{"", "a", "<é😀\u2028>\x00"}, []string{`"a"`}, []badSample{{`5`, "v"}, {`null`, "v"}, {`["a"]`, "v"}}),
	caseOf("int", `{"type":"integer"}`, "", []int{0, math.MaxInt64, math.MinInt64}, []string{`5`, `5.0`, `1e2`, `-0`},
		[]badSample{{`5.5`, "v"}, {`"5"`, "v"}, {`true`, "v"}, {`9223372036854775808`, "v"}, {`1e400`, "v"}, {`1e401`, "v"}}),
	caseOf("int8", `{"type":"integer","minimum":-128,"maximum":127}`, "", []int8{-128, 127}, []string{`127`, `-1.28e2`}, []badSample{{`128`, "v"}, {`-129`, "v"}}),
	caseOf("int16", `{"type":"integer","minimum":-32768,"maximum":32767}`, "", []int16{-32768}, []string{`32767`}, []badSample{{`32768`, "v"}}),
	caseOf("int32", `{"type":"integer","minimum":-2147483648,"maximum":2147483647}`, "", []int32{math.MaxInt32}, []string{`1`}, []badSample{{`2147483648`, "v"}}),
	caseOf("uint8", `{"type":"integer","minimum":0,"maximum":255}`, "", []uint8{255}, []string{`255`, `-0`}, []badSample{{`256`, "v"}, {`-1`, "v"}}),
	caseOf("uint16", `{"type":"integer","minimum":0,"maximum":65535}`, "", []uint16{65535}, []string{`1`}, []badSample{{`65536`, "v"}}),
	caseOf("uint32", `{"type":"integer","minimum":0,"maximum":4294967295}`, "", []uint32{math.MaxUint32}, []string{`1`}, []badSample{{`4294967296`, "v"}}),
	caseOf("uint64", `{"type":"integer","minimum":0}`, "", []uint64{0, math.MaxUint64}, []string{`18446744073709551615`}, []badSample{{`-1`, "v"}, {`18446744073709551616`, "v"}}),
	caseOf("float64", `{"type":"number"}`, "", []float64{0, -1.5, 1e300, math.SmallestNonzeroFloat64}, []string{`1`, `1.5`, `1e-400`}, []badSample{{`"1"`, "v"}, {`1e309`, "v"}, {`9007199254740993`, "v"}}),
	caseOf("float32", `{"type":"number"}`, "", []float32{0.1, math.MaxFloat32}, []string{`0.1`}, []badSample{{`1e39`, "v"}, {`16777217`, "v"}}),
	caseOf("named string", `{"type":"string"}`, "", []color{"red"}, []string{`"red"`}, []badSample{{`1`, "v"}}),
	caseOf("named int", `{"type":"integer"}`, "", []grade{3}, []string{`3`}, []badSample{{`"3"`, "v"}}),

	caseOf("slice", `{"type":"array","items":{"type":"integer"}}`, "", [][]int{nil, {}, {1, 2}}, []string{`[]`, `[1,2.0]`}, []badSample{{`null`, "v"}, {`[1,"2"]`, "v.1"}, {`{}`, "v"}}),
	caseOf("slice of slices", `{"type":"array","items":{"type":"array","items":{"type":"string"}}}`, "", [][][]string{nil, {nil, {"a"}}}, []string{`[[],["a"]]`}, []badSample{{`[null]`, "v.0"}, {`[[],["a",1]]`, "v.1.1"}}),
	caseOf("slice of pointers", `{"type":"array","items":{"type":["null","integer"]}}`, "", [][]*int{{nil, orNil(1)}}, []string{`[null,1]`}, []badSample{{`["a"]`, "v.0"}}),
	caseOf("slice of structs", `{"type":"array","items":{"type":"object","properties":{"X":{"type":"integer"},"Y":{"type":"integer"}},"required":["X","Y"],"additionalProperties":false}}`, "",
		[][]point{nil, {{1, 2}}}, []string{`[{"X":1,"Y":2}]`}, []badSample{{`[{"X":1,"Y":2},{"X":1}]`, "v.1.Y"}, {`[{"X":1,"Y":2,"y":2}]`, "v.0.y"}, {`[{"X":[],"Y":2}]`, "v.0.X"}}),
	caseOf("array", `{"type":"array","items":{"type":"integer"},"minItems":2,"maxItems":2}`, "", [][2]int{{1, 2}}, []string{`[1,2]`}, []badSample{{`[1]`, "v"}, {`[1,2,3]`, "v"}}),
	caseOf("byte array", `{"type":"array","items":{"type":"integer","minimum":0,"maximum":255},"minItems":2,"maxItems":2}`, "", []flags{{1, 2}}, []string{`[1,255]`}, []badSample{{`"AQI="`, "v"}, {`[1,256]`, "v.1"}}),
	caseOf("bytes", `{"type":"string","contentEncoding":"base64"}`, "", [][]byte{nil, {}, {1, 2, 3}}, []string{`"AQID"`, `""`}, []badSample{{`[1]`, "v"}, {`"!"`, "v"}, {`"AQ"`, "v"}}),
	caseOf("map", `{"type":"object","additionalProperties":{"type":"integer"}}`, "", []map[string]int{nil, {}, {"a": 1}}, []string{`{}`, `{"a":1,"A":2}`}, []badSample{{`null`, "v"}, {`{"a":"1"}`, "v.a"}, {`[]`, "v"}}),
	caseOf("map of structs", `{"type":"object","additionalProperties":{"type":"object","properties":{"X":{"type":"integer"},"Y":{"type":"integer"}},"required":["X","Y"],"additionalProperties":false}}`, "",
		[]map[string]point{{"a": {1, 2}}}, []string{`{"a":{"X":1,"Y":2}}`}, []badSample{{`{"a":{"X":1}}`, "v.a.Y"}}),
	caseOf("map of pointers", `{"type":"object","additionalProperties":{"type":["null","integer"]}}`, "", []map[string]*int{{"a": nil}}, []string{`{"a":null}`}, []badSample{{`{"a":""}`, "v.a"}}),
	caseOf("map with integer keys", `{"type":"object","propertyNames":{"pattern":"^(0|-?[1-9][0-9]*)$"},"additionalProperties":{"type":"string"}}`, "", []map[int]string{{-1: "a", 20: "b"}}, []string{`{"0":"a"}`}, []badSample{{`{"a":"a"}`, "v.a"}, {`{"01":"a"}`, "v.01"}}),
	caseOf("map with unsigned keys", `{"type":"object","propertyNames":{"pattern":"^(0|[1-9][0-9]*)$"},"additionalProperties":{"type":"string"}}`, "", []map[uint8]string{{1: "a"}}, []string{`{"0":"a"}`}, []badSample{{`{"-1":"a"}`, "v.-1"}, {`{"256":"a"}`, "v.256"}}),
	caseOf("map with text keys", `{"type":"object","additionalProperties":{"type":"integer"}}`, "", []map[netip.Addr]int{{netip.MustParseAddr("::1"): 1}}, []string{`{"10.0.0.1":1}`}, []badSample{{`{"x":1}`, "v.x"}}).withOwnRules(),

	caseOf("any", anyJSON, "", []any{nil, "a", 1.5, []any{}, map[string]any{"a": nil}}, []string{`null`, `{"a":[1]}`}, []badSample{{absent, "v"}, {`[9007199254740993]`, "v.0"}}),
	caseOf("slice of any", `{"type":"array","items":`+anyJSON+`}`, "", [][]any{nil, {1.0, nil}}, []string{`[null,1]`}, []badSample{{`null`, "v"}}),
	caseOf("map of any", `{"type":"object","additionalProperties":`+anyJSON+`}`, "", []map[string]any{nil, {"a": nil}}, []string{`{"a":null}`}, []badSample{{`[]`, "v"}}),
	caseOf("json.RawMessage", anyJSON, "", []json.RawMessage{nil, json.RawMessage(`{"a":1}`)}, []string{`{"a":9007199254740993}`}, []badSample{{absent, "v"}}),
	caseOf("json.Number", `{"type":"number"}`, "", []json.Number{"", "1.50", "1e300"}, []string{`1.50`, `9007199254740993`}, []badSample{{`"5"`, "v"}, {`"x"`, "v"}}),
	caseOf("big.Int", `{"type":"integer"}`, "", []*big.Int{big.NewInt(5)}, []string{`123456789012345678901234567890`}, []badSample{{`1.5`, "v"}}).withOwnRules().optional(`{"type":["null","integer"]}`),

	caseOf("time.Time", `{"type":"string","format":"date-time"}`, "", []time.Time{{}, someTime, someTime.In(time.FixedZone("", -5400))}, []string{`"2026-02-03T04:05:06.7Z"`}, []badSample{{`"2026-02-03"`, "v"}, {`5`, "v"}, {`""`, "v"}}),
	caseOf("time.Duration", `{"type":"integer","description":"a duration in nanoseconds"}`, "", []time.Duration{time.Second}, []string{`1e9`}, []badSample{{`"1s"`, "v"}}),
	caseOf("netip.Addr", `{"type":"string"}`, "", []netip.Addr{netip.MustParseAddr("10.0.0.1"), {}}, []string{`"::1"`}, []badSample{{`"x"`, "v"}, {`1`, "v"}}).withOwnRules(),
	caseOf("own MarshalText of the pointer", `{"type":"string"}`, "", []ownText{{"a"}}, []string{`"a"`}, []badSample{{`"!"`, "v"}, {`{}`, "v"}}).withOwnRules(),
	caseOf("map of own MarshalText", `{"type":"object","additionalProperties":{"type":"string"}}`, "", []map[string]ownText{{"k": {"a"}}}, []string{`{"k":"a"}`}, []badSample{{`{"k":"!"}`, "v.k"}}).withOwnRules(),
	caseOf("own MarshalJSON", anyJSON, "", []ownJSON{{5}}, []string{`["own",5]`}, []badSample{{`5`, "v"}}).withOwnRules(),
	caseOf("slice of own MarshalJSON", `{"type":"array","items":`+anyJSON+`}`, "", [][]ownJSON{{{5}}}, []string{`[["own",5]]`}, []badSample{{`[["own",5],[]]`, "v.1"}}).withOwnRules(),
	caseOf("written by a method", `{"type":"object","properties":{"N":{"type":"integer"}},"required":["N"],"additionalProperties":false}`, anyJSON, []writer{{5}}, []string{`{"N":5}`}, []badSample{{`5`, "v"}}).readOnly(),
	caseOf("read by a method", `{"type":"string"}`, `{"type":"object","properties":{"N":{"type":"integer"}},"required":["N"],"additionalProperties":false}`, []reader{{5}}, []string{`"5"`}, []badSample{{`5`, "v"}, {`"five"`, "v"}}).readOnly().withOwnRules(),

	caseOf("struct", `{"type":"object","properties":{"X":{"type":"integer"},"Y":{"type":"integer"}},"required":["X","Y"],"additionalProperties":false}`, "",
		[]point{{1, 2}}, []string{`{"X":1,"Y":2}`}, []badSample{{`{}`, "v.X"}, {`{"X":1,"Y":2,"Z":3}`, "v.Z"}, {`{"x":1,"Y":2}`, "v.X"}, {`null`, "v"}}),
	caseOf("empty struct", `{"type":"object","additionalProperties":false}`, "", []struct{}{{}}, []string{`{}`}, []badSample{{`{"a":1}`, "v.a"}}),
	caseOf("generic struct", `{"type":"object","properties":{"first":{"type":"string"},"second":{"type":["null","string"]}},"required":["first"],"additionalProperties":false}`,
		`{"type":"object","properties":{"first":{"type":"string"},"second":{"type":["null","string"]}},"required":["first","second"],"additionalProperties":false}`,
		[]pair[string]{{First: "a"}, {"a", orNil("b")}}, []string{`{"first":"a"}`, `{"first":"a","second":null}`}, []badSample{{`{"first":null}`, "v.first"}}),
	caseOf("embedded struct", `{"type":"object","properties":{"id":{"type":"integer"},"note":{"type":"string"},"name":{"type":"string"}},"required":["id","name"],"additionalProperties":false}`, "",
		[]plainEmbed{{}, {common{1, "n"}, "a"}}, []string{`{"id":1,"name":"a"}`}, []badSample{{`{"common":{"id":1},"name":"a"}`, "v.common"}}),
	caseOf("embedded pointer", `{"type":"object","properties":{"id":{"type":"integer"},"name":{"type":"string"}},"required":["name"],"additionalProperties":false}`, "",
		[]pointerEmbed{{}, {&Shared{1}, "a"}}, []string{`{"name":"a"}`, `{"id":1,"name":"a"}`}, []badSample{{`{"id":null,"name":"a"}`, "v.id"}}),
	caseOf("embedded struct with a name", `{"type":"object","properties":{"shared":{"type":"object","properties":{"id":{"type":"integer"}},"required":["id"],"additionalProperties":false},"name":{"type":"string"}},"required":["shared","name"],"additionalProperties":false}`, "",
		[]namedEmbed{{Shared{1}, "a"}}, []string{`{"shared":{"id":1},"name":"a"}`}, []badSample{{`{"id":1,"name":"a"}`, "v.id"}, {`{"shared":{},"name":"a"}`, "v.shared.id"}}),
	caseOf("embedded twice, hidden", `{"type":"object","properties":{"name":{"type":"string"},"id":{"type":"string"}},"required":["name","id"],"additionalProperties":false}`, "",
		[]deepEmbed{{pointerEmbed{&Shared{1}, "a"}, "s"}}, []string{`{"name":"a","id":"s"}`}, []badSample{{`{"name":"a","id":1}`, "v.id"}}),
	caseOf("clashing embedded fields", `{"type":"object","properties":{"own":{"type":"integer"}},"required":["own"],"additionalProperties":false}`, "",
		[]clash{{left{1}, right{2}, 3}}, []string{`{"own":3}`}, []badSample{{`{"own":3,"Same":1}`, "v.Same"}}),
	caseOf("fields left out", `{"type":"object","properties":{"shown":{"type":"integer"},"Go":{"type":"string"}},"required":["shown","Go"],"additionalProperties":false}`, "",
		[]hidden{{1, 2, 0, "g"}}, []string{`{"shown":1,"Go":"g"}`}, []badSample{{`{"shown":1,"Go":"g","secret":1}`, "v.secret"}, {`{"shown":1,"Go":"g","Never":1}`, "v.Never"}}),
	caseOf("optional fields", optionalSchema(`"must"`), optionalSchema(`"pointer","list","struct","deep","any","must","time"`),
		[]optionals{{}, {Pointer: orNil(1), Both: orNil(2), Empty: 3, Zero: someTime, List: &[]string{"a"}, Struct: &point{}, Deep: orNil(orNil(1)), Time: &someTime}},
		[]string{`{"must":1}`, `{"must":1,"pointer":null,"both":null,"list":null,"struct":null,"deep":null,"any":null,"time":null}`, `{"must":1,"list":[],"struct":{"X":1,"Y":2}}`},
		[]badSample{{`{}`, "v.must"}, {`{"must":1,"empty":null}`, "v.empty"}, {`{"must":1,"struct":{"X":1}}`, "v.struct.Y"}, {`{"must":1,"list":[1]}`, "v.list.0"}}),
	caseOf("string option", quotedSchema, strings.Replace(quotedSchema, `"number"],`, `"number","maybe"],`, 1), []quoted1{{1, 2, 1.5, true, `a"b`, "1e5", orNil(7)}},
		[]string{`{"int":"-5","uint":"255","float":"-1.5e+3","bool":"false","text":"\"a\\n\"","number":"1.50","maybe":"7"}`, `{"int":"0","uint":"0","float":"0","bool":"true","text":"\"\"","number":"0","maybe":null}`},
		[]badSample{{`{"int":5,"uint":"1","float":"1","bool":"true","text":"\"\"","number":"1"}`, "v.int"}, {`{"int":"5","uint":"-1","float":"1","bool":"true","text":"\"\"","number":"1"}`, "v.uint"}}),

	caseOf("union", `{"anyOf":[`+circle+`,`+square+`]}`, "", []shape{{Kind: "circle", Radius: 1}, {Kind: "square", Side: 2}}, []string{`{"kind":"circle","radius":1}`, `{"kind":"square","side":1.5}`},
		[]badSample{{`{"kind":"circle","side":1}`, "v"}, {`{"kind":"cube"}`, "v"}, {`null`, "v"}}),
	caseOf("optional union", `{"anyOf":[{"anyOf":[`+circle+`,`+square+`]},{"type":"null"}]}`, "", []*shape{nil, {Kind: "circle", Radius: 1}}, []string{`null`, `{"kind":"circle","radius":1}`}, []badSample{{`{}`, "v"}}).optional(""),
	caseOf("list of unions", `{"type":"array","items":{"anyOf":[`+circle+`,`+square+`]}}`, "", [][]shape{nil}, []string{`[{"kind":"circle","radius":1}]`}, []badSample{{`[{"kind":"circle","radius":1},{}]`, "v.1"}}),
	caseOf("union of scalars", `{"oneOf":[{"type":"integer"},{"type":"string"},{"type":"array","items":`+anyJSON+`}]}`, "", []idOrName{{5}, {"a"}}, []string{`5`, `"a"`, `[null]`}, []badSample{{`true`, "v"}, {`{}`, "v"}}),

	caseOf("bounds", boundedSchema(`,"required":["count","ratio","name","color","level","tags"]`), boundedSchema(`,"required":["count","ratio","name","color","level","tags","maybe"]`),
		[]bounded{{2, 0.5, "ab", "red", 1, []string{"a"}, nil, "", nil}, {10, 0.9, "😀😀", "blue", 3, []string{"a", "b"}, orNil(color("red")), "a@b.example", [][]int{{9}, nil}}},
		[]string{`{"count":2,"ratio":0.5,"name":"ab","color":"red","level":1,"tags":["a"]}`, `{"count":10.0,"ratio":1e-3,"name":"😀😀😀😀","color":"green","level":3,"tags":["a","d"],"maybe":null,"mail":"a@b.example","grid":[[1,9]]}`},
		[]badSample{
			{`{"count":0,"ratio":0.5,"name":"ab","color":"red","level":1,"tags":["a"]}`, "v.count"},
			{`{"count":3,"ratio":0.5,"name":"ab","color":"red","level":1,"tags":["a"]}`, "v.count"},
			{`{"count":2,"ratio":1,"name":"ab","color":"red","level":1,"tags":["a"]}`, "v.ratio"},
			{`{"count":2,"ratio":0.5,"name":"a","color":"red","level":1,"tags":["a"]}`, "v.name"},
			{`{"count":2,"ratio":0.5,"name":"AB","color":"red","level":1,"tags":["a"]}`, "v.name"},
			{`{"count":2,"ratio":0.5,"name":"ab","color":"Red","level":1,"tags":["a"]}`, "v.color"},
			{`{"count":2,"ratio":0.5,"name":"ab","color":"red","level":4,"tags":["a"]}`, "v.level"},
			{`{"count":2,"ratio":0.5,"name":"ab","color":"red","level":1,"tags":[]}`, "v.tags"},
			{`{"count":2,"ratio":0.5,"name":"ab","color":"red","level":1,"tags":["a","a"]}`, "v.tags"},
			{`{"count":2,"ratio":0.5,"name":"ab","color":"red","level":1,"tags":["a","x"]}`, "v.tags.1"},
			{`{"count":2,"ratio":0.5,"name":"ab","color":"red","level":1,"tags":["a"],"maybe":"blue"}`, "v.maybe"},
			{`{"count":2,"ratio":0.5,"name":"ab","color":"red","level":1,"tags":["a"],"mail":"nobody"}`, "v.mail"},
			{`{"count":2,"ratio":0.5,"name":"ab","color":"red","level":1,"tags":["a"],"grid":[[10]]}`, "v.grid.0.0"},
		}),
}

const (
	circle = `{"type":"object","properties":{"kind":{"type":"string","enum":["circle"]},"radius":{"type":"number"}},"required":["kind","radius"],"additionalProperties":false}`
	square = `{"type":"object","properties":{"kind":{"type":"string","enum":["square"]},"side":{"type":"number"}},"required":["kind","side"],"additionalProperties":false}`

	quotedSchema = `{"type":"object","properties":{"int":{"type":"string","pattern":"^-?(0|[1-9][0-9]*)$"},"uint":{"type":"string","pattern":"^(0|[1-9][0-9]*)$"},` +
		`"float":{"type":"string","pattern":"^-?(0|[1-9][0-9]*)(\\.[0-9]+)?([eE][-+]?[0-9]+)?$"},"bool":{"type":"string","pattern":"^(true|false)$"},` +
		`"text":{"type":"string","pattern":"^\"([^\"\\\\\\x00-\\x1f]|\\\\([\"\\\\/bfnrt]|u[0-9a-fA-F]{4}))*\"$"},` +
		`"number":{"type":"string","pattern":"^-?(0|[1-9][0-9]*)(\\.[0-9]+)?([eE][-+]?[0-9]+)?$"},"maybe":{"type":["null","string"],"pattern":"^-?(0|[1-9][0-9]*)$"}},` +
		`"required":["int","uint","float","bool","text","number"],"additionalProperties":false}`
)

func optionalSchema(required string) string {
	return `{"type":"object","properties":{"pointer":{"type":["null","integer"]},"both":{"type":["null","integer"]},"empty":{"type":"integer"},
		"zero":{"type":"string","format":"date-time"},"list":{"type":["null","array"],"items":{"type":"string"}},
		"struct":{"type":["null","object"],"properties":{"X":{"type":"integer"},"Y":{"type":"integer"}},"required":["X","Y"],"additionalProperties":false},
		"deep":{"type":["null","integer"]},"any":` + anyJSON + `,"must":{"type":"integer"},"time":{"type":["null","string"],"format":"date-time"}},
		"required":[` + required + `],"additionalProperties":false}`
}

func boundedSchema(required string) string {
	return `{"type":"object","properties":{"count":{"type":"integer","minimum":1,"maximum":10,"multipleOf":2,"description":"how many"},
		"ratio":{"type":"number","exclusiveMinimum":0,"exclusiveMaximum":1},"name":{"type":"string","minLength":2,"maxLength":4,"pattern":"^[a-z😀]+$"},
		"color":{"type":"string","enum":["red","green","blue"]},"level":{"type":"integer","enum":[1,2,3]},
		"tags":{"type":"array","minItems":1,"maxItems":3,"uniqueItems":true,"items":{"type":"string","enum":["a","b","c","d"]}},
		"maybe":{"type":["null","string"],"enum":["red","green",null]},"mail":{"type":"string","format":"email"},
		"grid":{"type":"array","maxItems":2,"items":{"type":"array","items":{"type":"integer","maximum":9}}}}` + required + `,"additionalProperties":false}`
}

func TestTypes(t *testing.T) {
	for _, c := range typeCases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.run(t)
		})
	}
}
