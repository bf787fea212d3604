package lease_test

import (
	"fmt"
	"time"

	"fencepost/impl/lease"
)

// A candidate before an object that a holder writes anew with each renewal. Its
// clock and the holder's may differ in rate by a fifth.
func ExampleSight() {
	const ttl, rate = 8 * time.Second, 0.2
	var seen lease.Sight
	for _, answer := range []struct {
		etag string
		came time.Duration // on the candidate's clock
	}{
		{"a", 100 * time.Second}, // written long ago, or just now: nobody here can tell
		{"a", 105 * time.Second},
		{"b", 109 * time.Second}, // a renewal
		{"b", 119 * time.Second}, // take over now, with If-Match: b
	} {
		seen = seen.See(answer.etag, answer.came)
		lapse := seen.Lapse(ttl, rate)
		fmt.Println(answer.came, seen.Version, "lapses at", lapse, answer.came >= lapse)
	}
	// Output:
	// 1m40s a lapses at 1m50s false
	// 1m45s a lapses at 1m50s false
	// 1m49s b lapses at 1m59s false
	// 1m59s b lapses at 1m59s true
}
