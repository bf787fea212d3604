package linearizability

import "testing"

// soundRecords are what sound systems record, and what looks like one of the anomalies.
var soundRecords = []struct{ what, history string }{
	{"a renewal answered after the window it was sent in", `
		{"version":1}
		0-1 acquire key=k owner=a ttl=10 -> ok token=1
		1-19 lead key=k owner=a token=1 -> ok
		9-11 renew key=k owner=a token=1 ttl=10 -> ok`},
	{"a token from before the recording of one of two leases", `
		{"version":1}
		0-1 acquire key=x owner=a ttl=10 -> ok token=100
		0-1 acquire key=y owner=b ttl=10 -> ok token=5
		2-3 write key=s owner=c token=50 k=x v=1 -> ok`},
	{"a leader that still waits for the fence of another storage", `
		{"version":1,"barrier":true}
		0-1 acquire key=k owner=a ttl=10 -> ok token=1
		20-21 acquire key=k owner=b ttl=10 -> ok token=2
		21-22 fence key=s1 owner=b token=2 -> ok
		22- fence key=s2 owner=b token=2
		23-24 write key=s2 owner=a token=1 k=x v=1 -> ok`},
	{"a storage that the leader does not use", `
		{"version":1,"barrier":true}
		0-1 acquire key=k owner=a ttl=10 -> ok token=1
		20-21 acquire key=k owner=b ttl=10 -> ok token=2
		21-22 fence key=s1 owner=b token=2 -> ok
		22-29 lead key=k owner=b token=2 -> ok
		23-24 write key=s2 owner=a token=1 k=x v=1 -> ok`},
	{"two beliefs that tell no token", `
		{"version":1}
		0-1 acquire key=k owner=a ttl=10 -> ok token=1
		1-2 lead key=k owner=a -> ok
		2-3 release key=k owner=a token=1 -> ok
		3-4 acquire key=k owner=a ttl=10 -> ok token=2
		4-5 lead key=k owner=a -> ok`},
	{"a belief that tells no token", `
		{"version":1,"first":1}
		0-1 acquire key=k owner=a ttl=10 -> ok token=1
		1-2 lead key=k owner=a -> ok`},
	{"an acquire that found its own grant may have prolonged it", `
		{"version":1,"slots":1,"tokens":"rising"}
		0-1 acquire key=k owner=a ttl=10 -> ok token=1 slot=0 already=false
		1-17 lead key=k owner=a token=1 slot=0 -> ok
		8-9 acquire key=k owner=a ttl=10 -> ok token=1 slot=0 already=true`},
	{"a process that crashed, gives up and leads anew", `
		{"version":1}
		0-1 acquire key=k owner=a ttl=10 -> ok token=1
		1- lead key=k owner=a token=1
		3-4 release key=k owner=a token=1 -> ok
		5-6 acquire key=k owner=a ttl=10 -> ok token=2
		6-9 lead key=k owner=a token=2 -> ok`},
	{"a release that a copy of it overtook", `
		{"version":1}
		0-1 acquire key=k owner=a ttl=10 -> ok token=1
		3-6 release key=k owner=a token=1 -> fail error=lost
		4- release key=k owner=a token=1
		7-8 acquire key=k owner=b ttl=10 -> ok token=2`},
	{"a storage named like a lease, written to under another", `
		{"version":1}
		0-1 acquire key=k owner=a ttl=10 -> ok token=1
		0- acquire key=j owner=b ttl=10
		2-3 landed -> ok records=[{"key":"k","owner":"b","token":1}]`},
	{"releases and renewals whose tokens mean nothing", `
		{"version":1,"tokens":"none"}
		2-6 acquire key=k owner=a ttl=9 -> ok token=3
		7-8 release key=k owner=a token=2 -> ok
		9-10 acquire key=k owner=b ttl=7 -> ok token=1`},
	{"a renewal answered late, and a release after it, without tokens", `
		{"version":1,"tokens":"none"}
		0-1 acquire key=k owner=a ttl=10 -> ok
		8-12 renew key=k owner=a ttl=10 -> ok
		13-14 release key=k owner=a -> ok
		15-16 acquire key=k owner=b ttl=10 -> ok`},
	{"an acquire that finds its lease prolonged by a late renewal, and a release, without tokens", `
		{"version":1,"tokens":"none"}
		0-1 acquire key=k owner=a ttl=10 -> ok
		8-12 renew key=k owner=a ttl=10 -> ok
		13-14 acquire key=k owner=a ttl=2 -> ok
		15-16 release key=k owner=a -> ok
		16-17 acquire key=k owner=b ttl=10 -> ok`},
	{"a renewal of a slot that it does not hold", `
		{"version":1,"slots":2,"tokens":"rising"}
		0-1 acquire key=k owner=a ttl=10 -> ok token=2 slot=1
		3-5 renew key=k owner=a token=2 ttl=9 slot=0 -> fail error=lapsed`},
}

// TestWhatIsLegalHasNoFinding: no check cries wolf.
func TestWhatIsLegalHasNoFinding(t *testing.T) {
	for _, c := range soundRecords {
		t.Run(c.what, func(t *testing.T) {
			v := mustCheck(t, short(t, c.history), Options{Model: Model{Name: ModelFencepost}})
			if v.Result != Holds || len(v.Findings) > 0 {
				t.Errorf("want it to hold, with nothing found: %s", v)
			}
		})
	}
}
