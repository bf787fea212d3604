package linearizability

import "testing"

// TestTenuresThatContradictAreMarked: each slot by itself.
func TestTenuresThatContradictAreMarked(t *testing.T) {
	for _, slots := range []int{0, 2} {
		meta, slot := `{"version":1}`, ""
		if slots > 0 {
			meta, slot = `{"version":1,"slots":2,"tokens":"rising"}`, "slot=1"
		}
		v := mustCheck(t, short(t, meta+`
			0-1 acquire key=k owner=a ttl=100 -> ok token=1 `+slot+`
			10-11 acquire key=k owner=b ttl=100 -> ok token=2 `+slot), Options{Model: Model{Name: ModelFencepost}})
		page, err := v.Page(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if ts := page.Resources[0].Tenures; len(ts) != 2 || !ts[0].Violates || !ts[1].Violates {
			t.Errorf("%d slots: %+v", slots, ts)
		}
	}
}

// TestTenuresThatAreLegalAreNotMarked: the bands of a legal history contradict
// nothing.
func TestTenuresThatAreLegalAreNotMarked(t *testing.T) {
	for what, text := range map[string]string{
		"deleted": `
			{"version":1}
			0-1 acquire key=k owner=a ttl=100 -> ok token=1
			5-6 delete key=k -> ok
			10-11 acquire key=k owner=b ttl=100 -> ok token=2`,
		"deleted, nobody knows when": `
			{"version":1}
			0- delete key=k
			1-2 acquire key=k owner=a ttl=100 -> ok token=1
			10-11 acquire key=k owner=b ttl=100 -> ok token=2`,
		"renewed while a deletion is under way": `
			{"version":1}
			0-1 acquire key=k owner=a ttl=100 -> ok token=1
			2- delete key=k
			5-6 renew key=k owner=a token=1 ttl=100 -> ok
			10-11 acquire key=k owner=b ttl=100 -> ok token=2`,
		"renewed while a release is under way": `
			{"version":1}
			0-1 acquire key=k owner=a ttl=100 -> ok token=1
			2- release key=k owner=a token=1
			5-6 renew key=k owner=a token=1 ttl=100 -> ok
			10-11 acquire key=k owner=b ttl=100 -> ok token=2`,
		"in slots": `
			{"version":1,"slots":2,"tokens":"rising"}
			0-1 acquire key=k owner=a ttl=100 -> ok token=1 slot=0
			10-11 acquire key=k owner=b ttl=100 -> ok token=2 slot=1`,
		"released by a copy": `
			{"version":1}
			0-4 acquire key=k owner=a ttl=100 -> ok token=1
			2- release key=k owner=a token=1
			10-11 acquire key=k owner=b ttl=100 -> ok token=2`,
	} {
		v := mustCheck(t, short(t, text), Options{Model: Model{Name: ModelFencepost}})
		page, err := v.Page(t.Context())
		if err != nil || v.Result != Holds {
			t.Fatalf("%s: %v %s", what, err, v)
		}
		n := 0
		for _, r := range page.Resources {
			for _, tenure := range r.Tenures {
				if n++; tenure.Violates {
					t.Errorf("%s: marked: %+v", what, tenure)
				}
			}
		}
		if n != 2 {
			t.Errorf("%s: %d tenures, want 2", what, n)
		}
	}
}
