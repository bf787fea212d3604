package fence_test

import (
	"context"
	"errors"
	"fmt"

	"fencepost/impl/fence"
)

// entries is a Journal for the sake of the example: what is in the slice counts
// as durable. A real one appends to a file and syncs it.
type entries []fence.Entry

func (j *entries) Append(e fence.Entry) error {
	*j = append(*j, e)
	return nil
}

func (j *entries) replay() (d fence.Durable, err error) {
	for _, e := range *j {
		if err := d.Apply(e); err != nil {
			return d, err
		}
	}
	return d, nil
}

// A storage that restarts still refuses what it refused before.
func ExampleRestore() {
	ctx := context.Background()
	var journal entries
	s := fence.Restore(fence.Durable{}, &journal)
	fmt.Println(s.Write(ctx, 34, "X", "2"))

	d, err := journal.replay() // the process is gone; the journal is not
	fmt.Println(d.Highest, d.Values, err)
	s = fence.Restore(d, &journal)
	fmt.Println(errors.Is(s.Write(ctx, 33, "X", "1"), fence.ErrStale))
	// Output:
	// <nil>
	// 34 map[X:2] <nil>
	// true
}
