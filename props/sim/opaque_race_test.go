//go:build race

package sim_test

const opaqueRuns = 10
