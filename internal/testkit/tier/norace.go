//go:build !race

package tier

const underRaceDetector = false
