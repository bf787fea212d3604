package script

import (
	"strings"
	"testing"

	"fencepost/model"
	"fencepost/props/kit"
)

func TestStoriesReadLikeProse(t *testing.T) {
	tell := func(open Open, text string) string {
		return "\n" + strings.Join(Story(Run(open, kit.Options{}, Parse(text))), "\n") + "\n"
	}
	for _, c := range []struct{ got, want string }{
		{tell(memory, "acquire a 10s\nadvance 4s\nacquire b 10s\nrenew c 1s\nadvance 5.999999999s\nadvance 1ns\nget\nadvance 1s"), `
 0s  a acquires for 10s  granted: token 1 for 10s
 4s  b acquires for 10s  refused: a holds it under token 1 for another 6s
10s  who holds it?       nobody holds it
`},
		{tell(noOwner().open, "acquire a 10s\nadvance 9s\nrenew b of a 10s"), `
0s  a acquires for 10s                    granted: token 1 for 10s
9s  b renews under token 1 (a's) for 10s  granted: token 1 for 10s  ◄
    expected: refused as lost: a holds it under token 1 for another 1s, and this is b's request under token 1
`},
		{tell(memory, "acquire a 10s\nrelease a\nacquire a 5s\nrenew a of last-1 1s\nrelease b of last+1\nacquire a.2 1s\nrelease a.2 of a"), `
0s  a acquires for 10s                          granted: token 1 for 10s
0s  a releases under token 1                    released
0s  a acquires for 5s                           granted: token 2 for 5s
0s  a renews under token 1 (an old one) for 1s  refused: lost, a holds it under token 2
0s  b releases under token 3 (never granted)    refused: lost, a holds it under token 2
0s  a.2 (a, restarted) acquires for 1s          refused: a holds it under token 2 for another 5s
0s  a.2 releases under token 2 (a's)            refused: lost, a holds it under token 2
`},
		{tell(memory, "acquire a 10s on q\nget\nget on q\nrestart\nrelease a on q\nacquire b 2s\ndelete"), `
0s  a acquires shard-2 for 10s                granted: token 1 for 10s
0s  who holds shard-1?                        nobody holds it
0s  who holds shard-2?                        a holds it under token 1 for another 10s
0s  the store crashes and restarts
0s  a releases shard-2 under token 1          released
0s  b acquires shard-1 for 2s                 granted: token 1 for 2s
0s  an operator deletes the lease of shard-1
`},
		{tell(memory, strings.Repeat("get\nadvance 1s\n", 12)), `
(2 lines before)
 2s  who holds it?  nobody holds it
 3s  who holds it?  nobody holds it
 4s  who holds it?  nobody holds it
 5s  who holds it?  nobody holds it
 6s  who holds it?  nobody holds it
 7s  who holds it?  nobody holds it
 8s  who holds it?  nobody holds it
 9s  who holds it?  nobody holds it
10s  who holds it?  nobody holds it
11s  who holds it?  nobody holds it
`},
		{tell(memory, ""), "\n\n"},
	} {
		if c.got != c.want {
			t.Errorf("got%swant%s", c.got, c.want)
		}
	}
}

func TestAPassageOfTimeIsToldWhereItIsWhatFails(t *testing.T) {
	r := Result{Lines: []Line{{Step: Step{Do: Acquire, Who: Who{1, 1}, TTL: 1}, Answer: "granted"}, {Step: Step{Do: Advance, D: 2}, Answer: "panic: tick"}},
		Breach: &model.Breach{Want: "no panic"}}
	want := "0s  a acquires for 1ns  granted\n0s  2ns pass            panic: tick  ◄ expected: no panic"
	if got := strings.Join(Story(r), "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
