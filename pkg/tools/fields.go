package tools

import (
	"cmp"
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/openenv-go/openenv-go/pkg/internal/strictjson"
)

// A field is one member of a struct's JSON form. Its Index is the path from the outer struct.
type field struct {
	reflect.StructField
	name       string
	tagged     bool // the name is from the json tag
	omit       bool // omitempty or omitzero
	quoted     bool // the option string
	viaPointer bool // promoted through an embedded pointer: absent where that is nil
	secret     bool // tagged so, or promoted through an embedded struct that is
}

// jsonFields lists the members of a struct as encoding/json does: embedded structs inlined unless a tag names them, and
// of several fields with one name the least nested, or the only tagged one of these, or none.
func jsonFields(t reflect.Type, dir direction) ([]field, error) {
	if err := probe(t); err != nil {
		return nil, err
	}
	type level struct {
		t          reflect.Type
		index      []int
		viaPointer bool
		secret     bool
	}
	var all []field
	queue, seen := []level{{t: t}}, map[reflect.Type]bool{t: true}
	for len(queue) > 0 {
		l := queue[0]
		queue = queue[1:]
		for i := range l.t.NumField() {
			f, ok := parseField(l.t.Field(i))
			if !ok {
				continue
			}
			f.Index = append(slices.Clone(l.index), i)
			f.viaPointer = l.viaPointer
			secret, err := secretTag(f.Tag)
			if err != nil {
				return nil, fmt.Errorf("%s.%s: %w", l.t, f.Name, err)
			}
			f.secret = secret || l.secret
			elem, pointer := pointee(f.Type)
			if !f.Anonymous || f.tagged || elem.Kind() != reflect.Struct {
				all = append(all, f)
				continue
			}
			if dir == inward && pointer && !f.IsExported() {
				return nil, fmt.Errorf("%s: the embedded %s cannot be decoded into, since its type is not exported", t, f.Type)
			}
			if !seen[elem] {
				seen[elem] = true
				queue = append(queue, level{elem, f.Index, l.viaPointer || pointer, f.secret})
			}
		}
	}
	return dominant(all), nil
}

// parseField reads a field's json tag. Fields that do not take part are not ok.
func parseField(sf reflect.StructField) (f field, ok bool) {
	tag := sf.Tag.Get("json")
	if tag == "-" || !sf.IsExported() && !sf.Anonymous {
		return f, false
	}
	options := strings.Split(tag, ",")
	f = field{StructField: sf, name: sf.Name}
	if options[0] != "" {
		f.name, f.tagged = options[0], true
	}
	for _, o := range options[1:] {
		f.omit = f.omit || o == "omitempty" || o == "omitzero"
		f.quoted = f.quoted || o == "string"
	}
	return f, true
}

func dominant(all []field) []field {
	byName := map[string][]field{}
	for _, f := range all {
		byName[f.name] = append(byName[f.name], f)
	}
	var out []field
	for _, same := range byName {
		rank := func(f field) int {
			if f.tagged {
				return 2 * len(f.Index)
			}
			return 2*len(f.Index) + 1
		}
		slices.SortStableFunc(same, func(a, b field) int { return cmp.Compare(rank(a), rank(b)) })
		if len(same) == 1 || rank(same[0]) < rank(same[1]) {
			out = append(out, same[0])
		}
	}
	slices.SortFunc(out, func(a, b field) int { return slices.Compare(a.Index, b.Index) })
	return out
}

// probe has the decoder look at a struct type, which tells what it will never read or write: fields that conflict,
// malformed tags, embedded types that are no structs.
func probe(t reflect.Type) error {
	v := reflect.New(t).Interface()
	switch v.(type) {
	case json.Unmarshaler, encoding.TextUnmarshaler:
		return nil // its fields are not looked at
	}
	if err := strictjson.Unmarshal([]byte("{}"), v); err != nil {
		return fmt.Errorf("%s: %w", t, err)
	}
	return nil
}
