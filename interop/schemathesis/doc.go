// Package schemathesis holds the tests that run schemathesis, which makes requests of an OpenAPI document and holds the
// answers to it, against this project's example server: in both modes, on the public and on the control listener.
//
// They need Python 3.11 or newer and a package index, so they run only where they are asked for:
//
//	OPENENV_INTEROP=1 go test ./interop/...
//
// The same requests are made each time; the seed and the checks are in schemathesis.toml. To have more of them:
//
//	OPENENV_INTEROP=1 SCHEMATHESIS_EXAMPLES=1000 go test -v -timeout 2h ./interop/schemathesis
package schemathesis
