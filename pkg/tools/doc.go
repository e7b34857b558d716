// Package tools turns Go functions into the tools of an environment.
//
// A tool is a typed function of the environment value:
//
//	func (g *Game) Guess(ctx context.Context, in Guess) (Answer, error)
//
//	tools.New(
//		tools.Func("guess", "Guess the number.", (*Game).Guess),
//	)
//
// [Func] derives the JSON Schemas of input and output from the two types, validates each call's arguments against the
// input schema before the function runs, and publishes both. [Do] is Func for tools that return nothing, [Modes] for
// tools with a variant per [Mode]. A [Set] is registered on a server of the official MCP SDK, so that every door of the
// server ends in the same handler.
//
// # Types and their schemas
//
// Schemas follow encoding/json: struct fields by their json names, embedded structs inlined unless a tag names them,
// time.Time and other text marshalers as strings, []byte as base64, json.RawMessage, interfaces and types with a
// MarshalJSON method as any value. A list or a map is never null, a pointer may be. A field of an input is optional if it
// is a pointer or carries omitempty, omitzero or a default.
//
// The description stands in the tag jsonschema; bounds stand in tags named after the JSON Schema keywords: enum
// (comma-separated), minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf, minLength, maxLength, pattern,
// format, minItems, maxItems, uniqueItems and default. They hold: formats too are checked, a default is filled in
// wherever the field is absent, and an output that breaks its own bounds is a failed call. A tag that does not fit its
// field is an error when the set is registered.
//
// A type that is a union or otherwise marshals itself says its schema by implementing [Schemer]; so must a type that
// contains itself. Integers beyond 64 bits, and numbers that the Go type would round to another integer, are refused
// though no schema says so.
//
// An output that is not an object is wrapped as {"result": X}, marked as FastMCP marks it, since MCP wants an object.
//
// # Errors
//
// [Fail] reports the tool's own failure, which the model reads as the tool's result; [Invalid] reports an argument that
// the schema could not refuse. Any other error is a failed call, and so is a panic. Callers see an [*Error] with an
// [ErrorType].
//
// # Recording
//
// A [Recorder] writes the calls of sessions to a cassette, and [Replay] has a tool answer from it in simulation. Fields tagged
// secret:"true" are never recorded; their schemas say writeOnly for inputs, and x-secret for outputs.
//
// # Concurrency
//
// Tools and sets are immutable once built. Calls on one environment value never overlap, save those of
// tools marked [Concurrent]; calls on different values do.
package tools
