//go:build race

package mutant

const race = true
