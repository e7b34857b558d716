//go:build race

package sandbox

// shadow is how many bytes of data there are for one that code holds: the race detector keeps notes of all.
const shadow = 5
