package electortest

import (
	"testing"

	"fencepost/props/kit"
)

const randomName = "random"

func random(t *testing.T, start func(Env) Candidate, o Options, e kit.Effort) kit.Outcome {
	return kit.Outcome{Skipped: "not yet"}
}
