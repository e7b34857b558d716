// Package conventions has only tests: they hold the project to what its documents say of it.
package conventions
