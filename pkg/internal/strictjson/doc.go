// Package strictjson holds the JSON rules that every door of the server shares.
//
// Input passes [Check] once, before anything looks inside it: it must be one JSON value in valid UTF-8, no deeper than
// the limit, with no object that names a member twice. After that, [Unmarshal] reads it into Go values with the
// semantics that authors know from encoding/json, save five:
//
//   - names match exactly and never by case;
//   - a nil slice is written as [] and a nil map as {}, not as null;
//   - a number is never rounded to another integer: what its Go type cannot hold is an error;
//   - methods of a pointer type are called on values that cannot be addressed, too, so that a type has one JSON form;
//   - a [Raw] or json.RawMessage gets memory of its own, and what it held before is left alone.
//
// The work is done by github.com/go-json-experiment/json, the implementation behind the standard library's coming
// encoding/json/v2; this package only fixes its options, the treatment of numbers and the wording of errors.
//
// All functions may be called concurrently.
package strictjson
