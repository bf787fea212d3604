package script

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

func TestStepsRead(t *testing.T) {
	a, a2, b := Who{1, 1}, Who{1, 2}, Who{2, 1}
	for text, want := range map[string]Step{
		"acquire a 10s":             {Do: Acquire, Who: a, TTL: 10 * time.Second},
		"acquire a.2 1.5s":          {Do: Acquire, Who: a2, TTL: 1500 * time.Millisecond},
		"acquire c.255 1ns on q":    {Do: Acquire, Who: Who{3, 255}, TTL: 1, On: 1},
		"acquire nobody 10s":        {Do: Acquire, TTL: 10 * time.Second},
		"acquire a -1s":             {Do: Acquire, Who: a, TTL: -time.Second},
		"renew a 10s":               {Do: Renew, Who: a, Token: Ref{Of: a}, TTL: 10 * time.Second},
		"renew b of a 10s":          {Do: Renew, Who: b, Token: Ref{Of: a}, TTL: 10 * time.Second},
		"renew a of last+1 10s":     {Do: Renew, Who: a, Token: Ref{Plus: 1}, TTL: 10 * time.Second},
		"renew a.2 of a.2-128 0s":   {Do: Renew, Who: a2, Token: Ref{Of: a2, Plus: -128}},
		"release a":                 {Do: Release, Who: a, Token: Ref{Of: a}},
		"release nobody of b on q":  {Do: Release, Token: Ref{Of: b}, On: 1},
		"release a of last":         {Do: Release, Who: a},
		"get":                       {Do: Get},
		"get on q":                  {Do: Get, On: 1},
		"advance 9.999s":            {Do: Advance, D: 9999 * time.Millisecond},
		"restart":                   {Do: Restart},
		"  delete \t on   q  ":      {Do: Delete, On: 1},
		"renew b of b+127 1h0m0.5s": {Do: Renew, Who: b, Token: Ref{Of: b, Plus: 127}, TTL: time.Hour + time.Second/2},
	} {
		got, err := ParseStep(text)
		if err != nil || got != want {
			t.Errorf("ParseStep(%q) = %+v, %v, want %+v", text, got, err, want)
		}
		if back, err := ParseStep(got.String()); err != nil || back != want {
			t.Errorf("%q is written %q, and read back as %+v, %v", text, got, back, err)
		}
		if canon := strings.Join(strings.Fields(text), " "); got.String() != canon {
			t.Errorf("%q is written %q", text, got)
		}
	}
}

func TestBadTextIsRefusedNamingTheLineAndTheWord(t *testing.T) {
	for text, want := range map[string]string{
		"aquire a 10s":                  `line 1: "aquire": is none of acquire, renew, release, get, advance, restart and delete`,
		"\n# no\nacquire d 10s":         `line 3: "d": is nobody that there is: a, b or c, their later incarnations a.2 to a.255, or nobody`,
		"get\nacquire a":                `line 2: the step ends where a TTL such as 10s should be`,
		"acquire a 10":                  `line 1: "10": is not a duration such as 10s or 9.999s`,
		"acquire a.0 10s":               `line 1: "a.0": is nobody that there is: a, b or c, their later incarnations a.2 to a.255, or nobody`,
		"acquire a.256 10s":             `line 1: "a.256": is nobody that there is: a, b or c, their later incarnations a.2 to a.255, or nobody`,
		"renew a of 10s":                `line 1: "10s": is no token: that of a, b.2 or last, plus or minus a small number`,
		"renew a of last+0 10s":         `line 1: "last+0": is no token: what is added to it is from -128 to 127`,
		"renew a of a+128 10s":          `line 1: "a+128": is no token: what is added to it is from -128 to 127`,
		"renew a of nobody 10s":         `line 1: "nobody": is no token: that of a, b.2 or last, plus or minus a small number`,
		"release a 10s":                 `line 1: "10s": nothing belongs there`,
		"get on r":                      `line 1: "r": is no lease: the second one is q, and the first has no name`,
		"restart on q":                  `line 1: "on": nothing belongs there`,
		"advance 0s":                    `line 1: "0s": time passes forward only`,
		"advance -1s":                   `line 1: "-1s": time passes forward only`,
		strings.Repeat("x", 41) + " 1s": `line 1: "` + strings.Repeat("x", 40) + `...": is none of acquire, renew, release, get, advance, restart and delete`,
	} {
		steps, err := ParseText(text)
		var bad *TextError
		if !errors.As(err, &bad) || err.Error() != want {
			t.Errorf("ParseText(%q) = %v, %v, want the error %s", text, steps, err, want)
		}
	}
}

func TestParsePanicsOnBadText(t *testing.T) {
	defer func() {
		if r := recover(); r == nil || !strings.Contains(r.(string), "line 2") {
			t.Errorf("it panicked with %v", r)
		}
	}()
	Parse("get\nfetch")
}

func TestStepsRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		want := randomStep(r)
		got, err := ParseStep(want.String())
		if err != nil || got != want {
			t.Fatalf("%+v is written %q, and read back as %+v, %v", want, want, got, err)
		}
	}
}

// randomStep is any step at all that has a text.
func randomStep(r *rand.Rand) Step {
	who := func(nodes int) Who {
		if n := uint8(r.IntN(nodes)); n > 0 {
			return Who{n, uint8(1 + r.IntN(255))}
		}
		return Who{}
	}
	s := Step{Do: 1 + Kind(r.IntN(int(kinds)-1))}
	if s.Do.hasWho() {
		s.Who = who(4)
	}
	if s.Do.hasToken() {
		s.Token = Ref{Of: who(4), Plus: int8(r.IntN(256) - 128)}
		if s.Who == (Who{}) && s.Token == (Ref{}) {
			s.Token.Plus = 1
		}
	}
	if s.Do.hasTTL() {
		s.TTL = time.Duration(r.Uint64())
	}
	if s.Do == Advance {
		s.D = 1 + time.Duration(r.Uint64()>>1)
		return s
	}
	if s.Do != Restart {
		s.On = uint8(r.IntN(2))
	}
	return s
}

func FuzzParseText(f *testing.F) {
	f.Add("acquire a 10s\nrenew b of last+1 1.5s on q # stolen\n\nget\nadvance 1ns\nrestart\ndelete on q\nrelease c.3 of a-1")
	f.Fuzz(func(t *testing.T, text string) {
		steps, err := ParseText(text)
		if err != nil {
			if msg := err.Error(); strings.Contains(msg, "\n") || len(msg) > 400 {
				t.Fatalf("the error is no short line: %q", msg)
			}
			return
		}
		for _, s := range steps {
			if back, err := ParseStep(s.String()); err != nil || back != s {
				t.Fatalf("%+v is written %q, and read back as %+v, %v", s, s, back, err)
			}
		}
	})
}
