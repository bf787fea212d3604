package props

import (
	"crypto/rand"
	"encoding/binary"
	"flag"
	"os"
	"strconv"

	"fencepost/props/kit"
)

// How hard to look, and from which seed. Flags fail in packages that do not
// import this one; the variables FENCEPOST_LONG and FENCEPOST_SEED work
// everywhere.
var (
	longFlag = flag.Bool("fencepost.long", false, "check stores, storages and clients at full length, as in a nightly run (FENCEPOST_LONG=1)")
	seedFlag = flag.Uint64("fencepost.seed", 0, "seed of everything random in them; 0: 1 in the quick mode, drawn in the long one (FENCEPOST_SEED)")
)

// quickSeed makes the quick mode a function of the code under test alone: the
// same commit gets the same answer.
const quickSeed = 1

// effort is what flags and environment ask for. The error names the variable
// that makes no sense.
func effort(getenv func(string) string) (e kit.Effort, err error) {
	e.Long, e.Seed = *longFlag, *seedFlag
	if v := getenv("FENCEPOST_LONG"); v != "" && !e.Long {
		if e.Long, err = strconv.ParseBool(v); err != nil {
			return e, &kit.OptionsError{Field: "FENCEPOST_LONG", Reason: strconv.Quote(v) + " is neither 1 nor 0"}
		}
	}
	if v := getenv("FENCEPOST_SEED"); v != "" && e.Seed == 0 {
		if e.Seed, err = strconv.ParseUint(v, 10, 64); err != nil {
			return e, &kit.OptionsError{Field: "FENCEPOST_SEED", Reason: strconv.Quote(v) + " is no number from 0 to 2^64-1"}
		}
	}
	switch {
	case e.Seed != 0:
	case e.Long:
		var b [8]byte
		rand.Read(b[:]) // never fails
		e.Seed = binary.BigEndian.Uint64(b[:])>>1 | 1
	default:
		e.Seed = quickSeed
	}
	return e, nil
}

// effortOf is the effort for t, and what a command needs before it to repeat
// the run.
func effortOf(t tester) (e kit.Effort, again string) {
	t.Helper()
	e, err := effort(os.Getenv)
	if err != nil {
		t.Fatalf("%v", err)
	}
	if e.Long {
		again = "FENCEPOST_LONG=1 "
		t.Logf("long mode, seed %d", e.Seed)
	}
	if e.Seed != quickSeed {
		again += "FENCEPOST_SEED=" + strconv.FormatUint(e.Seed, 10) + " "
	}
	return e, again
}
