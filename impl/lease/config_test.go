package lease

import (
	"encoding/json"
	"errors"
	"math"
	"math/big"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestSafeWindowByHand(t *testing.T) {
	for _, c := range []struct {
		ttl    time.Duration
		drift  float64
		margin time.Duration
		want   time.Duration
	}{
		{10 * sec, 0.05, 500 * ms, 9 * sec},
		{4, 0.25, 0, 3},
		{15 * sec, 0, 0, 15 * sec},
		{15 * sec, 0.0002, 100 * ms, 14897 * ms},                         // 15s - 3ms - 100ms
		{10 * sec, 0.5, 5*sec - 2, 2},                                    // the least that can be renewed in
		{5, 0.25, 0, 3},                                                  // 1.25 ns of drift: a whole 2 are given up
		{1_000_000_007, 0.000000001, 0, 1_000_000_005},                   // 1.000000007 ns of drift
		{365 * 24 * time.Hour, 0.999, 0, 31_536 * sec},                   // no overflow
		{365 * 24 * time.Hour, 0.000_000_000_4, 0, 365 * 24 * time.Hour}, // below the resolution
	} {
		cfg := Config{TTL: c.ttl, MaxDriftRate: c.drift, SafetyMargin: c.margin}
		if err := cfg.Validate(); err != nil {
			t.Errorf("%v", err)
		}
		if got := cfg.SafeWindow(); got != c.want {
			t.Errorf("window of %v with drift %v and margin %v is %v, want %v", c.ttl, c.drift, c.margin, got, c.want)
		}
	}
}

func TestDefaultsByHand(t *testing.T) {
	cfg := Config{TTL: 10 * sec, MaxDriftRate: 0.05, SafetyMargin: 500 * ms} // window 9s
	diff(t, "renew after", cfg.RenewAfter(), 3*sec)
	diff(t, "retry", cfg.Retry(), 900*ms)
	cfg.RenewFraction, cfg.RetryInterval = 0.5, 250*ms
	diff(t, "renew after", cfg.RenewAfter(), 4500*ms)
	diff(t, "retry", cfg.Retry(), 250*ms)
	diff(t, "shortest retry", Config{TTL: 4, MaxDriftRate: 0.25}.Retry(), time.Duration(1))
}

func TestFailoverByHand(t *testing.T) {
	// (10s TTL + 1s lock delay + 1s retry) / (1 - 0.25)
	cfg := Config{TTL: 10 * sec, MaxDriftRate: 0.25, LockDelay: sec, RetryInterval: sec}
	diff(t, "failover", cfg.Failover(), 16*sec)
	// (10s + 0.9s) / 0.95 = 11.473684210526...s, rounded up
	cfg = Config{TTL: 10 * sec, MaxDriftRate: 0.05, SafetyMargin: 500 * ms}
	diff(t, "failover", cfg.Failover(), 11_473_684_211*time.Nanosecond)
	// What never comes is not "in the past".
	cfg = Config{TTL: 365 * 24 * time.Hour, MaxDriftRate: 0.999999999}
	diff(t, "failover beyond the last instant", cfg.Failover(), time.Duration(math.MaxInt64))
}

// The timing argument itself, in exact rationals: whatever TTL the store granted,
// a client whose clock runs at 1-r of the store's, r up to the bound, ends its
// window before the store has seen the TTL pass; with all clocks within e of
// true time, the bound to configure is 2e/(1+e).
func TestWindowEndsWithinTheTTLForEveryRateWithinTheBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ttl := time.Duration(rapid.Int64Range(1, int64(maxDuration)).Draw(t, "ttl"))
		bound := rapid.Int64Range(0, billion-1).Draw(t, "bound")
		r := rapid.OneOf(rapid.Just(bound), rapid.Int64Range(0, bound)).Draw(t, "r")
		w := Config{MaxDriftRate: float64(bound) / billion}.Window(ttl)
		// w/(1-r) <= ttl  <=>  w*1e9 <= ttl*(1e9-r)
		stretched := new(big.Int).Mul(big.NewInt(int64(w)), big.NewInt(billion))
		if stretched.Cmp(new(big.Int).Mul(big.NewInt(int64(ttl)), big.NewInt(billion-r))) > 0 {
			t.Fatalf("a window of %v on a clock slow by %d ppb outlives a TTL of %v (bound %d ppb)", w, r, ttl, bound)
		}
		// And it gives away less than a nanosecond.
		stretched.Add(stretched, big.NewInt(billion))
		if stretched.Cmp(new(big.Int).Mul(big.NewInt(int64(ttl)), big.NewInt(billion-bound))) <= 0 {
			t.Fatalf("window of %v of a TTL of %v with %d ppb is shorter than it need be", w, ttl, bound)
		}
	})
}

func TestClocksWithinAQuarterOfTrueTimeNeedTwoFifthsOfDrift(t *testing.T) {
	// e = 1/4: 2e/(1+e) = 2/5. The store's clock at 5/4 of true time sees 100s
	// pass in 80s, in which a client's at 3/4 counts 60s: exactly the window.
	diff(t, "window", Config{TTL: 100 * sec, MaxDriftRate: 0.4}.SafeWindow(), 60*sec)
}

func TestConfigThatMakesNoSenseIsRefusedWithTheArithmetic(t *testing.T) {
	good := Config{TTL: 10 * sec, MaxDriftRate: 0.05, SafetyMargin: 500 * ms, LockDelay: sec}
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	edge := good
	edge.RetryInterval = 9*sec - 1
	if err := edge.Validate(); err != nil {
		t.Error(err)
	}
	for _, c := range []struct {
		change func(*Config)
		field  string
		reason string
	}{
		{func(c *Config) { c.TTL = 0 }, "TTL", "must be set"},
		{func(c *Config) { c.TTL = -sec }, "TTL", "-1s is not between 0 and 8760h0m0s"},
		{func(c *Config) { c.TTL = 366 * 24 * time.Hour }, "TTL", "8784h0m0s is not between 0 and 8760h0m0s"},
		{func(c *Config) { c.SafetyMargin = -1 }, "SafetyMargin", "-1ns"},
		{func(c *Config) { c.RetryInterval = -1 }, "RetryInterval", "-1ns"},
		{func(c *Config) { c.LockDelay = -1 }, "LockDelay", "-1ns"},
		{func(c *Config) { c.MaxDriftRate = 1 }, "MaxDriftRate", "1 is not in [0, 1)"},
		{func(c *Config) { c.MaxDriftRate = -0.1 }, "MaxDriftRate", "-0.1"},
		{func(c *Config) { c.MaxDriftRate = math.NaN() }, "MaxDriftRate", "NaN"},
		{func(c *Config) { c.RenewFraction = 1 }, "RenewFraction", "1 is not in (0, 1)"},
		{func(c *Config) { c.RenewFraction = math.NaN() }, "RenewFraction", "NaN"},
		{func(c *Config) { c.SafetyMargin = 9500 * ms }, "TTL", "window = ttl - ttl*maxDriftRate - safetyMargin = 10s - 10s*0.05 - 9.5s = 0s"},
		{func(c *Config) { c.MaxDriftRate = 0.96 }, "TTL", "= 10s - 10s*0.96 - 500ms = -100ms"},
		{func(c *Config) { c.MaxDriftRate = 0.99999999999 }, "TTL", "leaves no time to act"}, // all of it, to nine digits
		// The window is 9s.
		{func(c *Config) { c.RenewFraction = 1e-12 }, "RenewFraction", "window * renewFraction = 9s * 1e-12 = 0s"},
		{func(c *Config) { c.RenewFraction = 1 - 1e-12 }, "RenewFraction", "= 9s * 0.999999999999 = 9s"},
		{func(c *Config) { c.SafetyMargin = 9500*ms - 1 }, "RenewFraction", "1ns * 0.3333333333333333 = 0s"},
		{func(c *Config) { c.RetryInterval = time.Hour }, "RetryInterval", "1h0m0s is not below the window of 9s"},
		{func(c *Config) { c.RetryInterval = 9 * sec }, "RetryInterval", "window - renewAfter = 9s - 3s = 6s"},
	} {
		bad := good
		c.change(&bad)
		err := bad.Validate()
		e, ok := errors.AsType[*ConfigError](err)
		if !ok || e.Field != c.field || !strings.Contains(e.Reason, c.reason) || !strings.Contains(err.Error(), c.field) {
			t.Errorf("%+v: %v; want field %s and %q", bad, err, c.field, c.reason)
		}
	}
}

func TestConfigIsWrittenInWordsAndReadBack(t *testing.T) {
	full := Config{TTL: 15 * sec, MaxDriftRate: 0.01, SafetyMargin: 1500 * ms, RenewFraction: 0.25, RetryInterval: 300 * ms, LockDelay: time.Minute, Barrier: true}
	for _, c := range []struct {
		cfg  Config
		text string
	}{
		{full, `{"ttl":"15s","maxDriftRate":0.01,"safetyMargin":"1.5s","renewFraction":0.25,"retryInterval":"300ms","lockDelay":"1m0s","barrier":true}`},
		{Config{TTL: sec}, `{"ttl":"1s"}`},
	} {
		b, err := json.Marshal(c.cfg)
		if err != nil {
			t.Fatal(err)
		}
		diff(t, "written", string(b), c.text)
		var back Config
		if err := json.Unmarshal(b, &back); err != nil {
			t.Fatal(err)
		}
		diff(t, "read back", back, c.cfg)
	}
}

func TestConfigTextThatIsNotUnderstoodIsRefused(t *testing.T) {
	for text, want := range map[string]string{
		`{"ttl":"15s","tll":"3s"}`:      `unknown field "tll"`,
		`{"ttl":15}`:                    "ttl",
		`{"ttl":"15"}`:                  `ttl: "15" is not a duration`,
		`{"ttl":"1s","lockDelay":"1d"}`: `lockDelay: "1d" is not a duration`,
		`[]`:                            "array",
	} {
		cfg := Config{TTL: 77}
		err := json.Unmarshal([]byte(text), &cfg)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "lease config") {
			t.Errorf("%s: %v, want it to say %q", text, err, want)
		}
		diff(t, text+" left", cfg, Config{TTL: 77})
	}
}
