package evidence_test

import (
	"os"
	"testing"

	"fencepost/linearizability/evidence"
)

func TestLook(t *testing.T) {
	dir := os.Getenv("LOOK")
	if dir == "" {
		t.Skip()
	}
	for n, p := range map[string]evidence.Page{"frozen": frozenClient(false), "unfenced": frozenClient(true), "jepsen": jepsen()} {
		f, _ := os.Create(dir + "/" + n + ".html")
		if err := evidence.WriteHTML(f, p); err != nil {
			t.Fatal(err)
		}
		f.Close()
		f, _ = os.Create(dir + "/" + n + ".svg")
		if err := evidence.WriteSVG(f, p); err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
}
