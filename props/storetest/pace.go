package storetest

import (
	"context"
	"strconv"

	"fencepost/impl/lease"
	"fencepost/props/kit"
	"fencepost/props/script"
)

// paced is o with as many calls as the store that open makes has time for, if
// nobody has said how many. What goes wrong in finding out is for the checks.
func paced(open script.Open, o kit.Options, w *kit.Watch) kit.Options {
	if o.Calls != 0 {
		return o
	}
	paces := make(chan int, 1)
	w.Run(func() kit.Outcome {
		lab := newLab(kit.Watched(w, open), o)
		defer lab.Close()
		ctx, holder, ttl := context.Background(), node("a"), timesOf(o).ttl
		var g lease.Grant
		paces <- kit.Pace(func(i int) {
			resource := "pace-" + strconv.Itoa(i/3)
			switch i % 3 {
			case 0:
				lab.Call(func() { g, _ = lab.Thing().Acquire(ctx, resource, holder, ttl) })
			case 1:
				lab.Call(func() { lab.Thing().Renew(ctx, resource, holder, g.Token, ttl) })
			case 2:
				lab.Call(func() { lab.Thing().Release(ctx, resource, holder, g.Token) })
			}
		})
		return kit.Outcome{}
	})
	select {
	case o.Calls = <-paces:
	default:
	}
	return o
}
