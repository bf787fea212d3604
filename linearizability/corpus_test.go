package linearizability

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func corpusDir(t *testing.T) string {
	dir := os.Getenv("FENCEPOST_HISTORIES")
	if dir == "" {
		dir = "../../shared/histories"
	}
	if _, err := os.Stat(filepath.Join(dir, "manifest.tsv")); err != nil {
		t.Skipf("no corpus of recorded histories: set FENCEPOST_HISTORIES to its folder (%v)", err)
	}
	return dir
}

func TestX(t *testing.T) {
	dir := corpusDir(t)
	b, _ := os.ReadFile(filepath.Join(dir, "manifest.tsv"))
	for _, line := range strings.Split(string(b), "\n")[1:] {
		f := strings.Split(line, "\t")
		if len(f) < 6 {
			continue
		}
		name := f[4]
		if strings.HasPrefix(name, "kv ") {
			name = "kv"
		}
		ttls := []time.Duration{0}
		if strings.HasPrefix(name, "lease ") {
			name = "lease"
			ttls = []time.Duration{2 * time.Second, 10 * time.Second, 3 * time.Second, 4 * time.Second, 5 * time.Second}
		}
		m, err := ParseModel(name)
		if err != nil {
			t.Log(f[0], err)
			continue
		}
		h, err := ReadFile(filepath.Join(dir, f[0]))
		if err != nil {
			t.Log(f[0], err)
			continue
		}
		for _, ttl := range ttls {
			start := time.Now()
			v, err := Check(context.Background(), h, Options{Model: m, TTL: ttl})
			want := map[string]Result{"valid": Holds, "invalid": Violated}[f[5]]
			if ttl > 0 || v.Result != want || time.Since(start) > 20*time.Millisecond {
				t.Log(f[0], f[5], v, err, time.Since(start))
			}
		}
	}
}
