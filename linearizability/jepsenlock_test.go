package linearizability

import (
	"strings"
	"testing"
	"time"
)

// lock is a lock held by two processes at once, as a mutex has it: the lease of
// the first had lapsed.
const lock = `[{:process 0, :type :invoke, :f :acquire, :time 0}
 {:process 0, :type :ok, :f :acquire, :time 1000000000}
 {:process 0, :type :invoke, :f :acquire, :time 1100000000}
 {:process 0, :type :fail, :f :acquire, :error :already-held, :time 1200000000}
 {:process 2, :type :invoke, :f :acquire, :time 1300000000}
 {:process 2, :type :fail, :f :acquire, :error :timeout, :time 1400000000}
 {:process 2, :type :invoke, :f :release, :time 1500000000}
 {:process 2, :type :fail, :f :release, :error :not-held, :time 1600000000}
 {:process 1, :type :invoke, :f :acquire, :time 2000000000}
 {:process 1, :type :ok, :f :acquire, :time 3000000000}
 {:process 0, :type :invoke, :f :release, :time 3100000000}
 {:process 0, :type :fail, :f :release, :error [:not-found "etcdserver: requested lease not found"], :time 3200000000}]`

func TestJepsenLockIsReadAsALease(t *testing.T) {
	h := mustRead(t, lock)
	for _, m := range []string{ModelMutex, ModelOwnerMutex} {
		if v := mustCheck(t, h, Options{Model: Model{Name: m}}); v.Result != Violated {
			t.Errorf("%s, want that it is violated", v)
		}
	}
	for ttl, want := range map[time.Duration]Result{2 * time.Second: Holds, 4 * time.Second: Violated} {
		v := mustCheck(t, h, Options{Model: Model{Name: ModelLease}, TTL: ttl})
		if v.Result != want || v.Reading != jepsenLockReading {
			t.Errorf("TTL %v: %s, want %s by the reading of a Jepsen lock", ttl, v, want)
		}
	}
	read, err := JepsenLock(h, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if err := read.Validate(); err != nil {
		t.Errorf("the reading is no history: %v", err)
	}
	if e := read.Events[5]; e.Type != Info {
		t.Errorf("an acquire that timed out ended as %v, want info", e.Type)
	}
	if p := read.Events[6].Process; p == 2 {
		t.Error("a process goes on after an unknown outcome")
	}
	if h.Events[5].Type != Fail {
		t.Error("the history itself was changed")
	}
}

func TestJepsenLockNeedsATTLAndKnownErrors(t *testing.T) {
	if _, err := Check(t.Context(), mustRead(t, lock), Options{Model: Model{Name: ModelLease}}); err == nil || !strings.Contains(err.Error(), "TTL") {
		t.Errorf("got %v, want that the TTL is missing", err)
	}
	odd := mustRead(t, strings.Replace(lock, ":already-held", ":odd", 1))
	if _, err := JepsenLock(odd, time.Second); err == nil || !strings.HasPrefix(err.Error(), `h:4: field "error"`) {
		t.Errorf("got %v, want that the error in line 4 is not known", err)
	}
}
