//go:build race

package send

// raceDetector says that the tests run with the race detector.
const raceDetector = true
