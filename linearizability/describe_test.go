package linearizability

import (
	"strings"
	"testing"
	"unicode"
)

// TestATextOfTheFileCannotSteerTheTerminal: what a verdict shows of a file has no
// control characters, and no line of its own.
func TestATextOfTheFileCannotSteerTheTerminal(t *testing.T) {
	v := mustCheck(t, short(t, `
		{"version":1}
		0-1 acquire key="k\u001b[31m\n" owner=a ttl=10 -> ok token=1
		2-3 acquire key="k\u001b[31m\n" owner="b\u0000" ttl=10 -> ok token=2`), Options{Model: Model{Name: ModelFencepost}})
	if v.Result != Violated {
		t.Fatal(v)
	}
	for line := range strings.SplitSeq(v.String(), "\n") {
		if strings.ContainsFunc(line, unicode.IsControl) || !strings.HasPrefix(line, "h: ") && !strings.HasPrefix(line, "  ") {
			t.Errorf("steers the terminal: %q", line)
		}
	}
}
