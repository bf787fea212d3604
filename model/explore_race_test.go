//go:build race

package model_test

// raceEnabled: the race detector makes exploring some ten times slower.
const raceEnabled = true
