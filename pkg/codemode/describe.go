package codemode

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"go.starlark.net/starlark"

	"github.com/openenv-go/openenv-go/pkg/codemode/internal/fault"
	"github.com/openenv-go/openenv-go/pkg/codemode/internal/library"
	"github.com/openenv-go/openenv-go/pkg/internal/strictjson"
)

// listTools is list_tools(): the tools as dicts.
func (r *run) listTools(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	if len(args)+len(kwargs) > 0 {
		return nil, fault.New("TypeError", "list_tools takes no arguments").Hinted("help(f) describes one tool")
	}
	var all []starlark.Value
	for _, t := range r.tools.all {
		d := starlark.NewDict(3)
		for _, kv := range [][2]string{{"function", t.function}, {"name", t.Name}, {"description", t.Description}} {
			v := starlark.Value(starlark.String(kv[1]))
			if kv[0] == "function" && kv[1] == "" {
				v = starlark.None
			}
			_ = d.SetKey(starlark.String(kv[0]), v) // it is new, and so not frozen
		}
		all = append(all, d)
	}
	return starlark.NewList(all), nil
}

// help is help(f) and help("name"): the text that describes a tool; and help(), which lists all.
func (r *run) help(_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	if len(args) > 1 || len(kwargs) > 0 {
		return nil, fault.New("TypeError", "help takes one tool").Hinted("help(f), or help(\"name\")")
	}
	if len(args) == 0 {
		return starlark.String(r.overview()), nil
	}
	name, isText := starlark.AsString(args[0])
	for _, t := range r.tools.all {
		f := r.names[t.function]
		if isText && (t.Name == name || t.function == name) || !isText && f != nil && f == args[0] {
			return starlark.String(t.describe()), nil
		}
	}
	if isText {
		return nil, fault.New("ValueError", "there is no tool %q%s: list_tools() lists them", clip(name, maxName), meant(name, r.tools.names()))
	}
	return nil, fault.New("ValueError", "help describes tools, not %s", clip(library.Repr(args[0]), maxName)).Hinted("list_tools() lists them")
}

func (r *run) overview() string {
	var b strings.Builder
	for _, t := range r.tools.all {
		b.WriteString(t.signature() + "\n")
	}
	return b.String()
}

// signature is a call of the tool as code writes it.
func (t *tool) signature() string {
	var parts []string
	for _, p := range t.parameters() {
		switch def := member(p.schema, "default"); {
		case p.written == "": // by its published name only
		case p.required:
			parts = append(parts, p.written)
		case def != nil:
			parts = append(parts, p.written+"="+literal(def))
		default:
			parts = append(parts, p.written+"=…")
		}
	}
	if t.function == "" {
		name, _ := json.Marshal(t.Name)
		return "call_tool(" + strings.Join(append([]string{string(name)}, parts...), ", ") + ")"
	}
	return t.function + "(" + strings.Join(parts, ", ") + ")"
}

func (t *tool) describe() string {
	var b strings.Builder
	b.WriteString(t.signature())
	if t.Description != "" {
		b.WriteString("\n" + t.Description)
	}
	for _, p := range t.parameters() {
		b.WriteString("\n- " + p.describe())
	}
	if len(t.Output) > 0 && string(t.Output) != "null" {
		b.WriteString("\nreturns " + shape(t.Output, 0))
	}
	return b.String()
}

// maxShape is how many levels of what a tool returns are described.
const maxShape = 4

// shape is what a schema takes, as an example of it: {"id": integer, "tags": [string], …}.
func shape(schema []byte, level int) string {
	typ := typeOf(member(schema, "type"))
	if level == maxShape {
		return cmp.Or(typ, cut)
	}
	var null string
	if kind, nullable := strings.CutSuffix(typ, " or null"); nullable {
		typ, null = kind, " or null"
	}
	switch items, properties := member(schema, "items"), member(schema, "properties"); {
	case (typ == "array" || typ == "") && items != nil:
		return "[" + shape(items, level+1) + ", " + cut + "]" + null
	case (typ == "object" || typ == "") && properties != nil:
		var parts []string
		m, _ := strictjson.MembersOf(properties)
		for {
			name, value, ok := m.Next()
			if !ok {
				break
			}
			parts = append(parts, strconv.Quote(string(name))+": "+shape(value, level+1))
		}
		return clip("{"+strings.Join(parts, ", ")+"}", maxMessage) + null
	}
	return cmp.Or(typ, "any value") + null
}

// describe is a line on a parameter: its type, its bounds, what it is for.
func (p *param) describe() string {
	name, facts := p.written, []string{}
	if name != p.name {
		facts = append(facts, fmt.Sprintf("published as %q", clip(p.name, maxName)))
	}
	if !p.required {
		facts = append(facts, "optional")
	}
	about := ""
	schema, _ := strictjson.MembersOf(p.schema)
	for {
		key, value, ok := schema.Next()
		if !ok {
			break
		}
		switch string(key) {
		case "description":
			about, _ = strictjson.String(value)
		case "type":
			facts = append([]string{typeOf(value)}, facts...)
		case "default": // is in the signature
		default:
			facts = append(facts, string(key)+" "+literal(value))
		}
	}
	line := name
	if len(facts) > 0 {
		line += " (" + strings.Join(facts, ", ") + ")"
	}
	if about != "" {
		line += ": " + about
	}
	return line
}

// typeOf spells the type of a schema: one, or several.
func typeOf(raw []byte) string {
	var types []string
	if json.Unmarshal(raw, &types) == nil {
		return strings.Join(types, " or ")
	}
	return strings.Trim(literal(raw), `"`)
}

// member is a member of a schema, or nil.
func member(schema []byte, name string) []byte {
	m, _ := strictjson.MembersOf(schema)
	for {
		key, value, ok := m.Next()
		if !ok {
			return nil
		}
		if string(key) == name {
			return value
		}
	}
}

// literal is JSON as code writes it, as far as single words go.
func literal(raw []byte) string {
	switch s := string(raw); s {
	case "true":
		return "True"
	case "false":
		return "False"
	case "null":
		return "None"
	default:
		return clip(s, 500)
	}
}
