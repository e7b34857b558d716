//go:build race

package tools

// slowdown is how much less the tests with large inputs do under the race detector.
const slowdown = 10
