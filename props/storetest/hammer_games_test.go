package storetest

import (
	"errors"
	"strings"
	"testing"

	"fencepost/impl/lease"
	"fencepost/model"
	"fencepost/props/kit"
)

// turn is a tenure of somebody: when its acquire and its release were called and
// were answered.
type turn struct {
	who        string
	token      lease.Token
	a, b, c, d int64
	err        error // of the release
}

func TestTenuresOfOneLeaseTakeTurns(t *testing.T) {
	lost := &lease.LostError{}
	for _, c := range []struct {
		name   string
		tokens model.TokenRule
		turns  []turn
		want   string // "" for what is right
	}{
		{"one after the other", model.TokensNext, []turn{{"a", 7, 1, 2, 3, 4, nil}, {"b", 8, 5, 6, 7, 8, nil}}, ""},
		{"the grant comes while the release is under way", model.TokensNext, []turn{{"a", 7, 1, 2, 3, 6, nil}, {"b", 8, 4, 5, 7, 8, nil}}, ""},
		{"two acquires whose answers change places", model.TokensNext, []turn{{"a", 8, 1, 4, 5, 6, nil}, {"b", 7, 2, 3, 3, 7, nil}}, ""},
		{"two at once", model.TokensNext, []turn{{"a", 7, 1, 2, 5, 6, nil}, {"b", 8, 3, 4, 7, 8, nil}}, "b was granted the lease under token 8 while a had it under token 7"},
		{"a release is refused", model.TokensNext, []turn{{"a", 7, 1, 2, 3, 4, lost}, {"b", 8, 5, 6, 7, 8, nil}}, "a had the lease, and could not release it"},
		{"a release may have failed", model.TokensNext, []turn{{"a", 7, 1, 2, 3, 4, errors.New("?")}, {"b", 8, 5, 6, 7, 8, nil}}, ""},
		{"a token twice", model.TokensRising, []turn{{"a", 7, 1, 2, 3, 4, nil}, {"b", 7, 5, 6, 7, 8, nil}}, "token 7 was granted twice: to a and to b"},
		{"a token falls", model.TokensRising, []turn{{"a", 7, 1, 2, 3, 4, nil}, {"b", 6, 5, 6, 7, 8, nil}}, "b was granted token 6, after token 7 had been granted to a"},
		{"a token is skipped", model.TokensNext, []turn{{"a", 7, 1, 2, 3, 4, nil}, {"b", 9, 5, 6, 7, 8, nil}}, "it must get token 8"},
		{"a token is skipped, which may be", model.TokensRising, []turn{{"a", 7, 1, 2, 3, 4, nil}, {"b", 9, 5, 6, 7, 8, nil}}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := hammer{o: kit.Options{Tokens: c.tokens}}
			var grants []*call
			until := map[*call]*call{}
			for _, x := range c.turns {
				holder := lease.Holder{Node: x.who, Seq: 1}
				g := &call{op: lease.OpAcquire, holder: holder, from: x.a, to: x.b, grant: lease.Grant{Token: x.token}}
				until[g] = &call{op: lease.OpRelease, holder: holder, token: x.token, from: x.c, to: x.d, err: x.err}
				grants = append(grants, g)
				h.calls = append(h.calls, g, until[g])
			}
			b := h.turns(grants, until)
			if c.want == "" {
				if b != nil {
					t.Errorf("convicted: %s", b.what)
				}
				return
			}
			if b == nil || !strings.Contains(b.what, c.want) {
				t.Fatalf("want %q, not %+v", c.want, b)
			}
			if story := strings.Join(h.tell(b), "\n"); strings.Count(story, "◄") != 1 {
				t.Errorf("the answer is not marked:\n%s", story)
			}
		})
	}
}
