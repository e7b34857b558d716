package tools

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/openenv-go/openenv-go/pkg/internal/strictjson"
)

// What is secret in a value: the fields that their author has tagged secret:"true". The mark is published in the schemas,
// as writeOnly for what callers send and as x-secret for what they get (writeOnly would say there that it is never sent),
// so that a mounted server's marks and an author's own are one thing.

const secretKeyword = "x-secret"

// secretMark stands in a recording where a secret was.
const secretMark = "[secret]"

// secretTag reads a field's tag.
func secretTag(tag reflect.StructTag) (bool, error) {
	text, ok := tag.Lookup("secret")
	switch {
	case !ok:
		return false, nil
	case text != "true":
		return false, fmt.Errorf(`tag secret:%q: want secret:"true", or no tag`, text)
	}
	if _, ok := tag.Lookup("default"); ok {
		return false, fmt.Errorf("tag secret:%q: a secret has no default, since that would be published", text)
	}
	return true, nil
}

func markSecret(s *jsonschema.Schema, dir direction) {
	if dir == inward {
		s.WriteOnly = true
		return
	}
	s.Extra = map[string]any{secretKeyword: true}
}

// secrets finds the marked parts of values of a schema. Safe for concurrent use.
type secrets struct {
	root  map[string]any
	any   bool            // there are marks
	names map[string]bool // of the members that the schema names
}

// newSecrets reads a schema given as any value that marshals to one, or nil for none.
func newSecrets(schema any) (*secrets, error) {
	doc, err := schemaDocument(schema)
	if err != nil {
		return nil, err
	}
	s := &secrets{any: anyMark(doc), names: map[string]bool{}}
	s.root, _ = doc.(map[string]any)
	nameMembers(doc, s.names)
	return s, nil
}

// nameMembers gathers the names of properties, at any depth.
func nameMembers(doc any, names map[string]bool) {
	switch d := doc.(type) {
	case []any:
		for _, sub := range d {
			nameMembers(sub, names)
		}
	case map[string]any:
		properties, _ := d["properties"].(map[string]any)
		for name := range properties {
			names[name] = true
		}
		for _, sub := range d {
			nameMembers(sub, names)
		}
	}
}

func anyMark(doc any) bool {
	switch d := doc.(type) {
	case []any:
		return slices.ContainsFunc(d, anyMark)
	case map[string]any:
		if marked(d) {
			return true
		}
		for _, sub := range d {
			if anyMark(sub) {
				return true
			}
		}
	}
	return false
}

func marked(schema map[string]any) bool {
	return schema["writeOnly"] == true || schema[secretKeyword] == true
}

// A redaction takes the secrets out of one value, in place.
type redaction struct {
	*secrets
	// remove leaves them out, as far as that is possible: members of objects go, anything else is null. Without it a mark
	// takes their place.
	remove bool
	// misplaced takes out, too, the marks where the schemas want a number, which a secret was that is none of the schemas'.
	misplaced bool
	texts     []string // what was taken out: strings, and numbers as they are spelled
}

// take redacts v, which must be the caller's alone, and returns it.
func (s *secrets) take(v strictjson.Value, remove bool) (strictjson.Value, []string) {
	if !s.any {
		return v, nil
	}
	r := &redaction{secrets: s, remove: remove}
	return r.of(v), r.texts
}

// empty takes all secrets and marks of them out of a recorded result, as far as its schema wants something else there, and
// reports whether there were any.
func (s *secrets) empty(v strictjson.Value) (strictjson.Value, bool) {
	r := &redaction{secrets: s, remove: true, misplaced: true}
	v = r.of(v)
	return v, len(r.texts) > 0
}

func (r *redaction) of(v strictjson.Value) strictjson.Value {
	if r.within(r.schemasAt([]any{r.root}), v) {
		return r.cover()
	}
	return v
}

// wantNumber reports schemas that speak of numbers, and not of strings.
func wantNumber(schemas []map[string]any) bool {
	types := map[string]bool{}
	for _, s := range schemas {
		list, ok := s["type"].([]any)
		if !ok {
			list = []any{s["type"]}
		}
		for _, t := range list {
			types[fmt.Sprint(t)] = true
		}
	}
	return (types["integer"] || types["number"]) && !types["string"]
}

func (r *redaction) cover() strictjson.Value {
	if r.remove {
		return nil
	}
	return secretMark
}

// within redacts the parts of v, of which schemas speak, or reports that all of it is secret.
func (r *redaction) within(schemas []map[string]any, v strictjson.Value) (all bool) {
	if slices.ContainsFunc(schemas, marked) || r.misplaced && v == secretMark && wantNumber(schemas) {
		r.note(v)
		return true
	}
	switch v := v.(type) {
	case []any:
		for i, item := range v {
			if r.within(r.schemasAt(itemSchemas(schemas, i)), item) {
				v[i] = r.cover()
			}
		}
	case map[string]any:
		for name, member := range v {
			if !r.within(r.schemasAt(memberSchemas(schemas, name)), member) {
				continue
			}
			if v[name] = r.cover(); r.remove {
				delete(v, name)
			}
		}
	}
	return false
}

// note keeps what is taken out.
func (r *redaction) note(v strictjson.Value) {
	switch v := v.(type) {
	case string:
		r.texts = append(r.texts, v)
	case strictjson.Number:
		r.texts = append(r.texts, string(v))
	case []any:
		for _, item := range v {
			r.note(item)
		}
	case map[string]any:
		for _, member := range v {
			r.note(member)
		}
	}
}

// alternatives are keywords with schemas of the same value. Which of them holds is not asked: what may be secret is.
var alternatives = []string{"allOf", "anyOf", "oneOf", "if", "then", "else"}

// schemasAt are all schemas that speak of a value which those given speak of: they, what they refer to, and alternatives.
func (s *secrets) schemasAt(given []any) (all []map[string]any) {
	seen := map[uintptr]bool{}
	for len(given) > 0 {
		schema, ok := given[0].(map[string]any)
		given = given[1:]
		at := reflect.ValueOf(schema).Pointer()
		if !ok || seen[at] {
			continue
		}
		seen[at] = true
		all = append(all, schema)
		for _, keyword := range alternatives {
			if list, ok := schema[keyword].([]any); ok {
				given = append(given, list...)
			} else {
				given = append(given, schema[keyword])
			}
		}
		dependent, _ := schema["dependentSchemas"].(map[string]any)
		given = slices.AppendSeq(given, maps.Values(dependent))
		for _, keyword := range []string{"$ref", "$dynamicRef"} {
			if ref, ok := schema[keyword].(string); ok {
				given = append(given, s.resolve(ref))
			}
		}
	}
	return all
}

// resolve follows a reference within the document. What one of another form refers to is taken for a secret.
func (s *secrets) resolve(ref string) any {
	unknown := map[string]any{secretKeyword: true}
	path, ok := strings.CutPrefix(ref, "#")
	if !ok {
		return unknown
	}
	if path == "" {
		return s.root
	}
	if path, ok = strings.CutPrefix(path, "/"); !ok {
		return unknown
	}
	var at any = s.root
	for step := range strings.SplitSeq(path, "/") {
		step = strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
		switch c := at.(type) {
		case map[string]any:
			at = c[step]
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(c) {
				return unknown
			}
			at = c[i]
		default:
			return unknown
		}
	}
	if at == nil {
		return unknown
	}
	return at
}

// memberSchemas are the schemas of the member name of objects of schemas.
func memberSchemas(schemas []map[string]any, name string) (all []any) {
	for _, s := range schemas {
		known := false
		if properties, ok := s["properties"].(map[string]any); ok && properties[name] != nil {
			all, known = append(all, properties[name]), true
		}
		patterns, _ := s["patternProperties"].(map[string]any)
		for pattern, sub := range patterns {
			if re, err := regexp.Compile(pattern); err != nil || re.MatchString(name) {
				all, known = append(all, sub), true
			}
		}
		if !known {
			all = append(all, s["additionalProperties"], s["unevaluatedProperties"])
		}
	}
	return all
}

// itemSchemas are the schemas of item i of lists of schemas.
func itemSchemas(schemas []map[string]any, i int) (all []any) {
	for _, s := range schemas {
		if prefix, ok := s["prefixItems"].([]any); ok && i < len(prefix) {
			all = append(all, prefix[i])
		} else {
			all = append(all, s["items"], s["unevaluatedItems"])
		}
		all = append(all, s["contains"])
	}
	return all
}

// shortSecret is the length below which a secret is not looked for inside other values: it would be found in all of them.
const shortSecret = 4

// scrub takes secrets out of what repeats them: the strings and numbers of v, which must be the caller's alone, and its
// names, save those to keep, which a schema has made public.
func scrub(v strictjson.Value, texts []string, keep map[string]bool) strictjson.Value {
	if len(texts) == 0 {
		return v
	}
	switch v := v.(type) {
	case string:
		for _, text := range texts {
			if len(text) >= shortSecret {
				v = strings.ReplaceAll(v, text, secretMark)
			} else if v == text && text != "" {
				return secretMark
			}
		}
		return v
	case strictjson.Number:
		if isSecret(v, texts) {
			return secretMark
		}
	case []any:
		for i, item := range v {
			v[i] = scrub(item, texts, keep)
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			member := scrub(v[name], texts, keep)
			clean := name
			if !keep[name] {
				clean, _ = scrub(name, texts, keep).(string)
			}
			if clean != name {
				delete(v, name)
				clean = unused(v, clean)
			}
			v[clean] = member
		}
	}
	return v
}

// unused makes a name that is not taken.
func unused(v map[string]any, name string) string {
	for i, try := 2, name; ; i++ {
		if _, taken := v[try]; !taken {
			return try
		}
		try = name + " " + strconv.Itoa(i)
	}
}

// scrubMessage is scrub for words to people, where a short secret is looked for too.
func scrubMessage(message string, texts []string) string {
	for _, text := range texts {
		if text != "" {
			message = strings.ReplaceAll(message, text, secretMark)
		}
	}
	return message
}

// redactJSON redacts a text, of which secrets speak, and what it repeats of other secrets. all are those to look for in what
// is said beside it.
func redactJSON(s *secrets, raw []byte, m *memory, texts []string) (clean json.RawMessage, all []string, err error) {
	if !s.any && len(texts) == 0 && len(m.kept) == 0 {
		return raw, nil, nil
	}
	v, _, err := strictjson.Parse(raw)
	if err != nil {
		return nil, nil, err
	}
	v, own := s.take(v, false)
	all = m.with(slices.Concat(texts, own))
	clean, err = strictjson.Marshal(scrub(v, all, s.names))
	return clean, all, err
}

// opaque are members of MCP's content that are no words: kinds, and what would not be base64 any more.
var opaque = map[string]bool{"type": true, "mimeType": true, "data": true, "blob": true, "role": true, "audience": true}

// scrubContent is scrub for what MCP gives its names: content and _meta. A number is left out, since a mark would be none.
func scrubContent(v strictjson.Value, texts []string) strictjson.Value {
	switch v := v.(type) {
	case []any:
		for i, item := range v {
			v[i] = scrubContent(item, texts)
		}
	case map[string]any:
		for name, member := range v {
			if n, ok := member.(strictjson.Number); ok && isSecret(n, texts) {
				delete(v, name)
			} else if !opaque[name] {
				v[name] = scrubContent(member, texts)
			}
		}
	case string, strictjson.Number:
		return scrub(v, texts, nil)
	}
	return v
}
