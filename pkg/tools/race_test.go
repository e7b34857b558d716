//go:build race

package tools

// slowdown is how much longer tests of time may take under the race detector.
const slowdown = 10
