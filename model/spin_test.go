package model_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// spin is what Spin says of one configuration of the reference model.
type spin struct {
	pan                 string // the verifier that Spin generated
	states, transitions uint64
	seconds             float64 // as pan measured itself
	megabytes           float64
}

// buildSpin makes the verifier of c. Without the tools it skips.
func buildSpin(tb testing.TB, c reference, flags ...string) spin {
	tb.Helper()
	for _, tool := range []string{"spin", "gcc"} {
		if _, err := exec.LookPath(tool); err != nil {
			tb.Skipf("%s is missing: install the Debian packages spin and gcc to compare with Spin", tool)
		}
	}
	source, err := filepath.Abs(filepath.Join("..", "testdata", "spin", "lease.pml"))
	if err != nil {
		tb.Fatal(err)
	}
	dir := tb.TempDir()
	pause := 0
	if c.pause {
		pause = 1
	}
	run(tb, dir, "spin", "-a", fmt.Sprintf("-DN=%d", c.clients), fmt.Sprintf("-DT=%d", c.now), fmt.Sprintf("-DK=%d", c.tokens),
		fmt.Sprintf("-DD=%d", c.lag), fmt.Sprintf("-DPAUSE=%d", pause), source)
	run(tb, dir, "gcc", append(append([]string{"-O2", "-DSAFETY", "-DNOREDUCE"}, flags...), "-o", "pan", "pan.c")...)
	return spin{pan: filepath.Join(dir, "pan")}
}

// verify runs the verifier.
func (s *spin) verify(tb testing.TB, args ...string) {
	tb.Helper()
	out := run(tb, filepath.Dir(s.pan), s.pan, args...)
	if !strings.Contains(out, "errors: 0") {
		tb.Fatalf("pan found errors or did not end:\n%s", out)
	}
	s.states = uint64(number(tb, out, `([0-9.e+]+) states, stored`))
	s.transitions = uint64(number(tb, out, `([0-9.e+]+) transitions`))
	s.seconds = number(tb, out, `elapsed time ([0-9.e+]+) seconds`)
	s.megabytes = number(tb, out, `([0-9.]+)\s+total (?:actual memory|shared memory) usage`)
}

func run(tb testing.TB, dir, name string, args ...string) string {
	tb.Helper()
	cmd := exec.CommandContext(tb.Context(), name, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		tb.Fatalf("%s: %v\n%s", cmd, err, out)
	}
	return string(out)
}

func number(tb testing.TB, out, pattern string) float64 {
	tb.Helper()
	m := regexp.MustCompile(pattern).FindStringSubmatch(out)
	if m == nil {
		tb.Fatalf("nothing like %q in what pan printed:\n%s", pattern, out)
	}
	n, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		tb.Fatalf("pan printed %q for %q: %v", m[1], pattern, err)
	}
	return n
}

func TestSpinCountsTheSameStates(t *testing.T) {
	for _, c := range []struct {
		name                string
		config              reference
		states, transitions uint64
	}{
		{"S", refS, 144_544, 1_210_360},
		{"M", refM, 1_185_296, 11_097_328},
	} {
		t.Run(c.name, func(t *testing.T) {
			if testing.Short() && c.config != refS {
				t.Skip("not with -short")
			}
			s := buildSpin(t, c.config)
			s.verify(t, "-m1000000", "-w22")
			// Spin counts the way into the initial state as a transition.
			if s.states != c.states || s.transitions != c.transitions+1 {
				t.Errorf("Spin: %d states, %d transitions; want %d, %d", s.states, s.transitions, c.states, c.transitions+1)
			}
		})
	}
}
