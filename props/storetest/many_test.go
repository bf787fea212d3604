package storetest

import (
	"fmt"
	"testing"

	"fencepost/impl/lease"
	"fencepost/props/kit"
)

func TestAStoreThatKeepsOnlySoManyLeasesIsConvicted(t *testing.T) {
	for only, limits := range map[lease.Status][]int{lease.Free: {16, 512}, lease.Running: {16, 1000, 1024}} {
		for _, keeps := range limits {
			t.Run(fmt.Sprint(keeps, only), func(t *testing.T) {
				// The lease that was asked for longest ago gives way.
				open := func(e kit.Env) lease.Store {
					s := &forgetful{keeps: keeps, only: only, e: e, recs: map[string]row{}}
					s.Handler = s.handle
					return s
				}
				out := Many(open, kit.Options{}, kit.Effort{}).Run()
				if out.Failure == nil || len(out.Failure.Story) > 10 {
					t.Errorf("not convicted in a few lines: %+v", out)
				} else {
					t.Log(tell(out.Failure))
				}
			})
		}
	}
}

func TestManyLeasesAreNoHarmToARightStore(t *testing.T) {
	for name, v := range variants() {
		if out := Many(v.open, v.o, kit.Effort{}).Run(); out.Covered == "" {
			t.Errorf("%s: %+v", name, out)
		}
	}
}
