package strictjson

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// A ValueError is JSON that does not fit its Go value, or a Go value that has no JSON form.
type ValueError struct {
	Path []string     // to the value: member names, and list indexes in digits
	Type reflect.Type // of the Go value
	Err  error        // what is wrong
}

// The library's own texts are worded differently from one process to the next, on purpose, so they are not used.
func (e *ValueError) Error() string {
	if len(e.Path) == 0 {
		return e.Err.Error()
	}
	return fmt.Sprintf("%.200s: %v", strings.Join(e.Path, "."), e.Err)
}

func (e *ValueError) Unwrap() error { return e.Err }

var kindNames = map[jsontext.Kind]string{
	'n': "null", 't': "a boolean", 'f': "a boolean", '"': "a string", '0': "a number", '{': "an object", '[': "a list",
}

// wrap turns the library's errors into this package's. input is nil where there is none.
func wrap(err error, input []byte) error {
	if err == nil {
		return nil // apart from the rest, whose variables cost allocations
	}
	return wrapped(err, input)
}

func wrapped(err error, input []byte) error {
	var value *json.SemanticError
	var syntax *jsontext.SyntacticError
	switch {
	case errors.As(err, &value):
	case errors.As(err, &syntax) && input == nil:
		return &ValueError{Path: tokens(syntax.JSONPointer), Err: syntax.Err}
	case errors.As(err, &syntax):
		return syntaxError(err, syntax.ByteOffset, len(input))
	default:
		return syntaxError(err, int64(len(input)), len(input))
	}
	e := &ValueError{Path: tokens(value.JSONPointer), Type: value.GoType, Err: value.Err}
	number := cut(string(value.JSONValue))
	switch {
	case errors.Is(value.Err, json.ErrUnknownName):
		e.Err = errors.New("unknown member")
	case errors.Is(value.Err, strconv.ErrRange) && value.JSONKind == '0':
		e.Err = fmt.Errorf("%s is out of the range of %s", number, value.GoType)
	case errors.Is(value.Err, strconv.ErrSyntax) && value.JSONKind == '0':
		e.Err = fmt.Errorf("%s is not an integer that %s can hold", number, value.GoType)
	case value.Err == nil && kindNames[value.JSONKind] != "":
		e.Err = fmt.Errorf("%s does not fit %s", kindNames[value.JSONKind], value.GoType)
	case value.Err == nil:
		e.Err = fmt.Errorf("the Go type %s has no JSON form", value.GoType)
	}
	return e
}

func tokens(p jsontext.Pointer) []string {
	path := []string{}
	for token := range p.Tokens() {
		path = append(path, token)
	}
	return path
}
