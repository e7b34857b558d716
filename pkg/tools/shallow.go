package tools

import (
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/openenv-go/openenv-go/pkg/internal/strictjson"
)

// A shallow decodes the arguments that most tools take, a struct of strings, booleans and numbers, from what the schema was
// shown: to read the text a second time is a third of [Input.Decode]. It has the index of each field, by its JSON name.
type shallow map[string]int

// shallowOf is nil where T wants more than that: the decoder that reads text then has a say.
func shallowOf(t reflect.Type) shallow {
	if t.Kind() != reflect.Struct || reflect.PointerTo(t).NumMethod() > 0 { // a method may be one that decodes
		return nil
	}
	fields, err := jsonFields(t, inward)
	if err != nil {
		return nil
	}
	s := shallow{}
	for _, f := range fields {
		if len(f.Index) > 1 || f.Anonymous || f.quoted || !predeclared(f.Type) {
			return nil
		}
		_, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if options != "" && options != "omitempty" && options != "omitzero" { // such as inline
			return nil
		}
		s[f.name] = f.Index[0]
	}
	return s
}

// predeclared reports whether t is one of the language's own types that fill knows.
func predeclared(t reflect.Type) bool {
	if t.PkgPath() != "" { // it may have methods
		return false
	}
	switch t.Kind() {
	case reflect.String, reflect.Bool, reflect.Float64,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return true
	}
	return false
}

// fill sets the fields of into, whose numbers are plain. Where it is false, something is to be read with more care, or does
// not fit, and some fields may be set.
func (s shallow) fill(into reflect.Value, v strictjson.Value) bool {
	obj, ok := v.(map[string]any)
	if s == nil || !ok {
		return false
	}
	for name, v := range obj {
		if i, ok := s[name]; ok && !set(into.Field(i), v) {
			return false
		}
	}
	return true
}

func set(field reflect.Value, v strictjson.Value) (ok bool) {
	switch v := v.(type) {
	case string:
		if ok = field.Kind() == reflect.String && utf8.ValidString(v); ok { // as nobody may have checked the input
			field.SetString(v)
		}
	case bool:
		if ok = field.Kind() == reflect.Bool; ok {
			field.SetBool(v)
		}
	case strictjson.Number:
		ok = setNumber(field, string(v))
	}
	return ok
}

func setNumber(field reflect.Value, s string) bool {
	var err error
	switch {
	case field.CanInt():
		var n int64
		n, err = strconv.ParseInt(s, 10, field.Type().Bits())
		field.SetInt(n)
	case field.CanUint():
		var n uint64
		n, err = strconv.ParseUint(s, 10, field.Type().Bits())
		field.SetUint(n)
	case field.CanFloat():
		var x float64
		x, err = strconv.ParseFloat(s, 64)
		field.SetFloat(x)
	default:
		return false
	}
	return err == nil
}
