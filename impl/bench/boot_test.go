package bench

import (
	"testing"

	"fencepost/impl/clock"
	"fencepost/props/daemon"
)

// boot is one clock for all processes of a machine.
var boot = clock.Boot()

// TestMain makes this test binary a candidate too.
func TestMain(m *testing.M) { daemon.Main(m, stand) }
