package kit

import (
	"slices"
	"time"
)

// Pace is how many calls to make of something, where nobody has said: by how
// long some calls of it take in real time, so that the quick mode stays one. It
// has few steps, so that runs of the same code mostly agree.
func Pace(call func(i int)) int {
	const enough = 60 // for a median
	took := make([]time.Duration, enough)
	for i := range took {
		began := time.Now()
		call(i)
		took[i] = time.Since(began)
	}
	slices.Sort(took)
	switch each := took[enough/2]; {
	case each < 60*time.Microsecond:
		return DefaultCalls
	case each < 300*time.Microsecond:
		return DefaultCalls / 4
	}
	return DefaultCalls / 10
}
