package gymtest

import (
	"encoding/json"
	"hash/fnv"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/openenv-go/openenv-go/pkg/tools"
)

// maxDepth is where generated values stop nesting, as far as the schema allows.
const maxDepth = 5

// A generator makes values that fit a schema. It knows the common keywords; what it makes is checked by a validator, and
// what does not fit is thrown away.
type generator struct {
	*rand.Rand
	root     any     // the whole schema, for references
	optional float64 // the chance of a member that may be left out
}

// generate makes up to n different values that fit schema, the same ones each time for one name. The first is as small as
// the schema allows, the second has every member.
func generate(name string, schema any, n int) ([]json.RawMessage, error) {
	check, err := tools.NewValidator(schema)
	if err != nil {
		return nil, err
	}
	h := fnv.New64a()
	h.Write([]byte(name))
	g := &generator{Rand: rand.New(rand.NewPCG(h.Sum64(), 1)), root: tree(schema)}
	var out []json.RawMessage
	for try := 0; len(out) < n && try < 50*n; try++ {
		switch {
		case len(out) == 0 && try < 50:
			g.optional = 0
		case len(out) <= 1 && try < 100:
			g.optional = 1
		default:
			g.optional = 0.5
		}
		v, ok := g.value(g.root, 0)
		if !ok {
			continue
		}
		raw, err := json.Marshal(v)
		if err != nil || check.Validate(raw) != nil {
			continue
		}
		if !slices.ContainsFunc(out, func(o json.RawMessage) bool { return string(o) == string(raw) }) {
			out = append(out, raw)
		}
	}
	return out, nil
}

// tree is a schema as decoded JSON.
func tree(schema any) any {
	b, err := json.Marshal(schema)
	if err != nil {
		return nil
	}
	var v any
	_ = json.Unmarshal(b, &v)
	return v
}

// value makes a value for a schema; !ok says that the generator found none.
func (g *generator) value(schema any, depth int) (v any, ok bool) {
	s, isObject := schema.(map[string]any)
	if !isObject {
		return g.anything(), schema != false
	}
	if s = g.flat(s); s == nil || depth > 4*maxDepth {
		return nil, false
	}
	if c, ok := s["const"]; ok {
		return c, true
	}
	if enum, ok := s["enum"].([]any); ok && len(enum) > 0 {
		return pick(g, enum), true
	}
	if d, ok := s["default"]; ok && g.IntN(3) == 0 {
		return d, true
	}
	if e, ok := s["examples"].([]any); ok && len(e) > 0 && g.IntN(2) == 0 {
		return pick(g, e), true
	}
	switch g.typeOf(s) {
	case "null":
		return nil, true
	case "boolean":
		return g.IntN(2) == 0, true
	case "integer":
		return g.integer(s)
	case "number":
		return g.number(s), true
	case "string":
		return g.text(s)
	case "array":
		return g.array(s, depth)
	case "object":
		return g.object(s, depth)
	}
	return g.anything(), true
}

func pick[T any](g *generator, from []T) T { return from[g.IntN(len(from))] }

func (g *generator) anything() any {
	return pick(g, []any{"anything", 1, true, map[string]any{}, []any{}})
}

// flat puts what a schema refers to, and one of its alternatives, beside its own keywords. It is nil where a reference
// leads nowhere, or in a circle.
func (g *generator) flat(s map[string]any) map[string]any {
	for range 20 {
		switch {
		case s["$ref"] != nil:
			ref, _ := s["$ref"].(string)
			target, _ := g.resolve(ref).(map[string]any)
			if target == nil {
				return nil
			}
			s = merged(without(s, "$ref"), target)
		case s["allOf"] != nil:
			parts, _ := s["allOf"].([]any)
			s = without(s, "allOf")
			for _, p := range parts {
				if m, ok := p.(map[string]any); ok {
					s = merged(s, m)
				}
			}
		case s["anyOf"] != nil:
			s = g.alternative(s, "anyOf")
		case s["oneOf"] != nil:
			s = g.alternative(s, "oneOf")
		default:
			return s
		}
	}
	return nil
}

func (g *generator) alternative(s map[string]any, key string) map[string]any {
	branches, _ := s[key].([]any)
	s = without(s, key)
	if len(branches) == 0 {
		return s
	}
	if m, ok := pick(g, branches).(map[string]any); ok {
		return merged(s, m)
	}
	return s
}

func without(s map[string]any, key string) map[string]any {
	s = maps.Clone(s)
	delete(s, key)
	return s
}

// merged has the keywords of both, and of their properties and required members the union.
func merged(a, b map[string]any) map[string]any {
	out := maps.Clone(a)
	for k, v := range b {
		switch had := out[k].(type) {
		case map[string]any:
			if m, ok := v.(map[string]any); ok && k == "properties" {
				both := maps.Clone(had)
				maps.Copy(both, m)
				out[k] = both
				continue
			}
		case []any:
			if l, ok := v.([]any); ok && k == "required" {
				out[k] = append(slices.Clone(had), l...)
				continue
			}
		}
		out[k] = v
	}
	return out
}

func (g *generator) resolve(ref string) any {
	at, rest := g.root, strings.TrimPrefix(ref, "#")
	for p := range strings.SplitSeq(strings.TrimPrefix(rest, "/"), "/") {
		if p == "" {
			continue
		}
		m, ok := at.(map[string]any)
		if !ok {
			return nil
		}
		at = m[strings.NewReplacer("~1", "/", "~0", "~").Replace(p)]
	}
	return at
}

// keywords tell a type where a schema names none.
var keywords = []struct{ key, typ string }{
	{"properties", "object"}, {"required", "object"}, {"items", "array"}, {"prefixItems", "array"}, {"minItems", "array"},
	{"pattern", "string"}, {"format", "string"}, {"minLength", "string"}, {"maxLength", "string"},
	{"multipleOf", "number"}, {"minimum", "number"}, {"maximum", "number"},
}

func (g *generator) typeOf(s map[string]any) string {
	switch t := s["type"].(type) {
	case string:
		return t
	case []any:
		if len(t) > 0 {
			name, _ := pick(g, t).(string)
			return name
		}
	}
	for _, k := range keywords {
		if s[k.key] != nil {
			return k.typ
		}
	}
	return ""
}

func numberAt(s map[string]any, key string, otherwise float64) float64 {
	if v, ok := s[key].(float64); ok {
		return v
	}
	return otherwise
}

// exact is up to where floats hold every integer.
const exact = 1 << 53

func (g *generator) integer(s map[string]any) (any, bool) {
	lo := max(math.Ceil(numberAt(s, "minimum", -exact)), math.Floor(numberAt(s, "exclusiveMinimum", -exact-1))+1)
	hi := min(math.Floor(numberAt(s, "maximum", exact)), math.Ceil(numberAt(s, "exclusiveMaximum", exact+1))-1)
	step := numberAt(s, "multipleOf", 1)
	var fit []int64
	candidates := []float64{0, 1, 2, 3, 7, 10, -1, 42, 100, -100}
	if lo > -exact {
		candidates = append(candidates, lo, lo+1)
	}
	if hi < exact {
		candidates = append(candidates, hi, hi-1)
	}
	if hi-lo < exact {
		candidates = append(candidates, math.Floor(lo+(hi-lo)*g.Float64()), math.Floor(lo+(hi-lo)*g.Float64()))
	}
	for _, c := range candidates {
		if step > 0 {
			c = math.Ceil(c/step) * step
		}
		if c >= lo && c <= hi && c == math.Trunc(c) {
			fit = append(fit, int64(c))
		}
	}
	if len(fit) == 0 {
		return nil, false
	}
	return pick(g, fit), true
}

func (g *generator) number(s map[string]any) any {
	lo := max(numberAt(s, "minimum", math.Inf(-1)), numberAt(s, "exclusiveMinimum", math.Inf(-1)))
	hi := min(numberAt(s, "maximum", math.Inf(1)), numberAt(s, "exclusiveMaximum", math.Inf(1)))
	if math.IsInf(lo, 0) {
		lo = min(-1000, hi-1000)
	}
	if math.IsInf(hi, 0) {
		hi = max(1000, lo+1000)
	}
	v := pick(g, []float64{lo, hi, (lo + hi) / 2, lo + (hi-lo)*g.Float64(), 0, 1, 0.5})
	if v < lo || v > hi {
		v = (lo + hi) / 2
	}
	if step := numberAt(s, "multipleOf", 0); step > 0 {
		v = math.Ceil(v/step) * step
	}
	return v
}

// formats are examples of what is written as a string.
var formats = map[string][]string{
	"date-time": {"2025-01-02T03:04:05Z", "1999-12-31T23:59:59.5+01:00"},
	"date":      {"2025-01-02", "2024-02-29"},
	"time":      {"03:04:05Z", "23:59:59+01:00"},
	"duration":  {"P1D", "PT1H30M"},
	"uri":       {"https://example.com/", "https://example.com/a?b=c#d"}, "uri-reference": {"/a/b", "https://example.com/"},
	"iri": {"https://example.com/é"}, "iri-reference": {"/é"},
	"uuid":  {"123e4567-e89b-12d3-a456-426614174000", "00000000-0000-4000-8000-000000000001"},
	"email": {"ada@example.com", "a.b+c@example.org"}, "idn-email": {"ada@example.com"},
	"hostname": {"example.com"}, "idn-hostname": {"example.com"},
	"ipv4": {"192.0.2.1"}, "ipv6": {"2001:db8::1"},
	"json-pointer": {"/a/0"}, "relative-json-pointer": {"1/a"}, "regex": {"^a+$"}, "uri-template": {"/a/{b}"},
}

var words = []string{"a", "hello", "", "two words", "héllo wörld", "42", `"quoted" \ and` + "\nbroken", "🙂", strings.Repeat("long ", 100)}

func (g *generator) text(s map[string]any) (any, bool) {
	if s["contentEncoding"] == "base64" {
		return pick(g, []string{"aGVsbG8=", "", "AAEC/w=="}), true
	}
	if f, _ := s["format"].(string); len(formats[f]) > 0 {
		return pick(g, formats[f]), true
	}
	lo, hi := int(min(numberAt(s, "minLength", 0), 1<<20)), int(min(numberAt(s, "maxLength", 1<<20), 1<<20))
	if p, ok := s["pattern"].(string); ok {
		return g.match(p)
	}
	var fit []string
	for _, w := range words {
		if n := utf8.RuneCountInString(w); n >= lo && n <= hi {
			fit = append(fit, w)
		}
	}
	if len(fit) == 0 {
		return strings.Repeat("x", lo), lo <= hi
	}
	return pick(g, fit), true
}

func (g *generator) array(s map[string]any, depth int) (any, bool) {
	lo := int(numberAt(s, "minItems", 0))
	hi := int(min(numberAt(s, "maxItems", float64(lo+3)), float64(lo+3)))
	if g.optional == 0 || depth >= maxDepth {
		hi = lo
	}
	prefix, _ := s["prefixItems"].([]any)
	out := []any{}
	for n := lo + g.IntN(max(hi-lo, 0)+1); len(out) < n; {
		var item any = true
		if i, ok := s["items"]; ok {
			item = i
		}
		if len(out) < len(prefix) {
			item = prefix[len(out)]
		} else if item == false {
			break
		}
		v, ok := g.value(item, depth+1)
		if !ok {
			return nil, false
		}
		out = append(out, v)
	}
	return out, true
}

func (g *generator) object(s map[string]any, depth int) (any, bool) {
	required := map[string]bool{}
	if names, ok := s["required"].([]any); ok {
		for _, n := range names {
			name, _ := n.(string)
			required[name] = true
		}
	}
	props, _ := s["properties"].(map[string]any)
	out := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(props)) {
		if !required[name] && (depth >= maxDepth || g.Float64() >= g.optional) {
			continue
		}
		v, ok := g.value(props[name], depth+1)
		if ok {
			out[name] = v
		} else if required[name] {
			return nil, false
		}
	}
	more, isSchema := s["additionalProperties"].(map[string]any)
	need := int(numberAt(s, "minProperties", 0))
	if isSchema && more["not"] == nil && depth < maxDepth && g.Float64() < g.optional {
		need = max(need, len(out)+1+g.IntN(2))
	}
	var rest any = true
	if isSchema {
		rest = more
	}
	for _, name := range slices.Sorted(maps.Keys(required)) { // in order: the random numbers are used up one after another
		if _, ok := props[name]; !ok {
			if out[name], ok = g.value(rest, depth+1); !ok {
				return nil, false
			}
		}
	}
	for i := 0; len(out) < need && i < need; i++ {
		if v, ok := g.value(rest, depth+1); ok {
			out[string(rune('a'+i%26))] = v
		}
	}
	return out, true
}
