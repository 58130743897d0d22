//go:build !race

package send

// raceDetector says that the tests run under it.
const raceDetector = false
