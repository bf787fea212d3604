package linearizability

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// TestALeaseWithSlots: what one says of a lease with slots, by hand.
func TestALeaseWithSlots(t *testing.T) {
	const two = `{"version":1,"slots":2,"tokens":"rising","late":0}` + "\n"
	const one = `{"version":1,"slots":1,"tokens":"rising","late":0}` + "\n"
	for what, c := range map[string]struct {
		text string
		want Result
	}{
		"two hold, a third is refused": {two + `
			0-1 acquire key=k owner=a ttl=10 -> ok token=1 slot=0
			2-3 acquire key=k owner=b ttl=10 -> ok token=2 slot=1
			4-5 acquire key=k owner=c ttl=10 -> fail error=held`, Holds},
		"nobody is refused while a slot is free": {two + `
			0-1 acquire key=k owner=a ttl=10 -> ok token=1 slot=0
			4-5 acquire key=k owner=c ttl=10 -> fail error=held`, Violated},
		"an unknown acquire may hold any slot": {two + `
			0-1 acquire key=k owner=a ttl=10 -> ok token=1 slot=1
			2- acquire key=k owner=b ttl=10
			4-5 acquire key=k owner=c ttl=10 -> fail error=held`, Holds},
		"a slot is not granted twice": {two + `
			0-1 acquire key=k owner=a ttl=10 -> ok token=1 slot=0
			2-3 acquire key=k owner=b ttl=10 -> ok token=2 slot=0`, Violated},
		"after its lapse it is": {two + `
			0-1 acquire key=k owner=a ttl=10 -> ok token=1 slot=0
			9-10 acquire key=k owner=b ttl=10 -> ok token=2 slot=0`, Holds},
		"tokens rise over all slots": {two + `
			0-1 acquire key=k owner=a ttl=10 -> ok token=2 slot=0
			2-3 acquire key=k owner=b ttl=10 -> ok token=1 slot=1`, Violated},
		"which acquires under way may order either way": {two + `
			0-3 acquire key=k owner=a ttl=10 -> ok token=2 slot=0
			2-4 acquire key=k owner=b ttl=10 -> ok token=1 slot=1`, Holds},
		"there is no third slot": {two + `
			0-1 acquire key=k owner=a ttl=10 -> ok token=1 slot=2`, Violated},
		"a get lists all holders": {two + `
			0-1 acquire key=k owner=a ttl=10 -> ok token=1 slot=0
			2-3 acquire key=k owner=b ttl=10 -> ok token=2 slot=1
			4-5 get key=k -> ok holders=[{"slot":0,"owner":"a","token":1},{"slot":1,"owner":"b","token":2}]`, Holds},
		"and no others": {two + `
			0-1 acquire key=k owner=a ttl=10 -> ok token=1 slot=0
			4-5 get key=k -> ok holders=[{"slot":0,"owner":"a","token":1},{"slot":1,"owner":"b","token":2}]`, Violated},
		"and leaves out nobody": {two + `
			0-1 acquire key=k owner=a ttl=10 -> ok token=1 slot=0
			4-5 get key=k -> ok holders=[]`, Violated},
		"a refusal names one of the holders": {two + `
			0-1 acquire key=k owner=a ttl=10 -> ok token=1 slot=0
			2-3 acquire key=k owner=b ttl=10 -> ok token=2 slot=1
			4-5 acquire key=k owner=c ttl=10 -> fail error=held holder=b`, Holds},
		"and nobody else": {two + `
			0-1 acquire key=k owner=a ttl=10 -> ok token=1 slot=0
			2-3 acquire key=k owner=b ttl=10 -> ok token=2 slot=1
			4-5 acquire key=k owner=c ttl=10 -> fail error=held holder=d`, Violated},
		"a renewal draws a token and counts anew": {one + `
			0-1 acquire key=k owner=a ttl=10 -> ok token=1 slot=0
			8-9 renew key=k owner=a from=1 ttl=10 slot=0 -> ok token=2
			16-17 acquire key=k owner=b ttl=10 -> fail error=held`, Holds},
		"it may shorten": {one + `
			0-1 acquire key=k owner=a ttl=90 -> ok token=1 slot=0
			2-3 renew key=k owner=a from=1 ttl=10 slot=0 -> ok token=2
			12-13 acquire key=k owner=b ttl=10 -> ok token=3 slot=0`, Holds},
		"but not below its own TTL": {one + `
			0-1 acquire key=k owner=a ttl=90 -> ok token=1 slot=0
			2-3 renew key=k owner=a from=1 ttl=10 slot=0 -> ok token=2
			9-11 acquire key=k owner=b ttl=10 -> ok token=3 slot=0`, Violated},
		"one with unknown outcome may as well": {one + `
			0-1 acquire key=k owner=a ttl=90 -> ok token=1 slot=0
			2- renew key=k owner=a from=1 ttl=10 slot=0
			12-13 acquire key=k owner=b ttl=10 -> ok token=3 slot=0`, Holds},
		"and may free nothing at once": {one + `
			0-1 acquire key=k owner=a ttl=90 -> ok token=1 slot=0
			2- renew key=k owner=a from=1 ttl=10 slot=0
			9-11 acquire key=k owner=b ttl=10 -> ok token=3 slot=0`, Violated},
		"the token that a renewal replaced is worth nothing": {one + `
			0-1 acquire key=k owner=a ttl=10 -> ok token=1 slot=0
			2-3 renew key=k owner=a from=1 ttl=10 slot=0 -> ok token=2
			4-5 release key=k owner=a token=1 slot=0 -> ok`, Violated},
		"the one that it drew is": {one + `
			0-1 acquire key=k owner=a ttl=10 -> ok token=1 slot=0
			2-3 renew key=k owner=a from=1 ttl=10 slot=0 -> ok token=2
			4-5 release key=k owner=a token=2 slot=0 -> ok`, Holds},
		"a drawn token rises": {one + `
			0-1 acquire key=k owner=a ttl=10 -> ok token=5 slot=0
			2-3 renew key=k owner=a from=5 ttl=10 slot=0 -> ok token=4`, Violated},
		"an acquire may find the grant of one that got no answer": {one + `
			0- acquire key=k owner=a ttl=10
			2-3 acquire key=k owner=a ttl=10 -> ok token=4 slot=0 already=true`, Holds},
		"and nobody else's": {one + `
			0- acquire key=k owner=b ttl=10
			2-3 acquire key=k owner=a ttl=10 -> ok token=4 slot=0 already=true`, Violated},
		"a refused release was of no slot": {two + `
			0-1 acquire key=k owner=a ttl=10 -> ok token=1 slot=0
			2-3 release key=k owner=a token=1 -> fail error=lost`, Violated},
		"a restart holds all slots for a TTL more": {two + `
			0-1 acquire key=k owner=a ttl=10 -> ok token=1 slot=0
			0-1 acquire key=k owner=b ttl=10 -> ok token=2 slot=1
			8-9 restart -> ok
			16-17 acquire key=k owner=c ttl=10 -> fail error=held`, Holds},
	} {
		if v := mustCheck(t, short(t, c.text), Options{Model: Model{Name: ModelLease}}); v.Linearizable() != c.want {
			t.Errorf("%s: want %s: %s", what, c.want, v)
		}
	}
}

func TestSlotsSayWhatTheyMiss(t *testing.T) {
	for field, text := range map[string]string{
		"meta": `{"version":1,"slots":2}
			0-1 acquire key=k owner=a ttl=10 -> ok token=1 slot=0`,
		"token": `{"version":1,"slots":1}
			2-3 renew key=k owner=a from=1 ttl=10 -> ok`,
		"from": `{"version":1,"slots":1}
			2-3 renew key=k owner=a from=x ttl=10 -> ok token=2`,
		"holders": `{"version":1,"slots":1}
			2-3 get key=k -> ok holders=[{"slot":0}]`,
	} {
		_, err := Check(t.Context(), short(t, text), Options{Model: Model{Name: ModelLease}})
		var syntax *SyntaxError
		if !errors.As(err, &syntax) || syntax.Field != field {
			t.Errorf("want an error about %s: %v", field, err)
		}
	}
	if _, err := Read(strings.NewReader(`{"meta":{"version":1,"slots":65}}`), "h"); err == nil || !strings.Contains(err.Error(), `"slots"`) {
		t.Errorf("65 slots: %v", err)
	}
}

// TestSlotsSurviveAFile: what meta says of slots is written and read.
func TestSlotsSurviveAFile(t *testing.T) {
	h := mustRead(t, `{"meta":{"version":1,"slots":3}}`)
	var b strings.Builder
	if err := h.WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	if again := mustRead(t, b.String()); again.Meta.Slots != 3 || len(again.Meta.Extra) > 0 {
		t.Errorf("%s gives %+v", b.String(), again.Meta)
	}
}

// slotStore is a lease with slots, carried out one operation after another: an
// independent source of legal histories.
type slotStore struct {
	now, token int64
	slots      []struct {
		owner          string
		token, expires int64
	}
}

func (s *slotStore) acquire(owner string, ttl int64) (slot int, token int64, already bool) {
	for i := range s.slots {
		if x := &s.slots[i]; x.owner == owner && s.now < x.expires {
			return i, x.token, true
		}
	}
	for i := range s.slots {
		if x := &s.slots[i]; s.now >= x.expires {
			s.token += 1 + s.now%3
			x.owner, x.token, x.expires = owner, s.token, s.now+ttl
			return i, s.token, false
		}
	}
	return -1, 0, false
}

func (s *slotStore) find(owner string, token int64) int {
	for i, x := range s.slots {
		if x.owner == owner && x.token == token && s.now < x.expires {
			return i
		}
	}
	return -1
}

// slotRun simulates a run of some owners, in the notation of short. A bug, if
// any, is planted about half way.
func slotRun(r *rand.Rand, slots, steps int, bug string) string {
	s := slotStore{slots: make([]struct {
		owner          string
		token, expires int64
	}, slots)}
	var b strings.Builder
	fmt.Fprintf(&b, `{"version":1,"slots":%d,"tokens":"rising","late":0}`+"\n", slots)
	held := make(map[string]int64) // tokens, as the owners know them
	for i := range steps {
		s.now += 1 + r.Int64N(5)
		call := s.now
		s.now += r.Int64N(3)
		ret := s.now + 1
		owner := string(rune('a' + r.IntN(slots+2)))
		ttl := 10 + r.Int64N(20)
		token, known := held[owner]
		unknown := r.IntN(12) == 0
		end := fmt.Sprintf("%d-%d ", call, ret)
		say := func(ask, answer string, args ...any) {
			if b.WriteString(end + ask + " "); !unknown {
				fmt.Fprintf(&b, "-> "+answer, args...)
			}
			b.WriteByte('\n')
		}
		switch k := r.IntN(10); {
		case bug != "" && i >= steps/2 && known && s.find(owner, token) >= 0:
			// The store forgets one lease, and grants its slot to the next.
			slot := s.find(owner, token)
			delete(held, owner)
			if bug == "early" {
				s.token++
			}
			fmt.Fprintf(&b, "%sacquire key=k owner=thief ttl=9 -> ok token=%d slot=%d already=false\n", end, s.token, slot)
			return b.String()
		case k < 4:
			slot, token, already := s.acquire(owner, ttl)
			if slot < 0 {
				say(fmt.Sprintf("acquire key=k owner=%s ttl=%d", owner, ttl), "fail error=held")
				break
			}
			if !unknown {
				held[owner] = token
			}
			say(fmt.Sprintf("acquire key=k owner=%s ttl=%d", owner, ttl), "ok token=%d slot=%d already=%v", token, slot, already)
		case k < 7 && known:
			slot := s.find(owner, token)
			if slot < 0 {
				say(fmt.Sprintf("renew key=k owner=%s from=%d ttl=%d", owner, token, ttl), "fail error=lapsed")
				delete(held, owner)
				break
			}
			s.token++
			s.slots[slot].token, s.slots[slot].expires = s.token, s.now+ttl
			if !unknown {
				held[owner] = s.token
			}
			say(fmt.Sprintf("renew key=k owner=%s from=%d ttl=%d slot=%d", owner, token, ttl, slot), "ok token=%d", s.token)
		case k < 8 && known:
			slot := s.find(owner, token)
			delete(held, owner)
			if slot < 0 {
				say(fmt.Sprintf("release key=k owner=%s token=%d", owner, token), "fail error=lost")
				break
			}
			s.slots[slot].expires = s.now
			say(fmt.Sprintf("release key=k owner=%s token=%d slot=%d", owner, token, slot), "ok")
		default:
			var list []string
			for i, x := range s.slots {
				if s.now < x.expires {
					list = append(list, fmt.Sprintf(`{"slot":%d,"owner":%q,"token":%d}`, i, x.owner, x.token))
				}
			}
			unknown = false
			say("get key=k", "ok holders=[%s]", strings.Join(list, ","))
		}
	}
	return b.String()
}

// TestLegalRunsWithSlotsHold, and the same with a bug do not.
func TestLegalRunsWithSlotsHold(t *testing.T) {
	caught, planted := 0, 0
	for seed := range uint64(150) {
		for slots := 1; slots <= 3; slots++ {
			r := rand.New(rand.NewPCG(seed, uint64(slots)))
			text := slotRun(r, slots, 40, "")
			if v := mustCheck(t, short(t, text), Options{Model: Model{Name: ModelLease}}); v.Result != Holds || len(v.Findings) > 0 {
				t.Fatalf("seed %d, %d slots: %s\n%s", seed, slots, v, text)
			}
			bug := []string{"early", "two-owners"}[seed%2]
			text = slotRun(rand.New(rand.NewPCG(seed, uint64(slots))), slots, 40, bug)
			if !strings.Contains(text, "thief") {
				continue
			}
			planted++
			v := mustCheck(t, short(t, text), Options{Model: Model{Name: ModelLease}})
			if v.Linearizable() == Violated && slices.ContainsFunc(v.Findings, func(f Finding) bool {
				return f.Violates && (f.Check == checkTakenEarly || f.Check == checkTwoOwners || f.Check == checkNotRising)
			}) {
				caught++
			}
		}
	}
	// What the run itself lets nobody know, such as an unknown release just
	// before, hides a few.
	if planted < 400 || caught < planted*8/10 {
		t.Errorf("%d of %d planted bugs were caught", caught, planted)
	}
	t.Logf("%d of %d planted bugs were caught and named", caught, planted)
}
