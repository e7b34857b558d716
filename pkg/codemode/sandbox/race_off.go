//go:build !race

package sandbox

// shadow is how many bytes of data there are for one that code holds.
const shadow = 1
