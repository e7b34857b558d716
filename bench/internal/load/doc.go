// Package load is the load generator: sessions by every door, each with one request under way at a time, and every reply
// checked.
package load
