package library

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/openenv-go/openenv-go/pkg/codemode/internal/fault"
)

func itoa(n int) string { return strconv.Itoa(n) }

// runeLen is the size in bytes of the first code point of s.
func runeLen(s string) int {
	if s[0] < utf8.RuneSelf {
		return 1
	}
	_, n := utf8.DecodeRuneInString(s)
	return n
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// offset is where code point i of s begins, in bytes. It is len(s) where there are fewer.
func offset(s string, i int) int {
	for at := range s {
		if i <= 0 {
			return at
		}
		i--
	}
	return len(s)
}

// Str is the text that str and print make of v. Its error is a limit.
func Str(thread *starlark.Thread, v starlark.Value) (string, error) {
	c := &call{thread: thread, meter: fault.MeterOf(thread)}
	s, err := c.str(v)
	if err != nil {
		return "", err
	}
	return s, c.settle()
}

// Repr is the text of v as code would write it, cut short for messages.
func Repr(v starlark.Value) string {
	const most = 100
	switch v := v.(type) {
	case starlark.String:
		if utf8.RuneCountInString(string(v)) > most {
			return syntax.Quote(string(v[:offset(string(v), most)]), false) + "…"
		}
		return syntax.Quote(string(v), false)
	case starlark.Int:
		if n, ok := v.Int64(); ok {
			return strconv.FormatInt(n, 10)
		}
		return "a large integer"
	case starlark.Float:
		return floatText(float64(v))
	case starlark.Bool, starlark.NoneType, *Type:
		return v.String()
	case starlark.Tuple:
		if len(v) < 4 {
			var parts []string
			for _, e := range v {
				if _, nested := e.(starlark.Tuple); nested {
					return "a tuple"
				}
				parts = append(parts, Repr(e))
			}
			return "(" + strings.Join(parts, ", ") + ")"
		}
	}
	return "a " + typeName(v)
}

func (c *call) str(v starlark.Value) (string, error) {
	switch v := v.(type) {
	case starlark.String:
		return string(v), nil
	case fault.Texter:
		return v.Text(), nil
	}
	return c.repr(v)
}

func (c *call) repr(v starlark.Value) (string, error) {
	w := writer{call: c}
	if err := w.value(v); err != nil {
		return "", err
	}
	return w.String(), nil
}

// A writer writes values as text within bounds.
type writer struct {
	*call
	strings.Builder
	path []starlark.Value // the lists and dicts that are being written
	room int              // what has been asked for
}

func (w *writer) put(s string) error {
	if err := w.step(1 + len(s)/64); err != nil {
		return err
	}
	w.WriteString(s)
	if w.Len() > w.room {
		w.room = 2 * w.Len()
		return w.meter.Room(w.room)
	}
	return nil
}

func (w *writer) value(v starlark.Value) error {
	switch v := v.(type) {
	case starlark.String:
		if err := w.text(2 * len(v)); err != nil {
			return err
		}
		return w.put(syntax.Quote(string(v), false))
	case starlark.Int:
		s, err := w.digits(v)
		if err != nil {
			return err
		}
		return w.put(s)
	case starlark.Float:
		return w.put(floatText(float64(v)))
	case *starlark.List:
		return w.row("[", v, "]", v)
	case starlark.Tuple:
		if len(v) == 1 {
			return w.row("(", v, ",)", v)
		}
		return w.row("(", v, ")", v)
	case *iterator:
		return w.row("[", v, "]", v)
	case *view:
		return w.row("[", v, "]", v)
	case *deque:
		end := "])"
		if v.max >= 0 {
			end = "], maxlen=" + itoa(v.max) + ")"
		}
		return w.row("deque([", v, end, v)
	case *starlark.Dict:
		return w.dict(v)
	case *starlark.Set:
		return w.set(v)
	case *starlark.Function:
		return w.put("<function " + FunctionName(v) + ">")
	}
	return w.put(v.String())
}

// enter goes a level down into v, unless v is within itself.
func (w *writer) enter(v starlark.Value) (again bool, err error) {
	if _, tuple := v.(starlark.Tuple); !tuple {
		for _, above := range w.path {
			if _, tuple := above.(starlark.Tuple); !tuple && above == v {
				return true, nil
			}
		}
	}
	if len(w.path) > w.meter.Depth() {
		return false, nestingLimit(w.meter.Depth())
	}
	w.path = append(w.path, v)
	return false, nil
}

func (w *writer) leave() { w.path = w.path[:len(w.path)-1] }

func (w *writer) row(open string, row starlark.Indexable, end string, v starlark.Value) error {
	again, err := w.enter(v)
	if err != nil {
		return err
	}
	if again {
		return w.put(open + "..." + end)
	}
	defer w.leave()
	if err := w.put(open); err != nil {
		return err
	}
	for i := range row.Len() {
		if i > 0 {
			w.WriteString(", ")
		}
		if err := w.value(row.Index(i)); err != nil {
			return err
		}
	}
	return w.put(end)
}

func (w *writer) dict(d *starlark.Dict) error {
	again, err := w.enter(d)
	if err != nil {
		return err
	}
	if again {
		return w.put("{...}")
	}
	defer w.leave()
	sep := "{"
	for k, v := range d.Entries() {
		if err := w.put(sep); err != nil {
			return err
		}
		if err := w.value(k); err != nil {
			return err
		}
		w.WriteString(": ")
		if err := w.value(v); err != nil {
			return err
		}
		sep = ", "
	}
	if d.Len() == 0 {
		return w.put("{}")
	}
	return w.put("}")
}

// set writes a set as Python does; its elements are tuples and what has no parts, so it cannot be within itself.
func (w *writer) set(s *starlark.Set) error {
	if s.Len() == 0 {
		return w.put("set()")
	}
	sep := "{"
	for k := range s.Elements() {
		if err := w.put(sep); err != nil {
			return err
		}
		if err := w.value(k); err != nil {
			return err
		}
		sep = ", "
	}
	return w.put("}")
}

// digits is the decimal text of an integer.
func (c *call) digits(i starlark.Int) (string, error) {
	if n, ok := i.Int64(); ok {
		return strconv.FormatInt(n, 10), nil
	}
	if err := c.heavy(i.BigInt().BitLen() / 64); err != nil {
		return "", err
	}
	return i.String(), nil
}

// heavy charges for work on an integer of so many words that takes more than its length: multiplying, dividing, writing.
func (c *call) heavy(words int) error {
	return c.step(words / 16 * max(1, int(math.Sqrt(float64(words)))/4))
}

// floatText is a float as Python writes it.
func floatText(f float64) string {
	switch {
	case math.IsNaN(f):
		return "nan"
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	}
	e := strconv.FormatFloat(f, 'e', -1, 64)
	at := strings.LastIndexByte(e, 'e')
	if exp, _ := strconv.Atoi(e[at+1:]); exp < -4 || exp >= 16 {
		return e
	}
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

func builtinStr(c *call) (starlark.Value, error) {
	x := starlark.Value(starlark.String(""))
	if err := c.take(0, &x); err != nil {
		return nil, err
	}
	s, err := c.str(x)
	return starlark.String(s), err
}

func builtinRepr(c *call) (starlark.Value, error) {
	var x starlark.Value
	if err := c.take(1, &x); err != nil {
		return nil, err
	}
	s, err := c.repr(x)
	return starlark.String(s), err
}

func builtinASCII(c *call) (starlark.Value, error) {
	var x starlark.Value
	if err := c.take(1, &x); err != nil {
		return nil, err
	}
	s, err := c.ascii(x)
	return starlark.String(s), err
}

// ascii is repr with code points beyond ASCII escaped.
func (c *call) ascii(v starlark.Value) (string, error) {
	s, err := c.repr(v)
	if err != nil || isASCII(s) {
		return s, err
	}
	if err := c.text(10 * len(s)); err != nil {
		return "", err
	}
	var out strings.Builder
	for _, r := range s {
		switch {
		case r < utf8.RuneSelf:
			out.WriteRune(r)
		case r < 0x100:
			out.WriteString(`\x` + strconv.FormatInt(int64(r), 16))
		case r < 0x10000:
			out.WriteString(`\u` + strconv.FormatInt(0x10000+int64(r), 16)[1:])
		default:
			out.WriteString(`\U` + strconv.FormatInt(0x100000000+int64(r), 16)[1:])
		}
	}
	return out.String(), nil
}

func builtinOrd(c *call) (starlark.Value, error) {
	var s starlark.String
	if err := c.take(1, &s); err != nil {
		return nil, err
	}
	if s == "" || runeLen(string(s)) != len(s) {
		return nil, fault.New("TypeError", "ord: want one character, not text of length %d", utf8.RuneCountInString(string(s)))
	}
	r, _ := utf8.DecodeRuneInString(string(s))
	return starlark.MakeInt(int(r)), nil
}

func builtinChr(c *call) (starlark.Value, error) {
	var x starlark.Value
	if err := c.take(1, &x); err != nil {
		return nil, err
	}
	i, err := c.index(x, "a code point")
	if err != nil {
		return nil, err
	}
	if i < 0 || i > utf8.MaxRune || !utf8.ValidRune(rune(i)) {
		return nil, fault.New("ValueError", "chr: %s is no code point of text", Repr(x))
	}
	return starlark.String(rune(i)), nil
}
