// Package python holds the tests that run the stock OpenEnv Python clients against this project's example server.
//
// They need Python 3.11 or newer and a package index, so they run only where they are asked for:
//
//	OPENENV_INTEROP=1 go test ./interop/...
package python
