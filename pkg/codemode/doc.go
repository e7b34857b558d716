// Package codemode is the language of code mode: Python as models write it, run by Starlark, with an environment's tools as
// functions. [Run] runs a piece of code in the calling process, bounded in all but memory; package sandbox runs it where
// memory is bounded too.
//
// docs/code-mode.md says what the language has, and what differs from Python.
package codemode
