package etcd

import (
	"testing"

	"fencepost/impl/lease"
)

// A keep-alive alone renews nothing: each part of what the read after it must
// show is needed.
func TestRenewedOnlyIfTheReadAfterProvesIt(t *testing.T) {
	alice, bob := lease.Holder{Node: "alice", Seq: 1}, lease.Holder{Node: "bob", Seq: 1}
	call := lease.Call{Resource: "r", Request: lease.Request{Op: lease.OpRenew, Holder: alice, Token: 7}}
	proved := renewal{call: &call, tenure: tenure{holder: alice, token: 7, lease: 70}, term: 3, kept: 70, alive: alive{seconds: 5, term: 3}}
	if !proved.renewed() {
		t.Fatal("nothing is missing, and it does not count")
	}
	for why, spoil := range map[string]func(*renewal){
		"the key was deleted":                       func(r *renewal) { r.tenure = tenure{} },
		"the key was created anew":                  func(r *renewal) { r.tenure.token = 8 },
		"the key is another holder's":               func(r *renewal) { r.tenure.holder = bob },
		"the key is attached to another etcd lease": func(r *renewal) { r.tenure.lease = 71 },
		"the etcd lease had ended":                  func(r *renewal) { r.alive.seconds = 0 },
		"a deposed leader noted it":                 func(r *renewal) { r.term = 4 },
	} {
		r := proved
		if spoil(&r); r.renewed() {
			t.Errorf("%s, and it counts", why)
		}
	}
}
