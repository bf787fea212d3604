//go:build !race

package judge_test

const raceDetector = false
