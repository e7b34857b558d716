// Package scale is the shape of the published experiment with the reference: N sessions at once, each of which connects,
// resets, takes one step that waits, and closes. Where one process may not have that many connections, there are more
// processes, of servers and of clients.
package scale
