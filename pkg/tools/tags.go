package tools

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/openenv-go/openenv-go/pkg/internal/strictjson"
)

// applyTags sets the keywords that a field's tags name on its schema, and reports whether there were any. A keyword
// about the items of a list goes to the list, one about a value to the items. A tag that says nothing about values of
// the field's type is an error: it would look like a rule and hold nothing.
func applyTags(tag reflect.StructTag, s *jsonschema.Schema) (tagged bool, err error) {
	value := s
	for value.Items != nil {
		value = value.Items
	}
	for _, k := range keywords {
		text, ok := tag.Lookup(k.name)
		if !ok {
			continue
		}
		target := value
		if k.list {
			target = s
		}
		typ := typeOf(target)
		if typ != "" && !slices.Contains(k.types, typ) {
			return false, fmt.Errorf("tag %s:%q: it is for %s, not for %s", k.name, text, strings.Join(k.types, " and "), typ)
		}
		if err := k.set(target, text); err != nil {
			return false, fmt.Errorf("tag %s:%q: %w", k.name, text, err)
		}
		tagged = true
	}
	return tagged, errors.Join(
		ordered("minimum", value.Minimum, "maximum", value.Maximum),
		ordered("minLength", value.MinLength, "maxLength", value.MaxLength),
		ordered("minItems", s.MinItems, "maxItems", s.MaxItems),
	)
}

func ordered[T int | float64](low string, lo *T, high string, hi *T) error {
	if lo != nil && hi != nil && *lo > *hi {
		return fmt.Errorf("%s %v is above %s %v", low, *lo, high, *hi)
	}
	return nil
}

var (
	numeric = []string{"integer", "number"}
	strs    = []string{"string"}
	lists   = []string{"array"}
	scalars = []string{"string", "integer", "number", "boolean"}
)

var keywords = []struct {
	name  string
	list  bool
	types []string
	set   func(*jsonschema.Schema, string) error
}{
	{"minimum", false, numeric, float(func(s *jsonschema.Schema) **float64 { return &s.Minimum })},
	{"maximum", false, numeric, float(func(s *jsonschema.Schema) **float64 { return &s.Maximum })},
	{"exclusiveMinimum", false, numeric, float(func(s *jsonschema.Schema) **float64 { return &s.ExclusiveMinimum })},
	{"exclusiveMaximum", false, numeric, float(func(s *jsonschema.Schema) **float64 { return &s.ExclusiveMaximum })},
	{"multipleOf", false, numeric, setMultipleOf},
	{"minLength", false, strs, length(func(s *jsonschema.Schema) **int { return &s.MinLength })},
	{"maxLength", false, strs, length(func(s *jsonschema.Schema) **int { return &s.MaxLength })},
	{"pattern", false, strs, setPattern},
	{"format", false, scalars, func(s *jsonschema.Schema, text string) error { s.Format = text; return nil }},
	{"minItems", true, lists, length(func(s *jsonschema.Schema) **int { return &s.MinItems })},
	{"maxItems", true, lists, length(func(s *jsonschema.Schema) **int { return &s.MaxItems })},
	{"uniqueItems", true, lists, func(s *jsonschema.Schema, text string) (err error) {
		s.UniqueItems, err = strconv.ParseBool(text)
		return err
	}},
	{"enum", false, scalars, setEnum}, // last, so that its values are held to the others
}

func float(field func(*jsonschema.Schema) **float64) func(*jsonschema.Schema, string) error {
	return func(s *jsonschema.Schema, text string) error {
		v, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
			return errors.New("want a number")
		}
		*field(s) = &v
		return nil
	}
}

func length(field func(*jsonschema.Schema) **int) func(*jsonschema.Schema, string) error {
	return func(s *jsonschema.Schema, text string) error {
		v, err := strconv.Atoi(text)
		if err != nil || v < 0 {
			return errors.New("want a number of at least 0, without fraction")
		}
		*field(s) = &v
		return nil
	}
}

func setMultipleOf(s *jsonschema.Schema, text string) error {
	if err := float(func(s *jsonschema.Schema) **float64 { return &s.MultipleOf })(s, text); err != nil || *s.MultipleOf <= 0 {
		return errors.New("want a number above 0")
	}
	return nil
}

func setPattern(s *jsonschema.Schema, text string) error {
	_, err := regexp.Compile(text)
	s.Pattern = text
	return err
}

func setEnum(s *jsonschema.Schema, text string) error {
	var values []any
	for item := range strings.SplitSeq(text, ",") {
		raw, err := literal(s, strings.TrimSpace(item))
		if err != nil {
			return err
		}
		var v any
		if err := strictjson.Unmarshal(raw, &v); err != nil {
			v = json.Number(raw) // an integer that no float holds
		}
		values = append(values, v)
	}
	if slices.Contains(s.Types, "null") {
		values = append(values, nil)
	}
	s.Enum = values
	return nil
}

// applyDefault sets the default that a field's tag gives on outer, the field's schema; inner is the same without null.
func applyDefault(tag reflect.StructTag, inner, outer *jsonschema.Schema) (defaulted bool, err error) {
	text, ok := tag.Lookup("default")
	if !ok {
		return false, nil
	}
	if outer.Default, err = literal(inner, text); err != nil {
		return false, fmt.Errorf("tag default:%q: %w", text, err)
	}
	return true, nil
}

// literal reads a tag's text as a value that fits the schema: bare for strings, JSON for everything else.
func literal(s *jsonschema.Schema, text string) (json.RawMessage, error) {
	raw := []byte(text)
	if typ := typeOf(s); typ == "string" {
		var err error
		if raw, err = strictjson.Marshal(text); err != nil {
			return nil, err
		}
	} else if strictjson.Check(raw, strictjson.DefaultMaxDepth) != nil {
		if typ == "" {
			typ = "value"
		}
		return nil, fmt.Errorf("%q is not JSON; want a JSON %s", text, typ)
	}
	if refersToItself(s) || s.Ref != "" {
		return raw, nil // its definitions are not at hand; the decoder sees to it
	}
	check, err := newValidator(s)
	if err != nil {
		return nil, err
	}
	value, _, err := strictjson.Parse(raw)
	if err != nil {
		return nil, err
	}
	if err := check.validate(value); err != nil {
		return nil, fmt.Errorf("%s: %w", raw, err)
	}
	return raw, nil
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
