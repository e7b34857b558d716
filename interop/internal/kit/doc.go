// Package kit is what the tests with other projects' clients share: it builds and starts servers, keeps Python's and Node's
// packages in the user's cache directory, cuts connections, and runs the clients' own test programs.
//
// Such tests need Python, Node and a package index, so they run only where they are asked for: see [Need].
package kit
