//go:build !race

package main

// underRace says that costs are not what they are without the race detector.
const underRace = false
