// Package strictjson holds the JSON rules that every door of the server shares.
//
// Input passes [Check] once, before anything looks inside it: it must be one JSON value in valid UTF-8, no deeper than
// the limit, with no object that names a member twice. After that, [Unmarshal] reads it into Go values with the
// semantics that authors know from encoding/json, save three: names match exactly and never by case, a nil slice is
// written as [] and not as null, and a number is never rounded to another integer.
//
// The work is done by github.com/go-json-experiment/json, the implementation behind the standard library's coming
// encoding/json/v2; this package only fixes its options and the treatment of numbers.
//
// All functions may be called concurrently.
package strictjson
