package tools

import (
	"encoding/json"
	"maps"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/openenv-go/openenv-go/pkg/internal/strictjson"
)

// A rule is a schema made of the common keywords only: all that is derived from Go types, and most of what people write.
// It is many times faster than the validator that takes every schema, and an input with a million faults costs it no
// more than one with twenty. Both give the same verdict; a test holds that.
type rule struct {
	types  []string // nil: any
	enum   []any    // strings, numbers, booleans, null
	isEnum bool
	never  bool // the schema false

	minimum, maximum, above, below *bound
	multipleOf                     *big.Rat

	minLength, maxLength *int
	pattern              *regexp.Regexp
	rest                 *jsonschema.Schema // keywords that look at one value and are left to the validator

	items              *rule
	minItems, maxItems *int

	members  map[string]*rule
	required []string
	others   *rule // nil: anything
}

// annotations are keywords that say nothing about validity.
var annotations = []string{
	"title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "$comment", "contentEncoding", "contentMediaType",
}

// newRule compiles a schema that has passed the validator's check of schemas. ok is false if it has other keywords.
func newRule(doc any) (r *rule, ok bool) {
	if is, ok := doc.(bool); ok {
		return &rule{never: !is}, true
	}
	obj, ok := doc.(map[string]any)
	if !ok {
		return nil, false
	}
	r = &rule{}
	rest := map[string]any{}
	for name, v := range obj {
		if !r.keyword(name, v, rest) {
			return nil, false
		}
	}
	if len(rest) > 0 {
		v, err := compile(rest)
		if err != nil {
			return nil, false
		}
		r.rest = v
	}
	return r, true
}

// keyword reads one keyword. Shapes need no check: the validator has compiled the same schema.
func (r *rule) keyword(name string, v any, rest map[string]any) (ok bool) {
	list, _ := v.([]any)
	text, _ := v.(string)
	n, _ := v.(json.Number)
	switch name {
	case "type":
		if list == nil {
			list = []any{text}
		}
		r.types = stringsOf(list)
	case "enum":
		for _, item := range list {
			switch item.(type) {
			case []any, map[string]any:
				return false
			}
		}
		r.enum, r.isEnum = list, true
	case "minimum":
		r.minimum = newBound(n)
	case "maximum":
		r.maximum = newBound(n)
	case "exclusiveMinimum":
		r.above = newBound(n)
	case "exclusiveMaximum":
		r.below = newBound(n)
	case "multipleOf":
		r.multipleOf = newBound(n).exact
	case "minLength":
		r.minLength = count(n)
	case "maxLength":
		r.maxLength = count(n)
	case "minItems":
		r.minItems = count(n)
	case "maxItems":
		r.maxItems = count(n)
	case "pattern":
		var err error
		r.pattern, err = regexp.Compile(text)
		return err == nil
	case "format", "uniqueItems", "minProperties", "maxProperties":
		rest[name] = v
	case "items":
		r.items, ok = newRule(v)
		return ok
	case "additionalProperties":
		r.others, ok = newRule(v)
		return ok
	case "required":
		r.required = stringsOf(list)
	case "properties":
		r.members = map[string]*rule{}
		for member, sub := range v.(map[string]any) {
			if r.members[member], ok = newRule(sub); !ok {
				return false
			}
		}
	default:
		return slices.Contains(annotations, name) || strings.HasPrefix(name, "x-")
	}
	return true
}

func stringsOf(list []any) []string {
	out := make([]string, len(list))
	for i, v := range list {
		out[i], _ = v.(string)
	}
	return out
}

func count(n json.Number) *int {
	f, _ := n.Float64()
	i := int(f)
	return &i
}

// A bound is a number that others are compared with.
type bound struct {
	text  json.Number
	near  float64
	exact *big.Rat
}

func newBound(n json.Number) *bound {
	f, _ := n.Float64()
	return &bound{text: n, near: f, exact: rat(n)}
}

// compare gives the sign of n - b. Rounding keeps order, so that floats decide unless they are equal.
func (b *bound) compare(n json.Number) int {
	f, _ := strconv.ParseFloat(string(n), 64)
	switch {
	case f < b.near:
		return -1
	case f > b.near:
		return 1
	case n == b.text:
		return 0
	}
	return rat(n).Cmp(b.exact)
}

// rat is a number's exact value. [strictjson.Parse] has bounded its size.
func rat(n json.Number) *big.Rat {
	r, ok := new(big.Rat).SetString(string(n))
	if !ok {
		return new(big.Rat)
	}
	return r
}

func typeOfValue(v strictjson.Value) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case json.Number:
		return "number"
	case []any:
		return "array"
	}
	return "object"
}

// fault is what is wrong with v itself, whatever its items and members are, or nil.
func (r *rule) fault(v strictjson.Value) jsonschema.ErrorKind {
	if r.never {
		return &kind.FalseSchema{}
	}
	if r.types != nil {
		got := typeOfValue(v)
		n, _ := v.(json.Number)
		if !slices.Contains(r.types, got) && !(got == "number" && slices.Contains(r.types, "integer") && strictjson.IsInteger(n)) {
			return &kind.Type{Got: got, Want: r.types}
		}
	}
	if r.isEnum && !slices.ContainsFunc(r.enum, func(e any) bool { return sameScalar(e, v) }) {
		return &kind.Enum{Got: v, Want: r.enum}
	}
	if r.rest != nil {
		if err := r.rest.Validate(v); err != nil {
			return firstKind(err)
		}
	}
	switch v := v.(type) {
	case json.Number:
		return r.numberFault(v)
	case string:
		return r.stringFault(v)
	case []any:
		switch {
		case r.minItems != nil && len(v) < *r.minItems:
			return &kind.MinItems{Got: len(v), Want: *r.minItems}
		case r.maxItems != nil && len(v) > *r.maxItems:
			return &kind.MaxItems{Got: len(v), Want: *r.maxItems}
		}
	}
	return nil
}

func (r *rule) numberFault(n json.Number) jsonschema.ErrorKind {
	switch {
	case r.minimum != nil && r.minimum.compare(n) < 0:
		return &kind.Minimum{Want: r.minimum.exact}
	case r.maximum != nil && r.maximum.compare(n) > 0:
		return &kind.Maximum{Want: r.maximum.exact}
	case r.above != nil && r.above.compare(n) <= 0:
		return &kind.ExclusiveMinimum{Want: r.above.exact}
	case r.below != nil && r.below.compare(n) >= 0:
		return &kind.ExclusiveMaximum{Want: r.below.exact}
	case r.multipleOf != nil && !new(big.Rat).Quo(rat(n), r.multipleOf).IsInt():
		return &kind.MultipleOf{Want: r.multipleOf}
	}
	return nil
}

func (r *rule) stringFault(s string) jsonschema.ErrorKind {
	if r.minLength != nil || r.maxLength != nil {
		n := utf8.RuneCountInString(s)
		switch {
		case r.minLength != nil && n < *r.minLength:
			return &kind.MinLength{Got: n, Want: *r.minLength}
		case r.maxLength != nil && n > *r.maxLength:
			return &kind.MaxLength{Got: n, Want: *r.maxLength}
		}
	}
	if r.pattern != nil && !r.pattern.MatchString(s) {
		return &kind.Pattern{Want: r.pattern.String()}
	}
	return nil
}

func sameScalar(a, b any) bool {
	switch a := a.(type) {
	case json.Number:
		n, ok := b.(json.Number)
		return ok && (a == n || rat(a).Cmp(rat(n)) == 0)
	default:
		switch b.(type) {
		case []any, map[string]any:
			return false
		}
		return a == b
	}
}

// member is the rule for an object's member, or nil.
func (r *rule) member(name string) *rule {
	if m := r.members[name]; m != nil {
		return m
	}
	return r.others
}

func (r *rule) accepts(v strictjson.Value) bool {
	if r.fault(v) != nil {
		return false
	}
	switch v := v.(type) {
	case []any:
		if r.items == nil {
			return true
		}
		for _, item := range v {
			if !r.items.accepts(item) {
				return false
			}
		}
	case map[string]any:
		for _, name := range r.required {
			if _, ok := v[name]; !ok {
				return false
			}
		}
		for name, value := range v {
			if m := r.member(name); m != nil && !m.accepts(value) {
				return false
			}
		}
	}
	return true
}

// report adds v's faults to out, in the order of their places, until there are enough of them.
func (r *rule) report(v strictjson.Value, loc []any, out *faults) {
	if out.full() {
		return
	}
	if k := r.fault(v); k != nil {
		out.add(loc, v, k)
		switch k.(type) {
		case *kind.FalseSchema, *kind.Type, *kind.Enum, *kind.Format:
			return // what is inside was meant for something else
		}
	}
	switch v := v.(type) {
	case []any:
		for i, item := range v {
			if r.items == nil || out.full() {
				return
			}
			r.items.report(item, append(loc, i), out)
		}
	case map[string]any:
		names := slices.Collect(maps.Keys(v))
		for _, name := range r.required {
			if _, ok := v[name]; !ok {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		for _, name := range names {
			m := r.member(name)
			value, present := v[name]
			switch {
			case out.full():
				return
			case !present:
				out.missing(loc, name, v)
			case m != nil && m.never && m == r.others:
				out.unknown(append(loc, name), value)
			case m != nil:
				m.report(value, append(loc, name), out)
			}
		}
	}
}
