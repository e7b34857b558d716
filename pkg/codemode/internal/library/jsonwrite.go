package library

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.starlark.net/starlark"

	"github.com/openenv-go/openenv-go/pkg/codemode/internal/fault"
)

// A jsonWriter writes values as JSON.
type jsonWriter struct {
	writer
	item, colon string         // what parts elements, and keys from values
	indent      string         // of a level
	lines       bool           // each element has its own line
	ascii       bool           // escape all that is not ASCII
	sorted      bool           // by keys
	skip        bool           // leave out keys that JSON has not
	finite      bool           // refuse infinities and not a number
	otherwise   starlark.Value // makes JSON of what is none; nil: refuse
}

func jsonDumps(c *call) (starlark.Value, error) {
	var x, indent, separators, otherwise starlark.Value
	var ascii, sorted, nan, skip, circular starlark.Value = starlark.True, starlark.False, starlark.True, starlark.False, starlark.True
	err := c.bind("obj", &x, "skipkeys?", &skip, "ensure_ascii?", &ascii, "check_circular?", &circular, "allow_nan?", &nan,
		"indent?", &indent, "separators?", &separators, "default?", &otherwise, "sort_keys?", &sorted)
	if err != nil {
		return nil, err
	}
	w := jsonWriter{
		writer: writer{call: c}, item: ", ", colon: ": ", ascii: bool(ascii.Truth()), sorted: bool(sorted.Truth()),
		skip: bool(skip.Truth()), finite: !bool(nan.Truth()),
	}
	if otherwise != starlark.None {
		w.otherwise = otherwise
	}
	if err := w.layout(indent, separators); err != nil {
		return nil, err
	}
	if err := w.json(x); err != nil {
		return nil, err
	}
	return starlark.String(w.String()), nil
}

func (w *jsonWriter) layout(indent, separators starlark.Value) error {
	switch v := indent.(type) {
	case nil, starlark.NoneType:
	case starlark.String:
		w.lines, w.indent = true, string(v)
	default:
		n, err := w.call.index(v, "indent")
		if err != nil {
			return err
		}
		if err := w.text(max(n, 0)); err != nil {
			return err
		}
		w.lines, w.indent = true, strings.Repeat(" ", max(n, 0))
	}
	if w.lines {
		w.item = ","
	}
	if separators == nil || separators == starlark.None {
		return nil
	}
	pair, err := w.collect(separators)
	if err != nil {
		return err
	}
	if len(pair) == 2 {
		item, ok1 := pair[0].(starlark.String)
		colon, ok2 := pair[1].(starlark.String)
		if ok1 && ok2 {
			w.item, w.colon = string(item), string(colon)
			return nil
		}
	}
	return fault.New("TypeError", `json.dumps: separators must be two texts, as in (",", ":")`)
}

// jsonEncode is Starlark's: as short as can be, sorted, and without infinities.
func jsonEncode(c *call) (starlark.Value, error) {
	var x starlark.Value
	if err := c.take(1, &x); err != nil {
		return nil, err
	}
	w := jsonWriter{writer: writer{call: c}, item: ",", colon: ":", sorted: true, finite: true}
	if err := w.json(x); err != nil {
		return nil, err
	}
	return starlark.String(w.String()), nil
}

func jsonIndent(c *call) (starlark.Value, error) {
	var s string
	prefix, indent := "", "\t"
	if err := c.bind("str", &s, "prefix?", &prefix, "indent?", &indent); err != nil {
		return nil, err
	}
	v, err := c.readJSON(s)
	if err != nil {
		return nil, err
	}
	w := jsonWriter{writer: writer{call: c}, item: ",", colon: ": ", lines: true, indent: indent}
	if err := w.json(v); err != nil {
		return nil, err
	}
	if err := c.text(w.Len() + times(strings.Count(w.String(), "\n"), len(prefix))); err != nil {
		return nil, err
	}
	return starlark.String(strings.ReplaceAll(w.String(), "\n", "\n"+prefix)), nil
}

func (w *jsonWriter) json(v starlark.Value) error {
	switch v := v.(type) {
	case starlark.NoneType:
		return w.put("null")
	case starlark.Bool:
		return w.put(strconv.FormatBool(bool(v)))
	case starlark.Int:
		return w.value(v)
	case starlark.Float:
		s, err := w.number(float64(v))
		if err != nil {
			return err
		}
		return w.put(s)
	case starlark.String:
		return w.quote(string(v))
	case *starlark.List:
		return w.array(v, v)
	case starlark.Tuple:
		return w.array(v, v)
	case *iterator:
		return w.array(v, v)
	case *view:
		return w.array(v, v)
	case *deque:
		return w.array(v, v)
	case *starlark.Dict:
		return w.object(v)
	}
	if r, ok := v.(starlark.Indexable); ok && v.Type() == "range" {
		return w.array(r, starlark.Tuple{})
	}
	return w.other(v)
}

func (w *jsonWriter) number(f float64) (string, error) {
	switch {
	case !math.IsNaN(f) && !math.IsInf(f, 0):
		return floatText(f), nil
	case w.finite:
		return "", fault.New("ValueError", "%s: JSON has no %s", w.name, floatText(f))
	case math.IsNaN(f):
		return "NaN", nil
	case f > 0:
		return "Infinity", nil
	}
	return "-Infinity", nil
}

// other writes what default makes of a value that JSON has not.
func (w *jsonWriter) other(v starlark.Value) error {
	if w.otherwise == nil {
		e := fault.New("TypeError", "%s: JSON has no %s", w.name, typeName(v))
		if _, set := v.(*starlark.Set); set {
			return e.Hinted("make a list of it: sorted(s)")
		}
		return e
	}
	x, err := w.call.call(w.otherwise, v)
	if err != nil {
		return err
	}
	if len(w.path) > w.meter.Depth() {
		return nestingLimit(w.meter.Depth())
	}
	w.path = append(w.path, starlark.None)
	defer w.leave()
	return w.json(x)
}

// within goes a level down, and refuses a value within itself.
func (w *jsonWriter) within(v starlark.Value) error {
	again, err := w.enter(v)
	if again {
		return fault.New("ValueError", "%s: the %s holds itself: a cycle is no JSON", w.name, typeName(v))
	}
	return err
}

// newLine begins a line, levels deep, where there are lines.
func (w *jsonWriter) newLine(levels int) error {
	if !w.lines {
		return nil
	}
	if err := w.put("\n"); err != nil {
		return err
	}
	for range levels {
		if err := w.put(w.indent); err != nil {
			return err
		}
	}
	return nil
}

func (w *jsonWriter) array(row starlark.Indexable, v starlark.Value) error {
	if row.Len() == 0 {
		return w.put("[]")
	}
	if err := w.within(v); err != nil {
		return err
	}
	defer w.leave()
	sep := "["
	for i := 0; i < row.Len(); i++ {
		if err := w.put(sep); err != nil {
			return err
		}
		if err := w.newLine(len(w.path)); err != nil {
			return err
		}
		if err := w.json(row.Index(i)); err != nil {
			return err
		}
		sep = w.item
	}
	if err := w.newLine(len(w.path) - 1); err != nil {
		return err
	}
	return w.put("]")
}

// errSkip is a key that is left out.
var errSkip = errors.New("skip")

func (w *jsonWriter) object(d *starlark.Dict) error {
	if d.Len() == 0 {
		return w.put("{}")
	}
	if err := w.within(d); err != nil {
		return err
	}
	defer w.leave()
	keys := d.Keys()
	if w.sorted {
		if err := w.sort(keys, nil, false); err != nil {
			return err
		}
	}
	sep, empty := "{", true
	for _, k := range keys {
		name, err := w.key(k)
		if err == errSkip {
			continue
		}
		if err != nil {
			return err
		}
		v, _, err := d.Get(k)
		if err != nil {
			return w.typeError(err)
		}
		if err := w.put(sep); err != nil {
			return err
		}
		if err := w.newLine(len(w.path)); err != nil {
			return err
		}
		if err := w.quote(name); err != nil {
			return err
		}
		if err := w.put(w.colon); err != nil {
			return err
		}
		if err := w.json(v); err != nil {
			return err
		}
		sep, empty = w.item, false
	}
	if empty {
		return w.put("{}")
	}
	if err := w.newLine(len(w.path) - 1); err != nil {
		return err
	}
	return w.put("}")
}

// key is what JSON has for a key that is no text.
func (w *jsonWriter) key(k starlark.Value) (string, error) {
	switch k := k.(type) {
	case starlark.String:
		return string(k), nil
	case starlark.NoneType:
		return "null", nil
	case starlark.Bool:
		return strconv.FormatBool(bool(k)), nil
	case starlark.Float:
		return w.number(float64(k))
	case starlark.Int:
		return w.digits(k)
	}
	if w.skip {
		return "", errSkip
	}
	return "", fault.New("TypeError", "%s: a key must be text or a number, not %s", w.name, typeName(k)).
		Hinted("make text of the keys: {str(k): v for k, v in d.items()}")
}

func (w *jsonWriter) quote(s string) error {
	if err := w.text(len(s)); err != nil {
		return err
	}
	if plainJSON(s) {
		return w.put(`"` + s + `"`)
	}
	out := []byte{'"'}
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			out = append(out, '\\', byte(r))
		case r == '\n':
			out = append(out, `\n`...)
		case r == '\r':
			out = append(out, `\r`...)
		case r == '\t':
			out = append(out, `\t`...)
		case r == '\b':
			out = append(out, `\b`...)
		case r == '\f':
			out = append(out, `\f`...)
		case r < ' ' || r >= 0x7f && w.ascii:
			out = escaped(out, r)
		default:
			out = utf8.AppendRune(out, r)
		}
	}
	return w.put(string(append(out, '"')))
}

func plainJSON(s string) bool {
	for i := range len(s) {
		if b := s[i]; b < ' ' || b >= utf8.RuneSelf || b == '"' || b == '\\' {
			return false
		}
	}
	return true
}

// escaped is r as \uXXXX, or two of them.
func escaped(out []byte, r rune) []byte {
	const hex = "0123456789abcdef"
	units := []rune{r}
	if r >= 0x10000 {
		r -= 0x10000
		units = []rune{0xd800 + r>>10, 0xdc00 + r&0x3ff}
	}
	for _, u := range units {
		out = append(out, '\\', 'u', hex[u>>12&15], hex[u>>8&15], hex[u>>4&15], hex[u&15])
	}
	return out
}
