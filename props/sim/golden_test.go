package sim

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fencepost/model"
)

// A story is a schedule and, below a line, what it comes to: a file for people
// to read. Run with -update to write the second part anew, and read it.
func TestStories(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join("testdata", "*.txt"))
	if err != nil || len(paths) < 4 {
		t.Fatalf("%d stories, %v", len(paths), err)
	}
	const line = "\n----\n"
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			file, want, found := strings.Cut(string(text), line)
			if !found {
				t.Fatalf("%s has no line ----", path)
			}
			s, err := ReadSchedule(strings.NewReader(file), path)
			if err != nil {
				t.Fatal(err)
			}
			var trace Trace
			r := s.Run(Builtin(), Options{Monitor: true, Lockstep: true, Trace: &trace})
			if r.First.Invariant != s.Expect || r.Waived != s.Waives {
				t.Errorf("violated %v, waived %v; the schedule says %v and %v", r.First.Invariant, r.Waived, s.Expect, s.Waives)
			}
			var got bytes.Buffer
			if _, err := trace.WriteTo(&got); err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&got, "violated: %s\nwaived: %s\nx: %d\n", orNone(r.Violated), orNone(r.Waived), r.World.Value(0))
			if *update {
				if err := os.WriteFile(path, []byte(file+line+got.String()), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if got.String() != want {
				t.Errorf("%s: the run came to\n%s\nwant\n%s", path, got.String(), want)
			}
		})
	}
}

func orNone(s model.Set) string {
	if s == 0 {
		return "none"
	}
	return s.String()
}
