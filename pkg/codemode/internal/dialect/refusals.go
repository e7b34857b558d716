package dialect

import (
	"maps"
	"slices"
	"strings"
)

// There are modules that code may import, if Options know them.
var importable = []string{"json", "math", "re", "collections"}

// dropped are modules whose names only annotations use, which are dropped as well.
var dropped = map[string]bool{"typing": true, "__future__": true, "typing_extensions": true, "collections.abc": true}

const (
	viaTools  = "the tools are all that reaches outside: list_tools() lists them"
	noClock   = "there is no clock: a tool may tell the time, and times compare as text"
	noFiles   = "there are no files: print text, set result, or use a tool"
	oneByOne  = "calls are made one after the other: call the tools in a loop"
	noRandom  = "there is no randomness: take what a tool returns, or go by a rule"
	loops     = "write a loop, or a list comprehension such as [x for xs in xss for x in xs]"
	plainDict = "keep data in a dict, {\"number\": 1}"
	byHand    = "write it with loops, sum, min, max, sorted and math"
)

// modules are what people import, with what to do instead.
var modules = map[string]string{
	"os": "there is no system below: json, math, re and collections are there, and the tools", "sys": viaTools, "subprocess": viaTools, "shutil": noFiles, "pathlib": noFiles,
	"io": noFiles, "glob": noFiles, "tempfile": noFiles, "csv": "split lines by hand, and write them with join", "sqlite3": viaTools, "pickle": "use json", "yaml": "use json",
	"requests": viaTools, "httpx": viaTools, "urllib": viaTools, "http": viaTools, "socket": viaTools, "aiohttp": viaTools, "bs4": viaTools,
	"datetime": noClock, "time": noClock, "calendar": noClock, "zoneinfo": noClock, "dateutil": noClock, "random": noRandom + " (a tool may have some)", "secrets": noRandom, "uuid": noRandom,
	"asyncio": oneByOne, "threading": oneByOne, "concurrent": oneByOne, "multiprocessing": oneByOne, "queue": oneByOne,
	"itertools": loops, "functools": loops, "more_itertools": loops, "operator": "write a lambda", "dataclasses": plainDict, "enum": plainDict, "abc": plainDict,
	"types": plainDict, "pydantic": plainDict, "statistics": byHand, "numpy": byHand, "pandas": byHand, "scipy": byHand, "decimal": "integers are exact: count in cents",
	"fractions": "integers are exact", "string": "write the letters out", "textwrap": "use the methods of text", "copy": "use list(xs), dict(d), or json.loads(json.dumps(x))",
	"logging": "use print", "pprint": "use print(json.dumps(x, indent=2))", "traceback": "use print(e)", "heapq": "use sorted", "bisect": "use a loop",
	"hashlib": "hash(x) is there, for text and numbers", "base64": byHand, "inspect": "help(tool) tells about a tool", "builtins": "they are there without import",
	"typing": "leave types out", "contextlib": "write try and finally", "tools": "the tools' functions are there without import",
}

// refused are names of Python that are not there.
var refused = map[string]string{
	"open":  "there is no open, as there are no files: a tool may have the data; print or set result to hand text out",
	"input": "there is nobody to ask: take what you were told, or what a tool returns", "eval": "code is not made from text: for data use json.loads(text)",
	"exec": "code is not made from text: write it here", "compile": "code is not made from text; for patterns there is re.compile", "__import__": "nothing is imported: " + viaTools,
	"load": "nothing is loaded: json, math, re and the tools are there", "globals": "keep names in a dict", "locals": "keep names in a dict", "vars": "keep names in a dict",
	"getattr": "write x[\"name\"] or x.get(\"name\")", "setattr": "write x[\"name\"] = v", "delattr": "write x.pop(\"name\")", "hasattr": "write \"name\" in x",
	"super": plainDict, "object": plainDict, "property": plainDict, "classmethod": plainDict, "staticmethod": plainDict, "self": "there are no classes: pass a dict to a function",
	"iter": "loop over x itself", "bytes": "text is Unicode, and there are no bytes", "bytearray": "text is Unicode, and there are no bytes", "memoryview": "text is Unicode, and there are no bytes",
	"exit": "use return, or fail(\"why\")", "quit": "use return, or fail(\"why\")", "SystemExit": "use return, or fail(\"why\")", "breakpoint": "use print", "id": "compare with is or ==", "complex": "there are no complex numbers",
	"true": "write True", "false": "write False", "null": "write None", "nil": "write None", "undefined": "write None", "NaN": "write float(\"nan\")", "console": "write print(…)",
	"elseif": "write elif", "elsif": "write elif", "const": "write name = value", "let": "write name = value", "var": "write name = value", "function": "write def", "NotImplemented": "write None",
	"__builtins__": "built-ins are there by their names", "__file__": "there are no files", "tools": "the tools are functions, without a prefix",
}

// missing are keywords whose statements are not there.
var missing = map[string]string{
	"class": "keep data in a dict and write functions with def that take it",
	"with":  "there are no files or locks to hold: set result or print, and use try and finally",
	"yield": "append to a list and return it",
	"await": "write the call without await: it returns when it is done",
}

// refuseKeyword says why an expression or a statement cannot begin with a keyword.
func (p *parser) refuseKeyword(t token) {
	if name, ok := p.o.Functions[t.text]; ok && p.ahead().is("(") {
		t.failHint("write "+name+"(…)", "%s is a keyword; the tool's function is %s", t.text, name)
	}
	if hint, ok := missing[t.text]; ok {
		t.failHint(hint, "there is no %s", t.text)
	}
	if t.text == "async" {
		word := "def"
		if next := p.ahead(); next.is("for", "with") {
			word = next.text
		}
		t.failHint("write "+word+": calls are made one after the other", "there is no async")
	}
	switch {
	case p.ahead().is("="):
		t.failHint("write "+t.text+"_", "%s is a keyword, no name", t.text)
	case t.is("else", "elif", "except", "finally"):
		t.failHint("indent it as that statement", "%s belongs to no statement above", t.text)
	}
	p.unexpected("expected an expression")
}

// isMatch tells a match statement from a variable of that name: its line ends with a colon.
func (p *parser) isMatch() bool {
	i := p.i + 1
	if p.tokens[i].is("=", ".", ",", ":") {
		return false
	}
	for p.tokens[i].kind != newlineToken && i < len(p.tokens)-1 {
		i++
	}
	return p.tokens[i-1].is(":")
}

// refuseDecorator shows what to write for the function that is decorated.
func (p *parser) refuseDecorator() {
	at := p.next().place
	from := p.i
	for p.tok().kind != newlineToken && p.tok().kind != endToken {
		p.next()
	}
	var text strings.Builder
	for _, t := range p.tokens[from:p.i] {
		if t.kind == stringToken {
			t.text = "…"
		}
		text.WriteString(t.text)
	}
	for p.tok().kind == newlineToken || p.tok().is("@") {
		for p.next().kind != newlineToken {
			if p.tok().kind == endToken {
				break
			}
		}
	}
	name := "f"
	if p.tok().is("def") && p.ahead().kind == nameToken {
		name = p.ahead().text
	}
	at.failHint("after the function, write "+name+" = "+text.String()+"("+name+")", "there are no decorators, so no @")
}

// importLine reads import and from … import …. What is there is assigned if it gets another name, all else is refused.
func (p *parser) importLine() (out []stmt) {
	t := p.next()
	if t.text == "from" {
		return p.importFrom(t)
	}
	for {
		module := p.moduleName()
		p.checkModule(t.place, "import "+module, module)
		alias := p.alias()
		if alias != nil && !dropped[module] {
			out = append(out, &assign{t.place, []expr{alias}, &builtinExpr{t.place, module}})
		}
		if !p.accept(",") {
			return append(out, &branch{t.place, "pass"})
		}
	}
}

func (p *parser) importFrom(t token) (out []stmt) {
	if p.tok().is(".", "...") {
		t.failHint("all code is here", "import from a file beside this one")
	}
	module := p.moduleName()
	p.checkModule(t.place, "from "+module+" import", module)
	if !p.tok().is("import") {
		p.unexpected("expected import after the module")
	}
	p.next()
	if p.tok().is("*") {
		t.failHint("write import "+module+", or name what you need", "import of everything by *")
	}
	names := func() {
		name := p.name("to import")
		target := name
		if alias := p.alias(); alias != nil {
			target = alias
		}
		if !dropped[module] {
			out = append(out, &assign{t.place, []expr{target}, &attribute{name.place, &builtinExpr{name.place, module}, name.name, name.place}})
		}
	}
	if p.tok().is("(") {
		p.bracketed(")", func() { p.until(")", names) })
	} else {
		for names(); p.accept(","); {
			names()
		}
	}
	return append(out, &branch{t.place, "pass"})
}

func (p *parser) moduleName() string {
	name := p.name("of a module").name
	for p.accept(".") {
		name += "." + p.name("of a module").name
	}
	return name
}

func (p *parser) alias() *nameExpr {
	if p.accept("as") {
		return p.name("after as")
	}
	return nil
}

// checkModule refuses a module that is not there.
func (p *parser) checkModule(at place, line, module string) {
	if dropped[module] || slices.Contains(importable, module) && slices.Contains(p.o.Known, module) {
		return
	}
	top, rest, _ := strings.Cut(module, ".")
	hint, ok := modules[top]
	if slices.Contains(importable, top) && rest != "" {
		hint = "write import " + top
	} else if !ok {
		if _, isTool := p.o.Functions[top]; isTool || slices.Contains(slices.Collect(maps.Values(p.o.Functions)), top) {
			hint = "the tools' functions are there without import"
		} else {
			hint = viaTools
		}
	}
	var there []string
	for _, m := range importable {
		if slices.Contains(p.o.Known, m) {
			there = append(there, m)
		}
	}
	at.failHint(hint, "%s: there is no module %s, only %s", line, module, Listed(there, "and"))
}
