package tools

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// applyTags sets the keywords that a field's tags name on its schema. A keyword about items of a list goes to the list,
// one about a value to the items. optional reports whether the field has a default.
func applyTags(f reflect.StructField, s *jsonschema.Schema) (optional bool, err error) {
	value := s // what enum and the bounds of values are about
	for value.Items != nil {
		value = value.Items
	}
	for _, k := range keywords {
		text, ok := f.Tag.Lookup(k.name)
		if !ok {
			continue
		}
		target := value
		if k.list {
			target = s
		}
		if err := k.set(target, text); err != nil {
			return false, fmt.Errorf("tag %s:%q: %w", k.name, text, err)
		}
	}
	if text, ok := f.Tag.Lookup("default"); ok {
		v, err := literal(s, text)
		if err != nil {
			return false, fmt.Errorf("tag default:%q: %w", text, err)
		}
		s.Default = v
		return true, nil
	}
	return false, nil
}

var keywords = []struct {
	name string
	list bool
	set  func(*jsonschema.Schema, string) error
}{
	{"enum", false, setEnum},
	{"minimum", false, float(func(s *jsonschema.Schema) **float64 { return &s.Minimum })},
	{"maximum", false, float(func(s *jsonschema.Schema) **float64 { return &s.Maximum })},
	{"exclusiveMinimum", false, float(func(s *jsonschema.Schema) **float64 { return &s.ExclusiveMinimum })},
	{"exclusiveMaximum", false, float(func(s *jsonschema.Schema) **float64 { return &s.ExclusiveMaximum })},
	{"multipleOf", false, float(func(s *jsonschema.Schema) **float64 { return &s.MultipleOf })},
	{"minLength", false, integer(func(s *jsonschema.Schema) **int { return &s.MinLength })},
	{"maxLength", false, integer(func(s *jsonschema.Schema) **int { return &s.MaxLength })},
	{"minItems", true, integer(func(s *jsonschema.Schema) **int { return &s.MinItems })},
	{"maxItems", true, integer(func(s *jsonschema.Schema) **int { return &s.MaxItems })},
	{"uniqueItems", true, func(s *jsonschema.Schema, text string) (err error) {
		s.UniqueItems, err = strconv.ParseBool(text)
		return err
	}},
	{"pattern", false, func(s *jsonschema.Schema, text string) error { s.Pattern = text; return nil }},
	{"format", false, func(s *jsonschema.Schema, text string) error { s.Format = text; return nil }},
}

func float(field func(*jsonschema.Schema) **float64) func(*jsonschema.Schema, string) error {
	return func(s *jsonschema.Schema, text string) error {
		v, err := strconv.ParseFloat(text, 64)
		*field(s) = &v
		return err
	}
}

func integer(field func(*jsonschema.Schema) **int) func(*jsonschema.Schema, string) error {
	return func(s *jsonschema.Schema, text string) error {
		v, err := strconv.Atoi(text)
		*field(s) = &v
		return err
	}
}

func setEnum(s *jsonschema.Schema, text string) error {
	for item := range strings.SplitSeq(text, ",") {
		raw, err := literal(s, strings.TrimSpace(item))
		if err != nil {
			return err
		}
		var v any
		if err := json.Unmarshal(raw, &v); err != nil {
			return err
		}
		s.Enum = append(s.Enum, v)
	}
	if nullable(s) {
		s.Enum = append(s.Enum, nil)
	}
	return nil
}

// literal reads a tag's text as a value of the schema's type: bare for strings, JSON for everything else.
func literal(s *jsonschema.Schema, text string) (json.RawMessage, error) {
	if typeOf(s) == "string" {
		return json.Marshal(text)
	}
	if !json.Valid([]byte(text)) {
		return nil, fmt.Errorf("want a JSON %s", typeOf(s))
	}
	return json.RawMessage(text), nil
}

// typeOf is a schema's one type beside null.
func typeOf(s *jsonschema.Schema) string {
	for _, t := range s.Types {
		if t != "null" {
			return t
		}
	}
	return s.Type
}

func nullable(s *jsonschema.Schema) bool {
	for _, t := range s.Types {
		if t == "null" {
			return true
		}
	}
	return false
}
