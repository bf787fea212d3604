package linearizability_test

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	lin "fencepost/linearizability"
)

// BenchmarkRecorder records operations, each a call and a return, to a file;
// the time of one is what it adds to the operation that it records.
func BenchmarkRecorder(b *testing.B) {
	key, owner := lin.Field{Name: "key", Value: lin.String("shard-1")}, lin.Field{Name: "owner", Value: lin.String("node-1#4.1f")}
	ttl, token := lin.Field{Name: "ttl", Value: lin.Int(2e9)}, lin.Field{Name: "token", Value: lin.Uint(7)}
	for _, callers := range []int{1, 4, 16} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			f, err := os.Create(filepath.Join(b.TempDir(), "h.jsonl"))
			if err != nil {
				b.Fatal(err)
			}
			defer f.Close()
			start := time.Now()
			r, err := lin.NewRecorder(f, lin.DefaultMeta(), func() time.Duration { return time.Since(start) })
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			b.ResetTimer()
			var wg sync.WaitGroup
			for c := range callers {
				wg.Go(func() {
					for i := c; i < b.N; i += callers {
						r.Invoke("acquire", key, owner, ttl).OK(token)
					}
				})
			}
			wg.Wait()
			if err := r.Flush(); err != nil {
				b.Fatal(err)
			}
		})
	}
}
