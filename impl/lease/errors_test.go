package lease

import (
	"errors"
	"testing"
)

// Each refusal as an error: which type it is, what it says, and what it matches.
func TestRefusalsSayWhatHappenedToWhatAndWhatToDo(t *testing.T) {
	held := acquire(bob, sec).To(CodeHeld)
	held.Token, held.Current, held.Remaining = 7, alice, 6*sec
	delayed := acquire(bob, sec).To(CodeDelayed)
	delayed.Token, delayed.Remaining = 7, 2*sec
	lost := renew(alice, 7, sec).To(CodeLost)
	lost.Token, lost.Current = 8, bob
	gone := release(alice, 7).To(CodeLost)
	gone.Token = 7
	lapsed := renew(alice, 7, sec).To(CodeLapsed)
	lapsed.Token = 7
	for _, c := range []struct {
		rep     Reply
		want    error
		notHeld bool
		says    string
	}{
		{held, &HeldError{"db", alice, 7, 6 * sec}, false,
			`lease "db" is held by alice#1.a11ce under token 7 for another 6s; try again later`},
		{delayed, &DelayError{"db", 2 * sec}, false,
			`lease "db" lapsed and is in its lock delay for another 2s; try again then`},
		{lapsed, &LapsedError{"db", alice, 7}, true,
			`lease "db" of alice#1.a11ce under token 7 has lapsed; stop, and acquire anew as a new incarnation`},
		{lost, &LostError{"db", alice, 7, bob, 8}, true,
			`lease "db" is not held by alice#1.a11ce under token 7: the last token is 8, held by bob#1.b0b; stop, and acquire anew as a new incarnation`},
		{gone, &LostError{"db", alice, 7, Holder{}, 7}, true,
			`lease "db" is not held by alice#1.a11ce under token 7: the last token is 7; stop, and acquire anew as a new incarnation`},
		{renew(alice, 0, sec).To(CodeInvalid), &InvalidError{"db", OpRenew}, false,
			`lease "db": renew refused: it needs a holder, a positive TTL (acquire, renew), the token that was granted (renew, release) and one left to grant (acquire)`},
	} {
		err := c.rep.Err("db")
		diff(t, c.rep.Code.String(), err, c.want)
		diff(t, "message", err.Error(), c.says)
		diff(t, "matches ErrNotHeld", errors.Is(err, ErrNotHeld), c.notHeld)
	}
}

func TestWhatIsNoRefusalIsNoError(t *testing.T) {
	for _, rep := range []Reply{
		acquire(bob, sec).To(CodeGranted),
		renew(bob, 1, sec).To(CodeGranted),
		release(bob, 1).To(CodeReleased),
		{Op: OpGet, Code: CodeFree},
		{Op: OpGet, Code: CodeHeld, Current: alice},
		{Op: OpGet, Code: CodeDelayed},
		{Op: OpFence, Code: CodeFenced},
	} {
		if err := rep.Err("db"); err != nil {
			t.Errorf("%v of %v: %v", rep.Code, rep.Op, err)
		}
	}
}
