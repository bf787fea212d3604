package lease

import (
	"math"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"
)

// A holder whose clock may lose a fifth counts 8 s while 10 s pass.
func TestLapseByHand(t *testing.T) {
	for _, c := range []struct {
		ttl   time.Duration
		rate  float64
		since time.Duration
		want  time.Duration
	}{
		{8 * time.Second, 0, time.Hour, time.Hour + 8*time.Second},
		{8 * time.Second, 0.2, time.Hour, time.Hour + 10*time.Second},
		{99 * time.Second, 0.01, 0, 100 * time.Second},
		{1, 0.2, 0, 2},     // 1.25, rounded up
		{1, 1e-12, 0, 1},   // less than a billionth is none
		{1, 1e-9, 0, 2},    // 1.000000001
		{2, 0.5, 3, 3 + 4}, // twice
		{0, 0.2, 3, 3},     // nothing to wait for
		{math.MaxInt64, 0.2, 3, math.MaxInt64},
		{math.MaxInt64, 0, 3, math.MaxInt64},
	} {
		if got := (Sight{Version: "v", Since: c.since}).Lapse(c.ttl, c.rate); got != c.want {
			t.Errorf("seen since %v for %v at a rate of %v: lapses at %v; want %v", c.since, c.ttl, c.rate, got, c.want)
		}
	}
}

func TestOnlyAnotherVersionCountsAnew(t *testing.T) {
	s := Sight{}
	for _, step := range []struct {
		version string
		now     time.Duration
		want    Sight
	}{
		{"1", 5, Sight{"1", 5}},
		{"1", 7, Sight{"1", 5}},
		{"2", 8, Sight{"2", 8}},
		{"1", 9, Sight{"1", 9}}, // the server has gone back: how long it stands is not known
	} {
		if s = s.See(step.version, step.now); s != step.want {
			t.Errorf("%q at %d: %+v; want %+v", step.version, step.now, s, step.want)
		}
	}
}

func TestASightIsAfterAQuestionOnlyIfItWasTakenMeanwhile(t *testing.T) {
	asked := Sight{"1", 5}
	for _, c := range []struct {
		latest Sight
		want   bool
	}{
		{asked.See("1", 7), false},
		{asked.See("2", 7), true},
		{asked.See("2", 7).See("1", 8), true},
	} {
		if got := c.latest.After(asked); got != c.want {
			t.Errorf("%+v is after %+v: %v; want %v", c.latest, asked, got, c.want)
		}
	}
	if !asked.After(Sight{}) {
		t.Error("what is seen first is not after a question that was asked before")
	}
}

// glance is one answer to an observer: what it showed, when it was asked for and
// when it came by the observer's clock, and when the holder says it wrote it by its own.
type glance struct {
	version     int
	asked, came time.Duration
	stamp       time.Duration
}

const (
	sightTTL  = 10 * time.Second
	sightRate = 0.1
)

// lapses are ways to judge when a tenure of sightTTL lapses, from all that an
// observer has seen of it, the latest last. All but the first are wrong.
var lapses = map[string]func([]glance) time.Duration{
	"Sight": func(seen []glance) time.Duration {
		var s Sight
		for _, g := range seen {
			s = s.See(strconv.Itoa(g.version), g.came)
		}
		return s.Lapse(sightTTL, sightRate)
	},
	"counted from the question": func(seen []glance) time.Duration {
		var s Sight
		for _, g := range seen {
			s = s.See(strconv.Itoa(g.version), g.asked)
		}
		return s.Lapse(sightTTL, sightRate)
	},
	"counted from the first sight of the lease": func(seen []glance) time.Duration {
		return Sight{Since: seen[0].came}.Lapse(sightTTL, sightRate)
	},
	"no allowance for the rate": func(seen []glance) time.Duration {
		var s Sight
		for _, g := range seen {
			s = s.See(strconv.Itoa(g.version), g.came)
		}
		return s.Lapse(sightTTL, 0)
	},
	"an allowance of TTL*rate": func(seen []glance) time.Duration {
		var s Sight
		for _, g := range seen {
			s = s.See(strconv.Itoa(g.version), g.came)
		}
		return s.Since + sightTTL + time.Duration(float64(sightTTL)*sightRate)
	},
	"dated by the holder": func(seen []glance) time.Duration {
		return seen[len(seen)-1].stamp + sightTTL*10/9
	},
}

// A holder renews some times and dies; an observer looks now and then. Nobody
// takes the lease over while its holder believes, and each wrong way does.
func TestNobodyTakesOverWhileTheHolderBelieves(t *testing.T) {
	for name, lapse := range lapses {
		early, taken := 0, 0
		for seed := range uint64(2000) {
			before, ok := takeover(rand.New(rand.NewPCG(seed, 1)), lapse)
			if ok {
				taken++
			}
			if ok && before > 0 {
				early++
			}
		}
		if taken < 1000 {
			t.Errorf("%s: only %d of 2000 were taken over", name, taken)
		}
		if right := name == "Sight"; right != (early == 0) {
			t.Errorf("%s: %d of %d takeovers came while the holder believed", name, early, taken)
		}
	}
}

// takeover is one run in true time, of which the holder's clock shows nine tenths
// at the slowest, and the observer's an hour and all of it. It gives how much
// too early the lease was taken over, if it was.
func takeover(rng *rand.Rand, lapse func([]glance) time.Duration) (early time.Duration, ok bool) {
	upTo := func(d time.Duration) time.Duration { return 1 + time.Duration(rng.Int64N(int64(d))) }
	slow := 1 - sightRate
	if rng.IntN(4) > 0 {
		slow += sightRate * rng.Float64()
	}
	type write struct{ sent, stored time.Duration }
	var writes []write
	for at := time.Duration(0); len(writes) == 0 || rng.IntN(4) > 0 && len(writes) < 8; {
		w := write{sent: at, stored: at + upTo(50*time.Millisecond)}
		writes = append(writes, w)
		at = w.stored + upTo(sightTTL/2)
	}
	at := func(instant time.Duration) int { // the version that is stored then
		n := 0
		for n < len(writes) && writes[n].stored <= instant {
			n++
		}
		return n
	}
	ends := func(version int) time.Duration { // of the belief, to the nanosecond before
		return writes[version-1].sent + time.Duration(float64(sightTTL)/slow) - 1
	}
	const offset = time.Hour
	var seen []glance
	for next := writes[0].sent; next < 10*sightTTL; {
		asked := next
		answered := asked + upTo(time.Second)
		came := answered + upTo(50*time.Millisecond)
		next = came + upTo(sightTTL/4)
		v := at(answered)
		if v == 0 {
			continue
		}
		seen = append(seen, glance{v, asked + offset, came + offset, time.Duration(float64(writes[v-1].sent) * slow)})
		if lapsed := max(lapse(seen)-offset, came); lapsed < next {
			// The write is on condition of the version.
			if judged := lapsed + upTo(50*time.Millisecond); at(judged) == v {
				return ends(v) - judged, true
			}
		}
	}
	return 0, false
}
