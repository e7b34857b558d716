// Package library is what code finds: Python's builtins, methods, operators and modules, over Starlark's values.
//
// Text is Starlark's string, of UTF-8, and counts in code points. Names that begin with $ are called by code that package dialect
// wrote, and cannot be spelt otherwise. Every loop charges the run's meter as it goes, and a value whose size is known asks it for
// room first.
package library
