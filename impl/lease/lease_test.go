package lease

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestHolderIsReadBackAsItWasWritten(t *testing.T) {
	diff(t, "written", Holder{Node: "eu-1.example.org", Seq: 3, Nonce: 0xbeef}.String(), "eu-1.example.org#3.beef")
	rapid.Check(t, func(t *rapid.T) {
		h := Holder{
			Node:  rapid.StringMatching(`[^#]+`).Draw(t, "node"),
			Seq:   rapid.Uint64().Draw(t, "seq"),
			Nonce: rapid.Uint64().Draw(t, "nonce"),
		}
		back, err := ParseHolder(h.String())
		if err != nil || back != h {
			t.Fatalf("%#v is written %q and read back as %#v, %v", h, h, back, err)
		}
	})
}

func TestNobodyIsTheEmptyString(t *testing.T) {
	h, err := ParseHolder("")
	if err != nil || !h.IsZero() || h.String() != "" {
		t.Errorf("ParseHolder of nothing: %#v, %v", h, err)
	}
}

func TestHolderHasOneSpelling(t *testing.T) {
	for _, s := range []string{
		"alice", "alice#1", "alice.1", "#1.2", "alice#.", "alice#1.", "alice#.1", "alice#x.1", "alice#1.xyz", "alice#1.2.3", "a#b#1.2",
		"alice#-1.2", "alice#+1.2", "alice#01.2", "alice#1.0x2", "alice#1.BEEF", "alice#1.02", " ", "alice#1. 2",
		"alice#18446744073709551616.1", "alice#1.10000000000000000", // one more than fits
	} {
		h, err := ParseHolder(s)
		if !errors.Is(err, ErrHolder) || !h.IsZero() || !strings.Contains(err.Error(), s) {
			t.Errorf("ParseHolder(%q) = %#v, %v; want ErrHolder, which names it", s, h, err)
		}
	}
}

func FuzzParseHolder(f *testing.F) {
	for _, s := range []string{"", "alice#1.a11ce", "a#b#1.2", "#", "alice#01.2", "alice#18446744073709551615.ffffffffffffffff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if h, err := ParseHolder(s); err == nil && h.String() != s {
			t.Errorf("%q is read as %#v, which is written %q", s, h, h)
		}
	})
}

func TestHolderIsAStringInJSON(t *testing.T) {
	d := Durable{Token: 7, Holder: alice, TTL: sec, Status: Running}
	b, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	diff(t, "written", string(b), `{"Token":7,"Holder":"alice#1.a11ce","TTL":1000000000,"Status":1}`)
	var back Durable
	if err := json.Unmarshal(b, &back); err != nil {
		t.Fatal(err)
	}
	diff(t, "read back", back, d)
	h := bob
	if err := json.Unmarshal([]byte(`"alice"`), &h); !errors.Is(err, ErrHolder) || h != bob {
		t.Errorf("read of half a holder: %v, %v", h, err)
	}
}

func TestNextIncarnationIsAnotherHolder(t *testing.T) {
	diff(t, "next", alice.Next(), Holder{Node: "alice", Seq: 2, Nonce: 0xa11ce})
}

func TestNamesOfEveryValue(t *testing.T) {
	for op, name := range []string{"none", "acquire", "renew", "release", "get", "fence", "op(6)"} {
		diff(t, "op", Op(op).String(), name)
	}
	for code, name := range []string{"none", "granted", "released", "held", "delayed", "free", "lapsed", "lost", "invalid", "fenced", "stale", "code(11)"} {
		diff(t, "code", Code(code).String(), name)
	}
	for status, name := range []string{"free", "running", "lapsed", "status(3)"} {
		diff(t, "status", Status(status).String(), name)
	}
	for phase, name := range []string{"campaigning", "fencing", "leading", "stopping", "phase(4)"} {
		diff(t, "phase", Phase(phase).String(), name)
	}
}
