package tools

import (
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/openenv-go/openenv-go/pkg/internal/strictjson"
)

// faults gathers what is wrong with an input, up to [MaxFieldErrors].
type faults struct{ fields []FieldError }

func (f *faults) full() bool { return len(f.fields) >= MaxFieldErrors }

func (f *faults) add(loc []any, input strictjson.Value, k jsonschema.ErrorKind) {
	typ, msg := describe(k)
	f.put(FieldError{Type: typ, Loc: loc, Msg: msg, Input: input})
}

// missing adds a required member that the object at loc lacks. The input shown is the object.
func (f *faults) missing(loc []any, name string, object strictjson.Value) {
	f.put(FieldError{Type: "missing", Loc: append(slices.Clip(loc), name), Msg: "field required", Input: object})
}

func (f *faults) unknown(loc []any, input strictjson.Value) {
	f.put(FieldError{Type: "extra_forbidden", Loc: loc, Msg: "unknown field", Input: input})
}

// put takes a copy of what it is given, shortened.
func (f *faults) put(e FieldError) {
	if !f.full() {
		f.fields = append(f.fields, shortened(e))
	}
}

// Bounds of what an error repeats, in bytes: an input's JSON, a member's name in a path, and the message.
const (
	maxShownInput   = 200
	maxShownName    = 100
	maxShownMessage = 1000
)

func shortened(e FieldError) FieldError {
	e.Input = shorten(e.Input)
	e.Msg = cut(e.Msg, maxShownMessage)
	loc := make([]any, len(e.Loc))
	for i, step := range e.Loc {
		if name, ok := step.(string); ok {
			step = cut(name, maxShownName)
		}
		loc[i] = step
	}
	e.Loc = loc
	return e
}

// cut shortens a string to about n bytes.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}

// shorten cuts a string or a number, and replaces a longer list or object by an ellipsis.
func shorten(v strictjson.Value) any {
	switch c := v.(type) {
	case string:
		return cut(c, maxShownInput)
	case strictjson.Number:
		if len(c) > maxShownInput {
			return cut(string(c), maxShownInput)
		}
	case []any, map[string]any:
		if !shorterThan(v, maxShownInput, new(int)) {
			return "…"
		}
	}
	return v
}

// shorterThan reports whether v's JSON has about limit bytes at most. It looks at no more of v than that: an error may
// repeat the same large object twenty times.
func shorterThan(v strictjson.Value, limit int, size *int) bool {
	switch c := v.(type) {
	case string:
		*size += len(c) + 2
	case strictjson.Number:
		*size += len(c)
	case []any:
		*size += 2
		for _, item := range c {
			if *size++; !shorterThan(item, limit, size) {
				return false
			}
		}
	case map[string]any:
		*size += 2
		for name, item := range c {
			if *size += len(name) + 4; !shorterThan(item, limit, size) {
				return false
			}
		}
	default:
		*size += 4
	}
	return *size <= limit
}

// unreadable is the fault of an input that [strictjson.Parse] refuses.
func unreadable(err error) error {
	fe := FieldError{Type: "json_invalid", Loc: []any{}, Msg: err.Error()}
	if n, ok := err.(*strictjson.NumberError); ok {
		fe.Type, fe.Loc, fe.Input = "finite_number", n.Loc, n.Number
		fe.Msg = fmt.Sprintf("%s is out of the range of a 64-bit float", n.Number)
	}
	return &InputError{Fields: []FieldError{shortened(fe)}}
}
