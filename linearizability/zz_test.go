package linearizability

import (
	"os"
	"runtime"
	"testing"
	"time"
)

func TestZZ2(t *testing.T) {
	f := os.Getenv("ZZ")
	if f == "" {
		t.Skip()
	}
	st := time.Now()
	v, err := CheckFile(t.Context(), f, Options{Model: Model{Name: ModelAuto}})
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	t.Log(v, err, time.Since(st), m.Sys>>20, m.HeapAlloc>>20)
}
