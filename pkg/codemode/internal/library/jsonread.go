package library

import (
	"errors"
	"io"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"

	"github.com/openenv-go/openenv-go/pkg/codemode/internal/fault"
)

func (l *library) json() *starlarkstruct.Module {
	return &starlarkstruct.Module{Name: "json", Members: starlark.StringDict{
		"loads": l.builtin("json.loads", jsonLoads), "dumps": l.builtin("json.dumps", jsonDumps),
		"decode": l.builtin("json.decode", jsonDecode), "encode": l.builtin("json.encode", jsonEncode),
		"indent": l.builtin("json.indent", jsonIndent),
	}}
}

func jsonLoads(c *call) (starlark.Value, error) {
	var x starlark.Value
	if err := c.take(1, &x); err != nil {
		return nil, err
	}
	s, ok := x.(starlark.String)
	if !ok {
		e := fault.New("TypeError", "json.loads: want text, not %s", typeName(x))
		if typeName(x) == "dict" || typeName(x) == "list" {
			return nil, e.Hinted("it is a value already: use it as it is")
		}
		return nil, e
	}
	return c.readJSON(string(s))
}

// jsonDecode is Starlark's: a default is what bad JSON gives.
func jsonDecode(c *call) (starlark.Value, error) {
	var s string
	var otherwise starlark.Value
	if err := c.bind("x", &s, "default?", &otherwise); err != nil {
		return nil, err
	}
	v, err := c.readJSON(s)
	var bad *fault.Exception
	if errors.As(err, &bad) && otherwise != nil {
		return otherwise, nil
	}
	return v, err
}

// readJSON reads one value, and nothing else.
func (c *call) readJSON(s string) (starlark.Value, error) {
	if err := c.text(len(s)); err != nil {
		return nil, err
	}
	if err := c.scan(8 * len(s)); err != nil {
		return nil, err
	}
	r := jsonReader{call: c, text: s}
	r.dec = jsontext.NewDecoder(strings.NewReader(s), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	v, err := r.value()
	if err != nil {
		return nil, err
	}
	end := r.dec.InputOffset()
	if _, err := r.dec.ReadToken(); err != io.EOF {
		end += int64(len(s[end:]) - len(strings.TrimLeft(s[end:], " \t\r\n")))
		return nil, r.bad("there is more after the value", end)
	}
	return v, nil
}

type jsonReader struct {
	*call
	dec    *jsontext.Decoder
	text   string
	values int
}

// bad is what is wrong at a byte of the text.
func (r *jsonReader) bad(what string, at int64) error {
	before := r.text[:min(int(at), len(r.text))]
	line := 1 + strings.Count(before, "\n")
	column := 1 + utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:])
	e := fault.New("JSONDecodeError", "json: %s: line %d column %d", what, line, column)
	switch {
	case strings.TrimSpace(r.text) == "":
		return e.Hinted("the text is empty")
	case strings.Contains(r.text, "'") && !strings.Contains(r.text, `"`):
		return e.Hinted(`JSON has double quotes: it is made by json.dumps, not by str`)
	}
	return e.Hinted("the text begins with %s", Repr(starlark.String(r.text[:offset(r.text, 40)])))
}

func (r *jsonReader) token() (jsontext.Token, error) {
	if err := r.step(2); err != nil {
		return jsontext.Token{}, err
	}
	if r.values++; r.values&4095 == 0 {
		if err := r.meter.Room(r.values * entryBytes / 2); err != nil {
			return jsontext.Token{}, err
		}
	}
	t, err := r.dec.ReadToken()
	if err == nil {
		return t, nil
	}
	var syntax *jsontext.SyntacticError
	if !errors.As(err, &syntax) || errors.Is(err, io.ErrUnexpectedEOF) || err == io.EOF {
		return t, r.bad("the text ends within a value", int64(len(r.text)))
	}
	what := "this is no JSON"
	if syntax.Err != nil {
		what = syntax.Err.Error()
	}
	return t, r.bad(what, syntax.ByteOffset)
}

func (r *jsonReader) value() (starlark.Value, error) {
	t, err := r.token()
	if err != nil {
		return nil, err
	}
	return r.from(t)
}

// from is the value that begins with t.
func (r *jsonReader) from(t jsontext.Token) (starlark.Value, error) {
	if depth := r.meter.Depth(); r.dec.StackDepth() > depth {
		return nil, nestingLimit(depth)
	}
	switch t.Kind() {
	case 'n':
		return starlark.None, nil
	case 't', 'f':
		return starlark.Bool(t.Bool()), nil
	case '"':
		return starlark.String(t.String()), nil
	case '0':
		return r.number(t.String())
	case '[':
		return r.list()
	case '{':
		return r.dict()
	}
	return nil, r.bad("a value is missing", r.dec.InputOffset()-1)
}

func (r *jsonReader) number(s string) (starlark.Value, error) {
	if strings.ContainsAny(s, ".eE") {
		f, err := strconv.ParseFloat(s, 64)
		if err != nil && !errors.Is(err, strconv.ErrRange) {
			return nil, r.bad("this is no number", r.dec.InputOffset()-int64(len(s)))
		}
		return starlark.Float(f), nil
	}
	if len(s) > maxDigits {
		return nil, r.bad("an integer of "+itoa(len(s))+" digits is too large", r.dec.InputOffset()-int64(len(s)))
	}
	i, ok := new(big.Int).SetString(s, 10)
	if !ok {
		return nil, r.bad("this is no number", r.dec.InputOffset()-int64(len(s)))
	}
	return starlark.MakeBigInt(i), nil
}

func (r *jsonReader) list() (starlark.Value, error) {
	var values []starlark.Value
	for {
		t, err := r.token()
		if err != nil {
			return nil, err
		}
		if t.Kind() == ']' {
			return starlark.NewList(values), nil
		}
		v, err := r.from(t)
		if err != nil {
			return nil, err
		}
		values = append(values, v)
	}
}

func (r *jsonReader) dict() (starlark.Value, error) {
	d := new(starlark.Dict)
	for {
		t, err := r.token()
		if err != nil {
			return nil, err
		}
		if t.Kind() == '}' {
			return d, nil
		}
		key := starlark.String(t.String())
		v, err := r.value()
		if err != nil {
			return nil, err
		}
		if err := d.SetKey(key, v); err != nil {
			return nil, r.typeError(err)
		}
	}
}
