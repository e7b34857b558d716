package codemode

import (
	"errors"
	"strings"

	"go.starlark.net/starlark"

	"github.com/openenv-go/openenv-go/pkg/codemode/internal/fault"
	"github.com/openenv-go/openenv-go/pkg/codemode/internal/library"
)

// A class is a class of exceptions. Calling it makes one.
type class struct {
	name   string
	parent *class
}

// classes are the classes that code can name: Python's, and ToolError for failures of tools.
var classes = makeClasses()

const (
	classException = "Exception"
	classTool      = "ToolError"
)

func makeClasses() starlark.StringDict {
	all := starlark.StringDict{}
	define := func(parent string, names ...string) {
		p, _ := all[parent].(*class)
		for _, n := range names {
			all[n] = &class{name: n, parent: p}
		}
	}
	define("", "BaseException")
	define("BaseException", classException, "KeyboardInterrupt")
	define(classException, classTool, "ArithmeticError", "AssertionError", "AttributeError", "EOFError", "ImportError", "LookupError",
		"MemoryError", "NameError", "OSError", "RuntimeError", "StopIteration", "TypeError", "ValueError")
	define("ArithmeticError", "FloatingPointError", "OverflowError", "ZeroDivisionError")
	define("ImportError", "ModuleNotFoundError")
	define("LookupError", "IndexError", "KeyError")
	define("RuntimeError", "NotImplementedError", "RecursionError")
	define("NameError", "UnboundLocalError")
	define("OSError", "ConnectionError", "FileExistsError", "FileNotFoundError", "PermissionError", "TimeoutError")
	define("ValueError", "UnicodeError", "JSONDecodeError", "PatternError")
	define("UnicodeError", "UnicodeDecodeError", "UnicodeEncodeError")
	all["IOError"] = all["OSError"]
	return all
}

// native are the classes of errors that the interpreter raises itself, which has one kind of them for what Python tells
// apart: a wrong operand, a wrong argument, a list with too many values to unpack, a dict that is changed while it is walked.
var native = map[string]bool{"TypeError": true, "ValueError": true, "RuntimeError": true}

func classOf(name string) *class {
	c, ok := classes[name].(*class)
	if !ok {
		c = classes[classException].(*class)
	}
	return c
}

func (c *class) String() string        { return "<class " + c.name + ">" }
func (c *class) Type() string          { return "type" }
func (c *class) Freeze()               {}
func (c *class) Truth() starlark.Bool  { return true }
func (c *class) Hash() (uint32, error) { return starlark.String(c.name).Hash() }
func (c *class) Name() string          { return c.name }
func (c *class) AttrNames() []string   { return []string{"__name__"} }

func (c *class) Attr(name string) (starlark.Value, error) {
	if name == "__name__" {
		return starlark.String(c.name), nil
	}
	return nil, nil
}

// CallInternal implements starlark.Callable: ValueError("…") is an exception.
func (c *class) CallInternal(t *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	if len(kwargs) > 0 {
		return nil, fault.New("TypeError", "%s takes no keyword arguments", c.name)
	}
	x := &exception{class: c, args: args}
	var err error
	switch len(args) {
	case 0:
		return x, nil
	case 1:
		x.text, err = library.Str(t, args[0])
		if err == nil {
			x.literal, err = literalOf(t, args[0])
		}
	default:
		x.text, err = library.Str(t, args)
		x.literal = strings.Trim(x.text, "()")
	}
	return x, err
}

// within reports whether c is d or stands below it.
func (c *class) within(d *class) bool {
	for ; c != nil; c = c.parent {
		if c == d {
			return true
		}
	}
	return false
}

// Instance reports whether v is an exception of the class.
func (c *class) Instance(v starlark.Value) bool {
	x, ok := v.(*exception)
	return ok && x.class.within(c)
}

// catches reports whether an except clause of the class catches an error.
func (c *class) catches(err error) bool {
	if c == classOf(classException) || c == classOf(classException).parent {
		return true
	}
	var raised *fault.Exception
	if errors.As(err, &raised) {
		return classOf(raised.Class).within(c)
	}
	return native[c.name]
}

// An exception is what code makes by calling a class, and what except and try_call bind.
type exception struct {
	class   *class
	args    starlark.Tuple
	text    string // str() of it
	literal string // its arguments as they are written
	hint    string
	cause   error      // what it was caught as; nil: it was not raised yet
	tool    string     // the published name of the tool that failed, and
	call    *CallError // how
}

// said is an exception with a message.
func said(c *class, message string) *exception {
	s := starlark.String(message)
	return &exception{class: c, args: starlark.Tuple{s}, text: message, literal: s.String()}
}

// caught is the exception that an error is to the code. One of the interpreter's own has the class by which it was caught.
func caught(err error, by *class) *exception {
	var raised *fault.Exception
	if !errors.As(err, &raised) {
		x := said(by, messageOf(err))
		x.cause = err
		return x
	}
	if x, ok := raised.Value.(*exception); ok {
		x.cause = err
		return x
	}
	x := said(classOf(raised.Class), raised.Message)
	x.hint, x.cause = raised.Hint, err
	return x
}

// raise is the error that x is when it is raised. Raised again, it is what it was, with the place where it arose.
func (x *exception) raise() error {
	if x.cause != nil {
		return x.cause
	}
	return &fault.Exception{Class: x.class.name, Message: x.message(), Hint: x.hint, Value: x}
}

// message is what the exception says to people: its text, or the name of its class where it has none.
func (x *exception) message() string {
	if x.text == "" {
		return x.class.name
	}
	return x.text
}

// Text implements fault.Texter.
func (x *exception) Text() string { return x.text }

// Class is what type gives.
func (x *exception) Class() starlark.Value { return x.class }

func (x *exception) String() string        { return x.class.name + "(" + x.literal + ")" }
func (x *exception) Type() string          { return x.class.name }
func (x *exception) Freeze()               { x.args.Freeze() }
func (x *exception) Truth() starlark.Bool  { return true }
func (x *exception) Hash() (uint32, error) { return starlark.String(x.class.name).Hash() }

func (x *exception) AttrNames() []string { return []string{"args", "kind", "message", "tool"} }

// Attr has what Python's exceptions have, and what the errors of try_call have.
func (x *exception) Attr(name string) (starlark.Value, error) {
	switch name {
	case "args":
		return x.args, nil
	case "message":
		return starlark.String(x.message()), nil
	case "kind":
		if x.call != nil {
			return starlark.String(x.call.Type), nil
		}
		return starlark.String("error"), nil
	case "tool":
		if x.call != nil {
			return starlark.String(x.tool), nil
		}
		return starlark.None, nil
	}
	return nil, nil
}
