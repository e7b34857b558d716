package tools

import (
	"bytes"
	"maps"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/openenv-go/openenv-go/pkg/internal/strictjson"
)

// defaults adds to an input what it leaves out and its schema has a default for, before the input is decoded. It could
// not be done to the Go value: decoding merges what was sent into what is there, list by list and map by map.
type defaults struct {
	members []memberDefault
	within  *defaults // for each item of a list, or each other member of a map
}

type memberDefault struct {
	name   string
	absent strictjson.Value // what to add when the member is absent, if it has a default
	text   []byte           // the same as "name":value, or nil
	plain  bool             // it has plain numbers only
	within *defaults        // for the member's own members
}

// newDefaults gathers the defaults of a schema and of those below its properties and items. It returns nil for none.
// derived says that its objects with properties are structs in Go.
func newDefaults(s *jsonschema.Schema, derived bool) (*defaults, error) {
	d := &defaults{}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		m := memberDefault{name: name}
		p := s.Properties[name]
		var err error
		if m.within, err = newDefaults(p, derived); err != nil {
			return nil, err
		}
		raw := []byte(p.Default)
		if raw == nil && derived && m.within != nil && m.within.members != nil && p.Type == "object" && !slices.Contains(s.Required, name) {
			raw = []byte(`{}`) // an absent struct is there all the same, so its own defaults are too
		}
		if raw != nil {
			if m.absent, m.plain, err = strictjson.Parse(raw); err != nil {
				return nil, err
			}
			m.within.fill(m.absent)
			if m.text, err = strictjson.Marshal(map[string]strictjson.Value{name: m.absent}); err != nil {
				return nil, err
			}
			m.text = bytes.TrimSuffix(bytes.TrimPrefix(m.text, []byte("{")), []byte("}"))
		}
		if m.text != nil || m.within != nil {
			d.members = append(d.members, m)
		}
	}
	for _, sub := range []*jsonschema.Schema{s.Items, s.AdditionalProperties} {
		if sub == nil {
			continue
		}
		within, err := newDefaults(sub, derived)
		if err != nil {
			return nil, err
		}
		if within != nil {
			d.within = within
		}
	}
	if d.members == nil && d.within == nil {
		return nil, nil
	}
	return d, nil
}

// apply completes an input, given as JSON and parsed. It returns the JSON to decode, and keeps plain, which says whether
// its numbers are.
func (d *defaults) apply(raw []byte, v strictjson.Value, plain *bool) ([]byte, error) {
	obj, ok := v.(map[string]any)
	if d == nil || !ok {
		return raw, nil
	}
	// The common case, members missing at the top, needs no second encoding of the rest.
	end := bytes.LastIndexByte(raw, '}')
	if end < 0 || d.below(obj) {
		d.fill(obj)
		*plain = false
		return strictjson.Marshal(obj)
	}
	var out []byte
	for _, m := range d.members {
		if _, present := obj[m.name]; present || m.text == nil {
			continue
		}
		if out == nil {
			out = append(make([]byte, 0, len(raw)+64), raw[:end]...)
		}
		if len(obj) > 0 {
			out = append(out, ',')
		}
		out = append(out, m.text...)
		obj[m.name] = m.absent
		*plain = *plain && m.plain
	}
	if out == nil {
		return raw, nil
	}
	return append(out, '}'), nil
}

// below reports whether anything is missing below the members of obj.
func (d *defaults) below(obj map[string]any) bool {
	for _, m := range d.members {
		if v, present := obj[m.name]; present && m.within.missing(v) {
			return true
		}
	}
	return d.within != nil && d.others(obj, d.within.missing)
}

// others asks ask of the members of obj that d does not name, until it says yes.
func (d *defaults) others(obj map[string]any, ask func(strictjson.Value) bool) bool {
	for name, v := range obj {
		known := slices.ContainsFunc(d.members, func(m memberDefault) bool { return m.name == name })
		if !known && ask(v) {
			return true
		}
	}
	return false
}

// missing reports whether fill would change v.
func (d *defaults) missing(v strictjson.Value) bool {
	if d == nil {
		return false
	}
	switch v := v.(type) {
	case []any:
		return d.within != nil && slices.ContainsFunc(v, d.within.missing)
	case map[string]any:
		for _, m := range d.members {
			if _, present := v[m.name]; !present && m.text != nil {
				return true
			}
		}
		return d.below(v)
	}
	return false
}

// fill adds what is missing in v and below.
func (d *defaults) fill(v strictjson.Value) {
	if d == nil {
		return
	}
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			d.within.fill(item)
		}
	case map[string]any:
		for _, m := range d.members {
			if member, present := v[m.name]; present {
				m.within.fill(member)
			} else if m.text != nil {
				v[m.name] = m.absent
			}
		}
		if d.within != nil {
			d.others(v, func(member strictjson.Value) bool { d.within.fill(member); return false })
		}
	}
}
