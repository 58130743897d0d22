//go:build race

package tier

const underRaceDetector = true
