// Package memnet is a network in memory for tests: connections that exist inside a bubble of testing/synctest, so that what
// goes over them happens in fake time.
package memnet
