// Package session keeps the sessions of a server: one environment value each, reachable by whoever knows its id.
//
// A [Manager] opens sessions within a capacity and finds them by id. A [Session] gives the calls on its environment value
// their turns, in arrival order and never two at once, a deadline each, and an end: the caller's context, the deadline
// or the session's close ends a call's context at once, and a caller who still waits gets an answer at once, even if the
// author's function does not return. Such a function keeps its own session busy and nobody else's.
//
// A session takes one slot from before its environment is built until after it is closed. It ends with the socket that
// owns it, by [Manager.Close], when it has been idle too long, or at [Manager.Shutdown]; each way leads through the same
// teardown.
//
// An MCP client that has initialised is an [Agent] of its session: one at a time, a new one replaces the old.
//
// The package knows nothing of HTTP or WebSockets. All exported methods may be called concurrently.
package session
