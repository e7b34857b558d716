// Package host is what the measured Go programs share: a listener that says where it is, an end on SIGTERM, and, beside
// the server, a listener by which the harness looks into the process.
package host
