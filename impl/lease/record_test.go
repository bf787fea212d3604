package lease

import (
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

const (
	ms  = time.Millisecond
	sec = time.Second
)

// The cast: alice's second incarnation is another holder than her first.
var (
	alice  = Holder{Node: "alice", Seq: 1, Nonce: 0xa11ce}
	alice2 = alice.Next()
	bob    = Holder{Node: "bob", Seq: 1, Nonce: 0xb0b}
)

func acquire(h Holder, ttl time.Duration) Request { return Request{Op: OpAcquire, Holder: h, TTL: ttl} }
func renew(h Holder, token Token, ttl time.Duration) Request {
	return Request{Op: OpRenew, Holder: h, Token: token, TTL: ttl}
}
func release(h Holder, token Token) Request { return Request{Op: OpRelease, Holder: h, Token: token} }

// aliceHolds is a record that granted alice 10 s under token 7 at 0 s.
func aliceHolds() Record {
	return Record{Durable: Durable{Token: 7, Holder: alice, TTL: 10 * sec, Status: Running}, Expires: 10 * sec}
}

func diff(t *testing.T, what string, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s (-want +got):\n%s", what, cmp.Diff(want, got))
	}
}

func TestAcquireOfFreeLeaseGrantsNextToken(t *testing.T) {
	r, rep := Record{Durable: Durable{Token: 32}}.Acquire(5*sec, 0, acquire(alice, 10*sec))
	diff(t, "record", r, Record{Durable: Durable{Token: 33, Holder: alice, TTL: 10 * sec, Status: Running}, Expires: 15 * sec})
	diff(t, "reply", rep, Reply{Op: OpAcquire, Code: CodeGranted, Holder: alice, Token: 33, TTL: 10 * sec, Current: alice, Remaining: 10 * sec})
}

func TestAcquireWhileHeldByAnotherNamesHolderAndRemaining(t *testing.T) {
	r, rep := aliceHolds().Acquire(4*sec, 0, acquire(bob, 60*sec))
	diff(t, "record", r, aliceHolds())
	diff(t, "reply", rep, Reply{Op: OpAcquire, Code: CodeHeld, Holder: bob, Token: 7, Current: alice, Remaining: 6 * sec})
}

func TestAcquireBySameHolderIsIdempotentAndNeverShortens(t *testing.T) {
	for _, c := range []struct {
		name         string
		now, ttl     time.Duration
		expires, max time.Duration
	}{
		{"extends", 4 * sec, 10 * sec, 14 * sec, 10 * sec},
		{"longer", 4 * sec, 20 * sec, 24 * sec, 20 * sec},
		{"shorter keeps the expiry", 4 * sec, 1 * sec, 10 * sec, 10 * sec},
		{"shorter but later", 9 * sec, 2 * sec, 11 * sec, 10 * sec},
	} {
		r, rep := aliceHolds().Acquire(c.now, 0, acquire(alice, c.ttl))
		want := aliceHolds()
		want.Expires, want.TTL = c.expires, c.max
		diff(t, c.name+": record", r, want)
		diff(t, c.name+": reply", rep, Reply{Op: OpAcquire, Code: CodeGranted, Holder: alice, Token: 7, TTL: c.ttl, Current: alice, Remaining: c.expires - c.now})
	}
}

func TestEachChangeOfOwnershipTakesExactlyTheNextToken(t *testing.T) {
	released, _ := aliceHolds().Release(4*sec, release(alice, 7))
	restarted := Restore(aliceHolds().Durable, 0)
	for _, c := range []struct {
		name string
		r    Record
		now  time.Duration
	}{
		{"lapsed", aliceHolds(), 10 * sec},
		{"released", released, 4 * sec},
		{"deleted", aliceHolds().Delete(), 4 * sec},
		{"restarted and lapsed", restarted, 10 * sec},
	} {
		for _, h := range []Holder{alice, alice2, bob} {
			r, rep := c.r.Acquire(c.now, 0, acquire(h, 5*sec))
			if rep.Code != CodeGranted || rep.Token != 8 || r.Token != 8 || r.Holder != h || r.TTL != 5*sec {
				t.Errorf("%s, acquired by %v: %+v, %+v; want a tenure of 5s under token 8", c.name, h, rep, r)
			}
		}
	}
}

func TestTenureIsHalfOpen(t *testing.T) {
	for _, c := range []struct {
		now                   time.Duration
		held                  bool
		renew, acquire, query Code
	}{
		{10*sec - 1, true, CodeGranted, CodeHeld, CodeHeld},
		{10 * sec, false, CodeLapsed, CodeGranted, CodeFree},
		{10*sec + 1, false, CodeLapsed, CodeGranted, CodeFree},
	} {
		if got := aliceHolds().Held(c.now); got != c.held {
			t.Errorf("at %v: Held = %v", c.now, got)
		}
		_, ren := aliceHolds().Renew(c.now, renew(alice, 7, sec))
		_, acq := aliceHolds().Acquire(c.now, 0, acquire(bob, sec))
		_, get := aliceHolds().Get(c.now, 0, Request{Op: OpGet})
		if ren.Code != c.renew || acq.Code != c.acquire || get.Code != c.query {
			t.Errorf("at %v: renew %v, acquire %v, get %v; want %v, %v, %v", c.now, ren.Code, acq.Code, get.Code, c.renew, c.acquire, c.query)
		}
	}
}

// One table for both, as both demand the same of the requester.
func TestRenewAndReleaseOnlyByThisHolderUnderThisTokenWhileHeld(t *testing.T) {
	released, _ := aliceHolds().Release(sec, release(alice, 7))
	taken, _ := aliceHolds().Acquire(12*sec, 0, acquire(bob, 10*sec)) // token 8, till 22 s
	for _, c := range []struct {
		name  string
		r     Record
		now   time.Duration
		h     Holder
		token Token
		want  Code
	}{
		{"holder, token", aliceHolds(), 2 * sec, alice, 7, CodeNone},
		{"another holder", aliceHolds(), 2 * sec, bob, 7, CodeLost},
		{"another incarnation", aliceHolds(), 2 * sec, alice2, 7, CodeLost},
		{"another process of that name", aliceHolds(), 2 * sec, Holder{"alice", 1, 0xbad}, 7, CodeLost},
		{"an older token", aliceHolds(), 2 * sec, alice, 6, CodeLost},
		{"a token never issued", aliceHolds(), 2 * sec, alice, 8, CodeLost},
		{"after the lapse", aliceHolds(), 10 * sec, alice, 7, CodeLapsed},
		{"after the takeover", taken, 13 * sec, alice, 7, CodeLost},
		{"laundering the successor's token", taken, 13 * sec, alice, 8, CodeLost},
		{"after the release", released, 2 * sec, alice, 7, CodeLost},
		{"after the deletion", aliceHolds().Delete(), 2 * sec, alice, 7, CodeLost},
		{"nobody", aliceHolds(), 2 * sec, Holder{}, 7, CodeInvalid},
		{"no token", aliceHolds(), 2 * sec, alice, 0, CodeInvalid},
		{"nobody, of a lease never held", Record{}, 2 * sec, Holder{}, 0, CodeInvalid},
	} {
		wantRenew, wantRelease := c.want, c.want
		if c.want == CodeNone {
			wantRenew, wantRelease = CodeGranted, CodeReleased
		}
		if _, rep := c.r.Renew(c.now, renew(c.h, c.token, sec)); rep.Code != wantRenew {
			t.Errorf("renew by %s: %v, want %v", c.name, rep.Code, wantRenew)
		}
		if _, rep := c.r.Release(c.now, release(c.h, c.token)); rep.Code != wantRelease {
			t.Errorf("release by %s: %v, want %v", c.name, rep.Code, wantRelease)
		}
	}
}

func TestLostNamesTheCurrentHolder(t *testing.T) {
	taken, _ := aliceHolds().Acquire(12*sec, 0, acquire(bob, 10*sec))
	_, rep := taken.Renew(13*sec, renew(alice, 7, sec))
	diff(t, "reply", rep, Reply{Op: OpRenew, Code: CodeLost, Holder: alice, Asked: 7, Token: 8, Current: bob, Remaining: 9 * sec})
}

func TestRenewNeverShortens(t *testing.T) {
	for _, c := range []struct{ now, ttl, expires, max time.Duration }{
		{3 * sec, 10 * sec, 13 * sec, 10 * sec},
		{3 * sec, 1 * sec, 10 * sec, 10 * sec}, // a shorter TTL
		{0, 10 * sec, 10 * sec, 10 * sec},      // a copy
		{3 * sec, 30 * sec, 33 * sec, 30 * sec},
	} {
		r, rep := aliceHolds().Renew(c.now, renew(alice, 7, c.ttl))
		want := aliceHolds()
		want.Expires, want.TTL = c.expires, c.max
		diff(t, "record", r, want)
		diff(t, "reply", rep, Reply{Op: OpRenew, Code: CodeGranted, Holder: alice, Asked: 7, Token: 7, TTL: c.ttl, Current: alice, Remaining: c.expires - c.now})
	}
}

func TestReleaseFreesAtOnceAndKeepsTheCounter(t *testing.T) {
	r, rep := aliceHolds().Release(2*sec, release(alice, 7))
	diff(t, "reply", rep, Reply{Op: OpRelease, Code: CodeReleased, Holder: alice, Asked: 7, Token: 7})
	diff(t, "record", r, Record{Durable: Durable{Token: 7, Holder: alice, TTL: 10 * sec, Status: Free}})
}

// A resignation is delayed in the network and lands after the same node has the
// lease again: it names the older incarnation, and frees nothing.
func TestDelayedReleaseFreesNoLaterTenure(t *testing.T) {
	r, _ := aliceHolds().Acquire(12*sec, 0, acquire(alice2, 10*sec))
	after, rep := r.Release(13*sec, release(alice, 7))
	diff(t, "record", after, r)
	diff(t, "code", rep.Code, CodeLost)
}

func TestLockDelayFollowsALapseButNoRelease(t *testing.T) {
	const delay = 3 * sec
	released, _ := aliceHolds().Release(4*sec, release(alice, 7))
	seen, _ := aliceHolds().Get(11*sec, delay, Request{Op: OpGet})
	for _, c := range []struct {
		name string
		r    Record
		now  time.Duration
		want Code
		left time.Duration
	}{
		{"at the lapse", aliceHolds(), 10 * sec, CodeDelayed, 3 * sec},
		{"before its end", aliceHolds(), 13*sec - 1, CodeDelayed, 1},
		{"at its end", aliceHolds(), 13 * sec, CodeGranted, sec},
		{"counted from the lapse, not from its first observation", seen, 12 * sec, CodeDelayed, sec},
		{"after a release", released, 4 * sec, CodeGranted, sec},
		{"after a deletion", aliceHolds().Delete(), 4 * sec, CodeGranted, sec},
		{"never held", Record{}, 0, CodeGranted, sec},
	} {
		for _, h := range []Holder{bob, alice} {
			_, rep := c.r.Acquire(c.now, delay, acquire(h, sec))
			if rep.Code != c.want || rep.Remaining != c.left {
				t.Errorf("%s, by %v: %v, %v left; want %v, %v", c.name, h, rep.Code, rep.Remaining, c.want, c.left)
			}
		}
	}
	_, rep := aliceHolds().Get(12*sec, delay, Request{Op: OpGet})
	diff(t, "get in the delay", rep, Reply{Op: OpGet, Code: CodeDelayed, Token: 7, Remaining: sec})
}

func TestGetNamesTheHolderOrNobody(t *testing.T) {
	r, rep := aliceHolds().Get(4*sec, 0, Request{Op: OpGet})
	diff(t, "record", r, aliceHolds())
	diff(t, "held", rep, Reply{Op: OpGet, Code: CodeHeld, Token: 7, Current: alice, Remaining: 6 * sec})
	_, rep = aliceHolds().Get(10*sec, 0, Request{Op: OpGet})
	diff(t, "lapsed", rep, Reply{Op: OpGet, Code: CodeFree, Token: 7})
	_, rep = Record{}.Get(10*sec, 0, Request{Op: OpGet})
	diff(t, "never held", rep, Reply{Op: OpGet, Code: CodeFree})
}

func TestAnsweredLapseIsDurable(t *testing.T) {
	for name, ask := range map[string]func(Record) Record{
		"get":             func(r Record) Record { r, _ = r.Get(10*sec, 0, Request{Op: OpGet}); return r },
		"refused renewal": func(r Record) Record { r, _ = r.Renew(10*sec, renew(alice, 7, sec)); return r },
		"refused release": func(r Record) Record { r, _ = r.Release(10*sec, release(alice, 7)); return r },
		"renewal under another token": func(r Record) Record {
			r, rep := r.Renew(10*sec, renew(alice, 6, sec))
			diff(t, "reply", rep, Reply{Op: OpRenew, Code: CodeLost, Holder: alice, Asked: 6, Token: 7}) // held by nobody
			return r
		},
		"release by another holder": func(r Record) Record { r, _ = r.Release(10*sec, release(bob, 7)); return r },
		"refused for the delay":     func(r Record) Record { r, _ = r.Acquire(10*sec, 5*sec, acquire(bob, sec)); return r },
		"and asked more than once": func(r Record) Record {
			r, _ = r.Get(10*sec, 0, Request{Op: OpGet})
			r, _ = r.Get(11*sec, 0, Request{Op: OpGet})
			return r
		},
	} {
		r := ask(aliceHolds())
		want := aliceHolds()
		want.Status = Lapsed
		diff(t, name, r, want)
		if back := Restore(r.Durable, 100*sec); back.Held(100 * sec) {
			t.Errorf("%s: a restart revived the tenure: %+v", name, back)
		}
	}
}

// The new clock has nothing to do with the old one, so whatever is left of the
// tenure counts from the restart, and as the longest it can be.
func TestRestartHoldsUnreleasedTenureForItsWholeLongestTTL(t *testing.T) {
	r, _ := aliceHolds().Renew(sec, renew(alice, 7, 30*sec))
	r, _ = r.Renew(2*sec, renew(alice, 7, 5*sec))
	const back = -400 * sec // clocks have any origin
	r = Restore(r.Durable, back)
	if !r.Held(back+30*sec-1) || r.Held(back+30*sec) {
		t.Errorf("restarted at %v: %+v; want it held for exactly 30s", back, r)
	}
	if _, rep := r.Renew(back+sec, renew(alice, 7, 10*sec)); rep.Code != CodeGranted {
		t.Errorf("renewal after the restart: %v", rep.Code)
	}
}

func TestRestartAfterReleaseIsFree(t *testing.T) {
	r, _ := aliceHolds().Release(sec, release(alice, 7))
	_, rep := Restore(r.Durable, 0).Acquire(0, 5*sec, acquire(bob, sec))
	if rep.Code != CodeGranted || rep.Token != 8 {
		t.Errorf("acquire after the restart: %+v, want token 8", rep)
	}
}

func TestRestartBeginsTheWholeLockDelayAnew(t *testing.T) {
	const delay = 3 * sec
	r, _ := aliceHolds().Get(12*sec, delay, Request{Op: OpGet}) // 1 s left
	r = Restore(r.Durable, 50*sec)
	for _, c := range []struct {
		now  time.Duration
		want Code
	}{{50 * sec, CodeDelayed}, {53*sec - 1, CodeDelayed}, {53 * sec, CodeGranted}} {
		if _, rep := r.Acquire(c.now, delay, acquire(bob, sec)); rep.Code != c.want {
			t.Errorf("at %v: %v, want %v", c.now, rep.Code, c.want)
		}
	}
}

func TestInvalidRequestsChangeNothing(t *testing.T) {
	for name, req := range map[string]Request{
		"acquire for no time":  acquire(bob, 0),
		"acquire for less":     acquire(bob, -1),
		"acquire by nobody":    acquire(Holder{}, sec),
		"renew for no time":    renew(alice, 7, 0),
		"renew for less":       renew(alice, 7, -1),
		"nothing asked":        {Holder: alice},
		"asked of the storage": {Op: OpFence, Holder: alice, Token: 7},
		"unheard of":           {Op: 200, Holder: alice, Token: 7},
	} {
		for _, now := range []time.Duration{0, 20 * sec} {
			r, rep := aliceHolds().Handle(now, 0, req)
			diff(t, name+": record", r, aliceHolds())
			diff(t, name+": reply", rep, req.To(CodeInvalid))
		}
	}
}

func TestRepliesEchoWhatTheSenderNeeds(t *testing.T) {
	for _, req := range []Request{
		{Op: OpAcquire, Holder: bob, TTL: sec, Sent: 77},
		{Op: OpRenew, Holder: bob, Token: 3, TTL: sec, Sent: 78},
		{Op: OpRelease, Holder: bob, Token: 4, Sent: 79},
		{Op: OpGet, Holder: bob, Sent: 80},
	} {
		_, rep := aliceHolds().Handle(sec, 0, req)
		if rep.Op != req.Op || rep.Holder != req.Holder || rep.Asked != req.Token || rep.Sent != req.Sent {
			t.Errorf("%v: echo %+v of %+v", req.Op, rep, req)
		}
	}
}

func TestTokensRunOutRatherThanStartAgain(t *testing.T) {
	r := Record{Durable: Durable{Token: math.MaxUint64 - 1}}
	r, rep := r.Acquire(0, 0, acquire(alice, sec))
	diff(t, "the last token", rep.Token, Token(math.MaxUint64))
	after, rep := r.Acquire(sec, 0, acquire(bob, sec))
	if rep.Code != CodeInvalid || after.Token != math.MaxUint64 {
		t.Errorf("acquire after the last token: %v, record %+v", rep.Code, after)
	}
}

func TestLongestTTLMeansForEver(t *testing.T) {
	r, _ := Record{}.Acquire(sec, 0, acquire(alice, math.MaxInt64))
	if !r.Held(math.MaxInt64 - 1) {
		t.Errorf("record %+v overflowed", r)
	}
	r.Status = Lapsed
	if _, rep := r.Acquire(math.MaxInt64-1, math.MaxInt64, acquire(bob, sec)); rep.Code != CodeDelayed {
		t.Errorf("lock delay overflowed: %v", rep.Code)
	}
}

// Whatever is asked, in whatever order, with restarts and deletions in between:
// the owner changes by taking the next token, the token in no other way, and
// nobody's tenure ends but by time, release or deletion.
func TestTokenRisesByOneAtEachChangeOfOwnershipAndNeverElse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var (
			r     Record
			now   time.Duration
			delay = rapid.SampledFrom([]time.Duration{0, 2}).Draw(t, "delay")
		)
		t.Repeat(map[string]func(*rapid.T){
			"request": func(t *rapid.T) {
				now += time.Duration(rapid.IntRange(0, 4).Draw(t, "passes"))
				req := Request{
					Op:     Op(rapid.IntRange(0, 6).Draw(t, "op")),
					Holder: rapid.SampledFrom([]Holder{alice, alice2, bob, {}}).Draw(t, "holder"),
					Token:  Token(rapid.Uint64Range(0, uint64(r.Token)+1).Draw(t, "token")),
					TTL:    time.Duration(rapid.IntRange(-1, 5).Draw(t, "ttl")),
				}
				next, rep := r.Handle(now, delay, req)
				switch {
				case next.Token == r.Token+1:
					if r.Held(now) || next.Holder != req.Holder || rep.Code != CodeGranted || rep.Token != next.Token {
						t.Fatalf("%+v -> %+v: token taken by %+v", r, next, req)
					}
				case next.Token != r.Token || next.Holder != r.Holder:
					t.Fatalf("%+v -> %+v: changed without a token by %+v", r, next, req)
				case r.Held(now) && next.Expires < r.Expires && rep.Code != CodeReleased:
					t.Fatalf("%+v -> %+v: shortened by %+v", r, next, req)
				}
				r = next
			},
			"restart": func(t *rapid.T) {
				held := r.Held(now)
				now = time.Duration(rapid.IntRange(-9, 9).Draw(t, "clock"))
				back := Restore(r.Durable, now)
				if back.Durable != r.Durable || held && !back.Held(now) {
					t.Fatalf("%+v -> %+v: restart changed more than the clock", r, back)
				}
				r = back
			},
			"delete": func(*rapid.T) {
				token := r.Token
				if r = r.Delete(); r.Held(now) || r.Token != token {
					t.Fatalf("deleted: %+v", r)
				}
			},
		})
	})
}

func BenchmarkRecordAcquire(b *testing.B) {
	var r Record
	var rep Reply
	now, req := time.Duration(0), acquire(alice, sec)
	for b.Loop() {
		r, rep = r.Acquire(now, 0, req) // each a new tenure
		now += sec
	}
	if rep.Code != CodeGranted {
		b.Fatal(rep.Code)
	}
}

func BenchmarkRecordRenew(b *testing.B) {
	r, rep := aliceHolds(), Reply{}
	now, req := time.Duration(0), renew(alice, 7, 10*sec)
	for b.Loop() {
		r, rep = r.Renew(now, req)
		now += ms
	}
	if rep.Code != CodeGranted {
		b.Fatal(rep.Code)
	}
}
