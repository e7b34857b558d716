//go:build race

package transport

// RaceDetector tells whether it is on; the tests of both packages here ask.
const RaceDetector = true
