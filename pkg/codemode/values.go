package codemode

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
	"go.starlark.net/starlark"

	"github.com/openenv-go/openenv-go/pkg/codemode/internal/fault"
	"github.com/openenv-go/openenv-go/pkg/codemode/internal/library"
)

// toJSON writes a value as JSON: integers and floats exactly, members in their order. Errors name the place in the value,
// which is called root. What is larger than the run's output or deeper than its nesting ends the run.
func (r *run) toJSON(v starlark.Value, root string) ([]byte, error) {
	w := writer{run: r, root: root}
	if err := w.value(v); err != nil {
		return nil, err
	}
	return w.b, w.fits() // its last text may be any length
}

type writer struct {
	*run
	b    []byte
	root string
	path []step
}

// A step leads from a list or an object to what it holds.
type step struct {
	from starlark.Value
	key  string
	at   int // in a list; -1: key
}

func (w *writer) value(v starlark.Value) error {
	if err := w.Charge(1); err != nil {
		return err
	}
	if err := w.fits(); err != nil {
		return err
	}
	switch v := v.(type) {
	case starlark.NoneType:
		w.b = append(w.b, "null"...)
	case starlark.Bool:
		w.b = strconv.AppendBool(w.b, bool(v))
	case starlark.Int:
		return w.integer(v)
	case starlark.Float:
		return w.float(float64(v))
	case starlark.String:
		return w.text(string(v))
	case *cell:
		return w.value(v.value)
	case *attempt:
		return w.value(v.dict())
	case starlark.IterableMapping:
		return w.nested(v, w.object)
	case starlark.Iterable:
		return w.nested(v, w.list)
	default:
		return w.fault(w.foreign(v))
	}
	return nil
}

// fits ends the run where what is written is too long.
func (w *writer) fits() error {
	if len(w.b) <= w.limits.Output {
		return nil
	}
	return w.stop(w.exceeded("output", "%s takes more than %s as JSON: pass on less of it", w.root, size(w.limits.Output)))
}

// fault is an exception that begins with the place.
func (w *writer) fault(e *fault.Exception) error {
	e.Message = w.where() + " " + e.Message
	return e
}

func (w *writer) where() string {
	b := []byte(w.root)
	for _, s := range w.path {
		switch {
		case s.at >= 0:
			b = fmt.Appendf(b, "[%d]", s.at)
		case isIdentifier(s.key):
			b = append(append(b, '.'), clip(s.key, maxName)...)
		default:
			b = fmt.Appendf(b, "[%q]", clip(s.key, maxName))
		}
	}
	return string(b)
}

func (w *writer) foreign(v starlark.Value) *fault.Exception {
	switch v := v.(type) {
	case *exception:
		return fault.New("TypeError", "is an error, %s: JSON has none", v.class.name).Hinted("its text is str(e)")
	case *starlark.Function:
		if v.Name() == "lambda" {
			return fault.New("TypeError", "is a function, a lambda: JSON has none").Hinted("call it")
		}
		return fault.New("TypeError", "is a function, def %s: JSON has none", library.FunctionName(v)).Hinted("call it: %s()", library.FunctionName(v))
	case starlark.Callable:
		return fault.New("TypeError", "is a function, %s: JSON has none", v.Name()).Hinted("call it: %s()", v.Name())
	}
	return fault.New("TypeError", "is of type %s: JSON has no such thing", v.Type()).Hinted("make it text, a number, a list or a dict")
}

// maxDigits bounds integers in both directions, as Python does, because writing and reading them takes the square of it.
const maxDigits = 4300

func (w *writer) integer(i starlark.Int) error {
	if _, ok := i.Int64(); !ok && i.BigInt().BitLen() > maxDigits*10/3 {
		return w.fault(fault.New("ValueError", "is an integer of more than %d digits", maxDigits))
	}
	w.b = append(w.b, i.String()...)
	return nil
}

func (w *writer) float(f float64) error {
	if math.IsInf(f, 0) || math.IsNaN(f) {
		return w.fault(fault.New("ValueError", "is %s: JSON has no such number", library.Repr(starlark.Float(f))).Hinted("pass None or text in its place"))
	}
	w.b = append(w.b, starlark.Float(f).String()...)
	return nil
}

func (w *writer) text(s string) error {
	if len(s) > w.limits.Output {
		w.b = append(w.b, s...)
		return w.fits()
	}
	b, err := jsontext.AppendQuote(w.b, s)
	if err != nil {
		return w.fault(fault.New("ValueError", "is text that is not valid UTF-8: half a character, perhaps"))
	}
	w.b = b
	return nil
}

func (w *writer) nested(v starlark.Value, write func(starlark.Value) error) error {
	for _, s := range w.path {
		if same(s.from, v) {
			return w.fault(fault.New("ValueError", "is cyclic: it is within itself"))
		}
	}
	if len(w.path) >= w.Depth() {
		return w.tooDeep()
	}
	w.path = append(w.path, step{from: v})
	if err := write(v); err != nil {
		return err
	}
	w.path = w.path[:len(w.path)-1]
	return nil
}

// same reports whether two values are one object. Only what can be changed can hold itself.
func same(a, b starlark.Value) bool {
	if _, tuple := a.(starlark.Tuple); tuple {
		return false
	}
	return a == b
}

func (w *writer) list(v starlark.Value) error {
	w.b = append(w.b, '[')
	here := &w.path[len(w.path)-1]
	here.at = 0
	for x := range starlark.Elements(v.(starlark.Iterable)) {
		if here = &w.path[len(w.path)-1]; here.at > 0 {
			w.b = append(w.b, ',')
		}
		if err := w.value(x); err != nil {
			return err
		}
		w.path[len(w.path)-1].at++
	}
	w.b = append(w.b, ']')
	return nil
}

func (w *writer) object(v starlark.Value) error {
	depth := len(w.path) - 1
	m := v.(starlark.IterableMapping)
	names := map[string]bool{}
	w.b = append(w.b, '{')
	for k := range starlark.Elements(m) {
		x, _, err := m.Get(k)
		if err != nil {
			return err
		}
		name, ok := key(k)
		w.path[depth].at, w.path[depth].key = -1, name
		switch {
		case !ok:
			w.path = w.path[:depth]
			return w.fault(fault.New("TypeError", "has the key %s, of type %s: a key in JSON is text", clip(library.Repr(k), maxName), k.Type()).Hinted("make it text, or a list of pairs"))
		case names[name]:
			w.path = w.path[:depth]
			return w.fault(fault.New("ValueError", "has two keys that are %q as JSON", clip(name, maxName)))
		}
		names[name] = true
		if err := w.member(name, x); err != nil {
			return err
		}
	}
	w.b = append(w.b, '}')
	return nil
}

func (w *writer) member(name string, v starlark.Value) error {
	if w.b[len(w.b)-1] != '{' {
		w.b = append(w.b, ',')
	}
	if err := w.text(name); err != nil {
		return err
	}
	w.b = append(w.b, ':')
	return w.value(v)
}

// key is what json.dumps makes of a key, where it takes it.
func key(k starlark.Value) (string, bool) {
	switch k := k.(type) {
	case starlark.String:
		return string(k), true
	case starlark.Int:
		return k.String(), k.BigInt().BitLen() <= maxDigits*10/3
	case starlark.Float:
		return k.String(), !math.IsNaN(float64(k)) && !math.IsInf(float64(k), 0)
	case starlark.Bool:
		return strconv.FormatBool(bool(k)), true
	case starlark.NoneType:
		return "null", true
	}
	return "", false
}

// fromJSON reads a value: integers and floats exactly, members in their order. It is the code's own to change.
func (r *run) fromJSON(raw []byte) (starlark.Value, error) {
	d := reader{run: r, Decoder: jsontext.NewDecoder(bytes.NewReader(raw))}
	v, err := d.value()
	if err != nil {
		return nil, err
	}
	if d.InputOffset() < int64(len(bytes.TrimRight(raw, " \t\r\n"))) {
		return nil, errors.New("there is more than one value")
	}
	return v, nil
}

type reader struct {
	*run
	*jsontext.Decoder
}

func (d *reader) value() (starlark.Value, error) {
	t, err := d.ReadToken()
	if err != nil {
		return nil, err
	}
	if err := d.Charge(1); err != nil {
		return nil, err
	}
	switch t.Kind() {
	case 'n':
		return starlark.None, nil
	case 't', 'f':
		return starlark.Bool(t.Bool()), nil
	case '"':
		return starlark.String(t.String()), nil
	case '0':
		return number(t.String())
	}
	if d.StackDepth() > d.Depth() {
		return nil, d.tooDeep()
	}
	if t.Kind() == '[' {
		return d.list()
	}
	return d.object()
}

func (d *reader) list() (starlark.Value, error) {
	var elems []starlark.Value
	for d.PeekKind() != ']' {
		v, err := d.value()
		if err != nil {
			return nil, err
		}
		elems = append(elems, v)
	}
	_, err := d.ReadToken()
	return starlark.NewList(elems), err
}

func (d *reader) object() (starlark.Value, error) {
	dict := new(starlark.Dict)
	for d.PeekKind() != '}' {
		name, err := d.ReadToken()
		if err != nil {
			return nil, err
		}
		key := starlark.String(name.String())
		v, err := d.value()
		if err != nil {
			return nil, err
		}
		if err := dict.SetKey(key, v); err != nil {
			return nil, err
		}
	}
	_, err := d.ReadToken()
	return dict, err
}

func number(s string) (starlark.Value, error) {
	if bytes.ContainsAny([]byte(s), ".eE") {
		f, err := strconv.ParseFloat(s, 64)
		if err != nil {
			return nil, fmt.Errorf("the number %s is too large", clip(s, maxName))
		}
		return starlark.Float(f), nil
	}
	if i, err := strconv.ParseInt(s, 10, 64); err == nil {
		return starlark.MakeInt64(i), nil
	}
	if len(s) > maxDigits {
		return nil, fmt.Errorf("an integer has more than %d digits", maxDigits)
	}
	i, ok := new(big.Int).SetString(s, 10)
	if !ok {
		return nil, fmt.Errorf("%s is no number", clip(s, maxName))
	}
	return starlark.MakeBigInt(i), nil
}
