//go:build unix

package mylease

import (
	"testing"

	"fencepost/impl/lease"
	"fencepost/props"
)

// Files are kept in a directory, and a store need not know of fencepost: its
// methods are plain functions.
func TestFiles(t *testing.T) {
	props.TestStore(t, func(e props.Env) lease.Store {
		f, err := OpenFiles(e.Dir(), e.Clock.Now, true) // each process has a clock of its own, as after a reboot
		if err != nil {
			e.Fatal(err)
		}
		return props.Funcs{Acquire: f.Acquire, Renew: f.Renew, Release: f.Release}.Store()
	}, props.Options{Calls: 1_000}) // each call rewrites the file
}
