//go:build !race

package strictjson

// raceDetector tells whether it is on; pools forget at random then.
const raceDetector = false
