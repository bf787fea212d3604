package sim

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the golden files in testdata")

// checksums are of the traces of schedules that nobody drove, which change only
// with the World, and of those that the generator drew.
func checksums(t testing.TB) (scrambledSum, generatedSum string) {
	t.Helper()
	sum := func(schedules func(yield func(*Schedule) bool)) string {
		h := sha256.New()
		for s := range schedules {
			var trace Trace
			s.Run(Builtin(), Options{Monitor: true, Lockstep: true, Trace: &trace})
			if _, err := trace.WriteTo(h); err != nil {
				t.Fatal(err)
			}
		}
		return fmt.Sprintf("%x", h.Sum(nil))
	}
	scrambledSum = sum(func(yield func(*Schedule) bool) {
		for seed := range uint64(40) {
			if !yield(scrambled(seed, 400)) {
				return
			}
		}
	})
	generatedSum = sum(func(yield func(*Schedule) bool) {
		for seed := range uint64(20) {
			if !yield(generated(t, Chaos(), seed, 120)) || !yield(generated(t, Raw(), seed, 120)) {
				return
			}
		}
	})
	return scrambledSum, generatedSum
}

const childVar = "FENCEPOST_TEST_CHECKSUM"

// The golden checksum is the same in every environment: on every machine,
// with and without the race detector.
func TestSameScheduleSameTrace(t *testing.T) {
	one, two := checksums(t)
	if os.Getenv(childVar) != "" {
		fmt.Printf("%s=%s %s\n", childVar, one, two)
		return
	}
	golden := filepath.Join("testdata", "determinism.sha256")
	if *update {
		if err := os.WriteFile(golden, []byte(one+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if one != strings.TrimSpace(string(want)) {
		t.Errorf("traces of the fixed schedules have checksum %s, %s has %s: if the World was meant to change, run with -update", one, golden, want)
	}
	if again, gen := checksums(t); again != one || gen != two {
		t.Error("a second run in one process has other traces")
	}
	// A process of its own, one processor, and the tests before it in another order.
	for _, shuffle := range []string{"1", "2"} {
		cmd := exec.Command(os.Args[0], "-test.run=^(TestSameScheduleSameTrace|TestClocks|TestCalm.*|TestMessages.*)$", "-test.shuffle="+shuffle)
		cmd.Env = append(os.Environ(), childVar+"=1", "GOMAXPROCS="+shuffle)
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("child process: %v\n%s", err, out)
		}
		if !strings.Contains(string(out), fmt.Sprintf("%s=%s %s\n", childVar, one, two)) {
			t.Errorf("shuffled by %s, a child process has other traces than %s %s:\n%s", shuffle, one, two, out)
		}
	}
}

func TestATraceStopsWhereItsWriterDoes(t *testing.T) {
	var trace Trace
	s := scrambled(1, 2000)
	s.Run(Builtin(), Options{Trace: &trace})
	n, err := trace.WriteTo(&full{left: 10_000})
	if err != io.ErrShortWrite || n == 0 {
		t.Errorf("%d bytes, %v", n, err)
	}
}

// full takes so many bytes and no more.
type full struct{ left int }

func (f *full) Write(b []byte) (int, error) {
	if len(b) > f.left {
		return 0, io.ErrShortWrite
	}
	f.left -= len(b)
	return len(b), nil
}
