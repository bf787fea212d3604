package bench

import (
	"fmt"
	"os"
	"testing"

	"fencepost/impl/clock"
)

// boot is one clock for all processes of a machine.
var boot = clock.Boot()

// candidateEnv makes this test binary a candidate instead.
const candidateEnv = "FENCEPOST_BENCH_CANDIDATE"

func TestMain(m *testing.M) {
	if text := os.Getenv(candidateEnv); text != "" {
		if err := stand(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}
