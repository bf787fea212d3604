//go:build !race

package sim_test

// opaqueRuns is how many schedules an opaque store is compared in: a tenth under
// the race detector, which takes ten times as long.
const opaqueRuns = 100
