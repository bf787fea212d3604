package clock

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"
)

func TestDriftingReadsItsRateTimesTheBase(t *testing.T) {
	for _, c := range []struct {
		rate               Rate
		offset, move, want time.Duration
	}{
		{True, 0, time.Second, 11 * time.Second},
		{True, 42 * time.Second, time.Second, 53 * time.Second},
		{True, -42 * time.Second, time.Second, -31 * time.Second},
		{800_000, 0, 5 * time.Second, 14 * time.Second},
		{1_250_000, 0, 4 * time.Second, 15 * time.Second},
		{0, 0, time.Hour, 10 * time.Second},
		{1, 0, 999_999, 10 * time.Second},
		{1, 0, 1_000_000, 10*time.Second + 1},
		{1, -10 * time.Second, 1_999_999, 1},
		{999_999, -10 * time.Second, 1, 0},
		{333_333, -11 * time.Second, 3, -time.Second}, // 0.999999 ns more, rounded down
	} {
		m := NewManual(10 * time.Second)
		d := NewDrifting(m, c.rate, c.offset)
		if got := d.Now(); got != 10*time.Second+c.offset {
			t.Errorf("rate %d, offset %v: reads %v at first", c.rate, c.offset, got)
		}
		m.Advance(c.move)
		if got := d.Now(); got != c.want {
			t.Errorf("rate %d, offset %v, moved %v: reads %v, want %v", c.rate, c.offset, c.move, got, c.want)
		}
	}
}

func TestSetRateDoesNotRound(t *testing.T) {
	// A third of the true rate, set anew at each nanosecond: rounding each time would
	// leave the clock where it was.
	m := NewManual(0)
	d := NewDrifting(m, 333_333, 0)
	for range 100_000 {
		m.Advance(1)
		d.SetRate(333_333)
	}
	if got := d.Now(); got != 33_333 {
		t.Fatalf("reads %d ns, want 33333", got)
	}
}

func TestSetRateDoesNotMakeTheReadingJump(t *testing.T) {
	m := NewManual(0)
	d := NewDrifting(m, 700_001, 0)
	m.Advance(12_345)
	before := d.Now()
	for _, rate := range []Rate{0, math.MaxInt64, 1, True} {
		d.SetRate(rate)
		if got := d.Now(); got != before {
			t.Fatalf("reads %d right after the change to %d, want %d", got, rate, before)
		}
	}
}

// exact is the definition of the reading, in rational numbers: an oracle that shares
// nothing with line.
type exact struct{ read big.Rat }

func (e *exact) move(d time.Duration, rate Rate) {
	step := new(big.Rat).SetFrac(big.NewInt(int64(rate)), big.NewInt(1_000_000))
	e.read.Add(&e.read, step.Mul(step, new(big.Rat).SetInt64(int64(d))))
}

// floor rounds down, and what exceeds a Duration to the largest.
func (e *exact) floor() time.Duration {
	q := new(big.Int).Div(e.read.Num(), e.read.Denom()) // Euclidean: the floor, as Denom > 0
	if !q.IsInt64() {
		return math.MaxInt64
	}
	return time.Duration(q.Int64())
}

func TestDriftingReadsTheExactValueRoundedDown(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 1))
	anyRate := func() Rate {
		switch r.IntN(8) {
		case 0:
			return 0
		case 1:
			return Rate(r.IntN(5))
		case 2:
			return Rate(r.Int64N(1 << 40))
		default:
			return True + Rate(r.IntN(400_001)-200_000)
		}
	}
	anyMove := func() time.Duration { return time.Duration(r.Int64N(1 << r.IntN(45))) }
	rounded := 0
	for range 300 {
		start := time.Duration(r.Int64N(1<<54) - 1<<53) // leaves room for the moves
		offset := time.Duration(r.Int64N(1<<46) - 1<<45)
		m := NewManual(start)
		rate := anyRate()
		d := NewDrifting(m, rate, offset)
		var e exact
		e.read.SetInt64(int64(start + offset))
		for step := range 60 {
			move := anyMove()
			m.Advance(move)
			e.move(move, rate)
			if got, want := d.Now(), e.floor(); got != want {
				t.Fatalf("step %d: reads %d, exactly %s, want %d", step, got, e.read.RatString(), want)
			}
			if !e.read.IsInt() {
				rounded++
			}
			if r.IntN(2) == 0 {
				rate = anyRate()
				d.SetRate(rate)
			}
		}
	}
	if rounded < 1000 {
		t.Fatalf("only %d readings were not whole: the test has not tested rounding", rounded)
	}
}

// The instant that line sets alarms for is the first at which it reads what is asked
// for, by the same oracle.
func TestLineReachesAtTheFirstInstant(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 2))
	for range 20_000 {
		l := line{
			from: time.Duration(r.Int64N(1<<40) - 1<<39),
			read: time.Duration(r.Int64N(1<<40) - 1<<39),
			part: r.Uint64N(uint64(True)),
			rate: Rate(1 + r.Int64N(1<<(1+r.IntN(30)))),
		}
		at := l.read + 1 + time.Duration(r.Int64N(1<<(1+r.IntN(40))))
		base, ever := l.reaches(at)
		if !ever {
			t.Fatalf("%+v never reads %d", l, at)
		}
		for _, c := range []struct {
			base    time.Duration
			reached bool
		}{{base, true}, {base - 1, false}} {
			var e exact
			e.read.SetFrac64(int64(l.part), int64(True))
			e.read.Add(&e.read, new(big.Rat).SetInt64(int64(l.read)))
			e.move(c.base-l.from, l.rate)
			if got := e.floor() >= at; got != c.reached {
				t.Fatalf("%+v, asked for %d: at %d it reads %d", l, at, c.base, e.floor())
			}
		}
	}
}

func TestLineAtTheEndsOfTheRange(t *testing.T) {
	const low, high = math.MinInt64, math.MaxInt64
	never := time.Duration(-1) // no case below is reached at -1
	for _, c := range []struct {
		name     string
		line     line
		base     time.Duration
		reading  time.Duration
		at, when time.Duration
	}{
		{"the whole range at the true rate", line{from: low, read: low, rate: True}, high, high, high, high},
		{"the whole range, slowly", line{from: low, read: 0, rate: 500_000}, high, high, high, high - 1},
		{"half the range at double the rate", line{from: 0, read: low, rate: 2 * True}, high, high - 1, 0, 1 << 62},
		{"beyond the range", line{from: 0, read: 1, rate: True}, high, high, high, high - 1},
		{"far beyond the range", line{from: low, read: low, rate: high}, high, high, high, low + 2_000_001},
		{"a part that completes the last step", line{from: high - 1, read: 0, part: 1, rate: 999_999}, high, 1, 1, high},
		{"a part too little for the last step", line{from: high - 1, read: 0, part: 1, rate: 999_998}, high, 0, 1, never},
		{"more time than the base has left", line{from: high - 1, read: 0, rate: True}, high, 1, 2, never},
		{"more time than 64 bits hold", line{from: low, read: low, rate: 1}, low + 1, low, high, never},
		{"standing still", line{from: 3, read: 5, rate: 0}, high, 5, 6, never},
		{"standing still, there already", line{from: 3, read: 5, rate: 0}, high, 5, 5, 3},
		{"a carry into the upper 64 bits", line{from: low, read: 0, part: 1, rate: 1}, high,
			18_446_744_073_709, 18_446_744_073_709, low + 18_446_744_073_708_999_999},
		{"a borrow from the upper 64 bits", line{from: 0, read: 0, part: 1, rate: True}, 1 << 58, 1 << 58, 1 << 58, 1 << 58},
		{"a base that goes back", line{from: 3, read: 5, rate: True}, 2, 5, 5, 3},
	} {
		if got, _ := c.line.reading(c.base); got != c.reading {
			t.Errorf("%s: reads %d, want %d", c.name, got, c.reading)
		}
		bent := c.line.bend(c.base, True)
		if got, _ := bent.reading(c.base); got != c.reading || bent.from < c.line.from {
			t.Errorf("%s: the bent line reads %d from %d on, want %d", c.name, got, bent.from, c.reading)
		}
		when, ever := c.line.reaches(c.at)
		if !ever {
			when = never
		}
		if when != c.when {
			t.Errorf("%s: reaches %d at %d, want %d", c.name, c.at, when, c.when)
		}
	}
}

func TestDriftingOffsetStaysInRange(t *testing.T) {
	if got := NewDrifting(NewManual(1), True, math.MaxInt64).Now(); got != math.MaxInt64 {
		t.Errorf("reads %d, want the largest duration", got)
	}
	if got := NewDrifting(NewManual(-1), True, math.MinInt64).Now(); got != math.MinInt64 {
		t.Errorf("reads %d, want the least duration", got)
	}
}

func TestDriftingNeverGoesBack(t *testing.T) {
	m := NewManual(0)
	wantPanic(t, "rate of -1 ppm", func() { NewDrifting(m, -1, 0) })
	d := NewDrifting(m, True, 0)
	wantPanic(t, "rate of -1 ppm", func() { d.SetRate(-1) })
}

func TestDriftingTimerFiresByItsOwnClock(t *testing.T) {
	for _, c := range []struct {
		name           string
		rate           Rate
		at, base, tick time.Duration // fires for at when the base reads base, and not a tick before
	}{
		{"slow", 800_000, 4 * time.Second, 5 * time.Second, 1},
		{"fast", 1_250_000, 5 * time.Second, 4 * time.Second, 1},
		{"between two nanoseconds of the base", 3, 1, 333_334, 1},
		{"several instants at one nanosecond of the base", 7_000_000, 20, 3, 1},
	} {
		m := NewManual(0)
		timer := NewDrifting(m, c.rate, 0).Timer(c.at)
		m.Set(c.base - c.tick)
		wantNone(t, timer, "of the "+c.name+" clock, early")
		m.Set(c.base)
		wantFiring(t, timer, "of the "+c.name+" clock")
		timer.Stop()
	}
}

// onBothBases runs a rule over a base whose alarms are used directly, and over one
// behind its interface.
func onBothBases(t *testing.T, rule func(t *testing.T, d *Drifting, advance func(time.Duration))) {
	t.Run("Manual", func(t *testing.T) {
		m := NewManual(0)
		rule(t, NewDrifting(m, True, 0), m.Advance)
	})
	t.Run("foreign", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			m := NewManual(0)
			rule(t, NewDrifting(foreign{m}, True, 0), settled(m.Advance))
		})
	})
}

func TestSetRateMovesAnArmedTimer(t *testing.T) {
	onBothBases(t, func(t *testing.T, d *Drifting, advance func(time.Duration)) {
		timer := d.Timer(10 * time.Second)
		defer timer.Stop()
		advance(4 * time.Second) // reads 4
		d.SetRate(True / 2)
		advance(8 * time.Second) // reads 8
		wantNone(t, timer, "at the instant of the old rate, or before that of the new one")
		d.SetRate(4 * True)
		advance(500*time.Millisecond - 1)
		wantNone(t, timer, "4 ns early")
		advance(1)
		wantFiring(t, timer, "by the rate in force")
	})
}

func TestTimerOfAStandingClockWaitsForItToMove(t *testing.T) {
	onBothBases(t, func(t *testing.T, d *Drifting, advance func(time.Duration)) {
		before := d.Timer(2)
		defer before.Stop()
		d.SetRate(0)
		during := d.Timer(1)
		defer during.Stop()
		advance(time.Hour)
		wantNone(t, before, "of a timer armed before the clock stood still")
		wantNone(t, during, "of a timer armed while the clock stood still")
		d.SetRate(True)
		advance(1)
		wantNone(t, before, "too early")
		wantFiring(t, during, "1 ns after the clock moved on")
		advance(1)
		wantFiring(t, before, "2 ns after the clock moved on")
	})
}

func TestSetRateLeavesFiredTimersAlone(t *testing.T) {
	onBothBases(t, func(t *testing.T, d *Drifting, advance func(time.Duration)) {
		heard, unheard, stopped := d.Timer(1), d.Timer(1), d.Timer(2)
		defer heard.Stop()
		defer unheard.Stop()
		stopped.Stop()
		advance(1)
		wantFiring(t, heard, "at the instant")
		d.SetRate(2 * True)
		advance(0)
		wantNone(t, heard, "again, by the change of rate")
		wantNone(t, stopped, "of a stopped timer")
		wantFiring(t, unheard, "that was there before the change of rate")
		advance(time.Hour)
		wantNone(t, heard, "again")
		wantNone(t, stopped, "of a stopped timer")
	})
}

func TestInnerRateMovesTheOuterTimer(t *testing.T) {
	m := NewManual(0)
	inner := NewDrifting(m, True, time.Hour)
	outer := NewDrifting(inner, True/2, -time.Hour)
	timer := outer.Timer(3 * time.Second)
	defer timer.Stop()
	m.Advance(2 * time.Second) // outer reads 1 s
	inner.SetRate(4 * True)
	m.Advance(time.Second - 1)
	wantNone(t, timer, "2 ns early")
	m.Advance(1)
	wantFiring(t, timer, "at the outer clock's instant")
}

func TestStoppedTimersLeaveTheClock(t *testing.T) {
	m := NewManual(0)
	plain, relayed := NewDrifting(m, True, 0), NewDrifting(foreign{m}, True, 0)
	for _, c := range []Clock{m, plain, relayed} {
		c.Timer(time.Second).Stop()
	}
	if kept := len(m.pending) + len(plain.alarms) + len(relayed.alarms); kept != 0 {
		t.Fatalf("%d alarms kept of stopped timers", kept)
	}
}
