package library

import (
	"strings"

	"go.starlark.net/starlark"

	"github.com/openenv-go/openenv-go/pkg/codemode/internal/fault"
)

func stringFormat(c *call) (starlark.Value, error) {
	names := new(starlark.Dict)
	for _, kw := range c.kwargs {
		if err := names.SetKey(kw[0], kw[1]); err != nil {
			return nil, c.typeError(err)
		}
	}
	return c.expand(c.args, names)
}

func stringFormatMap(c *call) (starlark.Value, error) {
	var names *starlark.Dict
	if err := c.take(1, &names); err != nil {
		return nil, err
	}
	return c.expand(nil, names)
}

func (c *call) expand(args starlark.Tuple, names *starlark.Dict) (starlark.Value, error) {
	f := formatter{writer: writer{call: c}, args: args, names: names}
	if err := f.run(c.self(), 2); err != nil {
		return nil, err
	}
	return starlark.String(f.String()), nil
}

// A formatter fills in the fields of a format string.
type formatter struct {
	writer
	args      starlark.Tuple
	names     *starlark.Dict
	next      int  // the argument of the next {}
	automatic bool // there was a {}
	manual    bool // there was a {0}
}

func badFormat(format string, args ...any) *fault.Exception {
	return fault.New("ValueError", "format: "+format, args...)
}

// run writes a format string; depth is how many levels of fields within fields there may be.
func (f *formatter) run(s string, depth int) error {
	for s != "" {
		at := strings.IndexAny(s, "{}")
		if at < 0 {
			return f.put(s)
		}
		if err := f.put(s[:at]); err != nil {
			return err
		}
		brace := s[at]
		s = s[at+1:]
		if len(s) > 0 && s[0] == brace {
			if err := f.put(string(brace)); err != nil {
				return err
			}
			s = s[1:]
			continue
		}
		if brace == '}' {
			return badFormat("a single } in the text").Hinted("write }}")
		}
		end := fieldEnd(s)
		if end < 0 {
			return badFormat("a { is never closed").Hinted("write {{ for a brace")
		}
		if err := f.field(s[:end], depth); err != nil {
			return err
		}
		s = s[end+1:]
	}
	return nil
}

// fieldEnd is where the field that s begins with is closed.
func fieldEnd(s string) int {
	open, index := 0, false
	for i := range len(s) {
		switch {
		case index:
			index = s[i] != ']'
		case s[i] == '[' && open == 0 && !strings.ContainsAny(s[:i], ":!"):
			index = true
		case s[i] == '{':
			open++
		case s[i] == '}' && open == 0:
			return i
		case s[i] == '}':
			open--
		}
	}
	return -1
}

// field writes one field: name, conversion, format.
func (f *formatter) field(s string, depth int) error {
	if depth == 0 {
		return badFormat("fields are nested too deeply")
	}
	name, conversion, format := cutField(s)
	v, err := f.value(name)
	if err != nil {
		return err
	}
	if strings.HasPrefix(conversion, "!") {
		if v, err = f.converted(v, conversion[1:]); err != nil {
			return err
		}
		if len(conversion) == 1 {
			return badFormat("the conversion after ! is missing")
		}
	}
	if strings.ContainsAny(format, "{}") {
		inner := formatter{writer: writer{call: f.call}, args: f.args, names: f.names, next: f.next, automatic: f.automatic, manual: f.manual}
		if err := inner.run(format, depth-1); err != nil {
			return err
		}
		f.next, f.automatic, f.manual = inner.next, inner.automatic, inner.manual
		format = inner.String()
	}
	text, err := f.format(v, format)
	if err != nil {
		return err
	}
	return f.put(text)
}

// cutField parts a field's name, !conversion and format.
func cutField(s string) (name, conversion, format string) {
	index := false
	for i := range len(s) {
		switch {
		case index:
			index = s[i] != ']'
		case s[i] == '[':
			index = true
		case s[i] == ':':
			return s[:i], "", s[i+1:]
		case s[i] == '!':
			conversion, format, _ = strings.Cut(s[i:], ":")
			return s[:i], conversion, format
		}
	}
	return s, "", ""
}

// value is what a field's name stands for: an argument, and indexes into it.
func (f *formatter) value(name string) (starlark.Value, error) {
	end := strings.IndexAny(name, ".[")
	if end < 0 {
		end = len(name)
	}
	v, err := f.argument(name[:end])
	if err != nil {
		return nil, err
	}
	rest := name[end:]
	for rest != "" {
		if rest[0] == '.' {
			return nil, badFormat("%s: there are no attributes in a format string", Repr(starlark.String("{"+name+"}"))).
				Hinted("write the value as an argument, or {0[key]}")
		}
		close := strings.IndexByte(rest, ']')
		if rest[0] != '[' || close < 0 {
			return nil, badFormat("%s: only [key] may follow a name", Repr(starlark.String("{"+name+"}")))
		}
		key := rest[1:close]
		rest = rest[close+1:]
		if key == "" {
			return nil, badFormat("an index is empty")
		}
		if v, err = f.element(v, key); err != nil {
			return nil, err
		}
	}
	return v, nil
}

func (f *formatter) element(v starlark.Value, key string) (starlark.Value, error) {
	var index starlark.Value = starlark.String(key)
	if n, rest, ok := number(key, -1); ok && rest == "" && n >= 0 {
		index = starlark.MakeInt(n)
	}
	part := *f.call
	part.args = starlark.Tuple{v, index}
	return hiddenIndex(&part)
}

func (f *formatter) argument(name string) (starlark.Value, error) {
	n, rest, ok := number(name, -1)
	if !ok {
		return nil, badFormat("the index %s is too large", Repr(starlark.String(name)))
	}
	if name != "" && (n < 0 || rest != "") {
		v, found, err := f.names.Get(starlark.String(name))
		if err != nil || found {
			return v, f.typeError(err)
		}
		if k := f.kind(f.names); k != nil {
			return f.missing(f.names, k, starlark.String(name))
		}
		e := fault.New("KeyError", "format: there is no argument %s", name)
		if f.names.Len() > 0 {
			return nil, e.Hinted("there are %s", keysOf(f.names))
		}
		return nil, e.Hinted("give it by name: .format(%s=…), or write f\"…\"", name)
	}
	if name == "" {
		n, f.automatic = f.next, true
		f.next++
	} else {
		f.manual = true
	}
	if f.automatic && f.manual {
		return nil, badFormat("{} and {0} cannot be mixed")
	}
	if n >= len(f.args) {
		return nil, fault.New("IndexError", "format: there is no argument of index %d: there are %d", n, len(f.args))
	}
	return f.args[n], nil
}
