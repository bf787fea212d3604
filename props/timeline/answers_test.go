package timeline

import (
	"strings"
	"testing"
	"time"

	"fencepost/model"
	"fencepost/props/sim"
)

const (
	client1 = model.Node(3)
	client2 = model.Node(4)
)

var (
	first   = model.Owner{Node: client1, Seq: 1}
	second  = model.Owner{Node: client1, Seq: 2}
	process = model.Owner{Node: client1, Seq: 1, Boot: 1} // after a restart
	c2      = model.Owner{Node: client2, Seq: 1}
	r1      = model.Owner{Node: sim.RawNode(0), Seq: 1}
)

// grantTo is a grant to o after which o holds token.
func grantTo(o model.Owner, token uint64) model.Event {
	return model.Event{Kind: model.KindHandle, Node: sim.StoreNode, Peer: o.Node, Op: model.OpAcquire, Code: model.CodeGranted, Owner: o, Holder: o,
		Token: token, Remaining: int64(5 * time.Second)}
}

// handled is a request of peer at the store or storage, asking as owner under
// asked, and its answer.
func handled(peer model.Node, op model.Op, owner model.Owner, asked uint64, code model.Code, holder model.Owner, token uint64) model.Event {
	node := sim.StoreNode
	if op == model.OpFence || op == model.OpWrite {
		node = sim.StorageNode
	}
	return model.Event{At: 1, Kind: model.KindHandle, Node: node, Peer: peer, Op: op, Owner: owner, Asked: asked, Code: code, Holder: holder, Token: token,
		Value: 9, Remaining: int64(5 * time.Second)}
}

func TestWhatTheAnswerHasThatTheRequestHadNotIsSaid(t *testing.T) {
	const (
		acquire, renew, release, fence, write   = model.OpAcquire, model.OpRenew, model.OpRelease, model.OpFence, model.OpWrite
		granted, released, lost, fenced, landed = model.CodeGranted, model.CodeReleased, model.CodeLost, model.CodeFenced, model.CodeLanded
	)
	raw := r1.Node
	for _, c := range []struct {
		holds model.Owner // under 33, before
		event model.Event
		want  string
	}{
		// As asked: nothing to add.
		{first, handled(client1, renew, first, 33, granted, first, 33), "C1 renews 33 for 5s"},
		{first, handled(client1, release, first, 33, released, nobody, 33), "C1 releases 33"},
		{first, handled(client1, acquire, first, 0, granted, first, 33), "C1 acquires again: still 33, for 5s"},
		{nobody, handled(client1, renew, first, 33, granted, nobody, 33), "C1 renews 33 for 5s"}, // a store that names no holder
		{first, handled(client1, fence, first, 33, fenced, nobody, 33), "C1 fences 33"},

		// Renewals.
		{second, handled(client1, renew, first, 1, granted, second, 33), "C1 renews 1 as C1#1: granted 33, the tenure of C1#2"},
		{nobody, handled(client1, renew, first, 1, granted, second, 2), "C1 renews 1 as C1#1: granted 2, the tenure of C1#2"},
		{second, handled(client1, renew, first, 1, granted, nobody, 33), "C1 renews 1 as C1#1: granted 33, the tenure of C1#2"}, // it is known from before
		{process, handled(client1, renew, first, 33, granted, process, 33), "C1 renews 33 as C1#1: granted 33, the tenure of C1#1.1"},
		{c2, handled(client1, renew, first, 1, granted, c2, 33), "C1 renews 1: granted 33, the tenure of C2"},
		{first, handled(client1, renew, first, 33, granted, first, 34), "C1 renews 33: granted 34 for 5s"},
		{c2, handled(client1, renew, first, 1, granted, first, 34), "C1 renews 1: granted 34 for 5s, ends the tenure of C2 under 33"},
		{c2, handled(client1, renew, first, 1, lost, c2, 33), "C1 renews 1: refused, C2 holds 33"},
		{second, handled(client1, renew, first, 1, lost, second, 33), "C1 renews 1 as C1#1: refused, C1#2 holds 33"},
		{nobody, handled(client1, renew, first, 1, lost, nobody, 33), "C1 renews 1: refused, not its holder"},

		// Acquires.
		{c2, handled(client1, acquire, first, 0, granted, first, 34), "C1 acquires: granted 34 for 5s, ends the tenure of C2 under 33"},
		{c2, handled(client1, acquire, first, 0, granted, first, 33), "C1 acquires: granted 33 for 5s, ends the tenure of C2 under 33"},
		{first, handled(client1, acquire, second, 0, granted, second, 33), "C1 acquires as C1#2: granted 33 for 5s, ends the tenure of C1#1 under 33"},
		{first, handled(client1, acquire, first, 0, granted, first, 34), "C1 acquires: granted 34 for 5s, ends the tenure of C1#1 under 33"},
		{c2, handled(client1, acquire, first, 0, granted, c2, 33), "C1 acquires: granted 33, the tenure of C2"},
		{first, handled(client1, acquire, process, 0, model.CodeHeld, first, 33), "C1 acquires as C1#1.1: refused, C1#1 holds 33"},
		{first, handled(client2, acquire, first, 0, granted, first, 33), "C2 acquires as C1 again: still 33, for 5s"},

		// Raw parties.
		{c2, handled(raw, release, r1, 33, released, nobody, 33), "R1 releases 33: ends the tenure of C2 under 33"},
		{c2, handled(raw, release, r1, 7, released, nobody, 0), "R1 releases 7: ends the tenure of C2 under 33"},
		{c2, handled(raw, release, c2, 33, released, nobody, 33), "R1 releases 33 as C2"},
		{c2, handled(raw, release, c2, 7, released, nobody, 33), "R1 releases 7 as C2: ends the tenure of C2 under 33"},
		{second, handled(raw, release, first, 1, released, nobody, 33), "R1 releases 1 as C1#1: ends the tenure of C1#2 under 33"},
		{nobody, handled(raw, release, r1, 33, released, nobody, 33), "R1 releases 33"},
		{c2, handled(raw, renew, r1, 33, granted, c2, 33), "R1 renews 33: granted 33, the tenure of C2"},
		{c2, handled(raw, renew, c2, 33, granted, c2, 33), "R1 renews 33 as C2 for 5s"},
		{first, handled(raw, renew, second, 33, lost, first, 33), "R1 renews 33 as C1#2: refused, C1#1 holds 33"},
		{c2, handled(raw, acquire, first, 0, granted, first, 34), "R1 acquires as C1: granted 34 for 5s, ends the tenure of C2 under 33"},

		// At a storage.
		{c2, handled(client1, write, first, 32, landed, nobody, 33), "C1 writes x=9 under 32: lands, though 33 was seen"},
		{c2, handled(client1, fence, first, 32, fenced, nobody, 33), "C1 fences 32: accepted, though 33 was seen"},
		{c2, handled(client1, write, c2, 33, landed, nobody, 33), "C1 writes x=9 under 33 as C2: lands"},
	} {
		var events []model.Event
		if c.holds != nobody {
			events = append(events, grantTo(c.holds, 33))
		}
		moments, _ := tell(append(events, c.event), sim.Names(), &Options{})
		if len(moments) != len(events)+1 {
			t.Errorf("%q is told in %d moments", c.want, len(moments)-len(events))
			continue
		}
		if got := moments[len(events)].text; got != c.want {
			t.Errorf("told is %q, want %q", got, c.want)
		}
	}
}

// A client that hears later than the store answered, and what was only sent or
// lost, tell the same facts.
func TestOddAnswersAndNamesAreSaidOnTheWayToo(t *testing.T) {
	const second1 = int64(time.Second)
	id := model.Msg{Action: 1}
	late := handled(client1, model.OpRenew, first, 1, model.CodeGranted, second, 2)
	late.Req, late.At, late.TTL = id, 0, 5*second1
	hears := late
	hears.Kind, hears.Node, hears.Peer, hears.At = model.KindReturn, client1, sim.StoreNode, second1
	extends := model.Event{Kind: model.KindExtend, Node: client1, At: second1, Token: 1, TTL: 4 * second1}

	acquired := handled(client2, model.OpAcquire, c2, 0, model.CodeGranted, first, 2)
	acquired.Req, acquired.At, acquired.TTL = id, 0, 5*second1
	heard := acquired
	heard.Kind, heard.Node, heard.Peer, heard.At = model.KindReturn, client2, sim.StoreNode, second1
	leads := model.Event{Kind: model.KindLead, Node: client2, At: second1, Token: 2, TTL: 4 * second1}

	sent := model.Event{Kind: model.KindInvoke, Node: r1.Node, Peer: sim.StoreNode, Op: model.OpRelease, Req: id, Owner: c2, Asked: 33}
	dropped := model.Event{Kind: model.KindLose, Node: sim.StoreNode, Peer: r1.Node, Op: model.OpRelease, Req: id, Reason: model.ReasonDropped}

	for want, events := range map[string][]model.Event{
		"C1 renews 1 as C1#1: granted 2, the tenure of C1#2|C1 hears of its renewal: granted 2, the tenure of C1#2 (asked 1s ago), leads for 4s more": {late, hears, extends},
		"C2 acquires: granted 2, the tenure of C1|C2 hears of its grant of 2, the tenure of C1 (asked 1s ago), leads for 4s":                          {acquired, heard, leads},
		"R1 sends its release of 33 as C2, which never arrives":                                                                                       {sent},
		"R1's release of 33 as C2 is lost": {sent, dropped},
		// Live, the store's side is not seen.
		"C1 renews 1 as C1#1: granted 2, the tenure of C1#2 (asked 1s ago), leads for 4s more": {
			{Kind: model.KindInvoke, Node: client1, Peer: sim.StoreNode, Op: model.OpRenew, Req: id, Owner: first, Asked: 1, TTL: 5 * second1}, hears, extends},
	} {
		var got []string
		moments, _ := tell(events, sim.Names(), &Options{})
		for _, m := range moments {
			got = append(got, m.text)
		}
		if text := strings.Join(got, "|"); text != want {
			t.Errorf("told is %q, want %q", text, want)
		}
	}
}

func TestOddAnswersAreNoRoutine(t *testing.T) {
	renewal := handled(client1, model.OpRenew, first, 33, model.CodeGranted, first, 33)
	repeated := handled(client1, model.OpAcquire, first, 0, model.CodeGranted, first, 33)
	posing := handled(client2, model.OpAcquire, first, 0, model.CodeGranted, first, 33)
	stolen := handled(client2, model.OpRenew, c2, 7, model.CodeGranted, first, 33)
	events := []model.Event{grantTo(first, 33), renewal, repeated, renewal, posing, stolen, renewal, repeated, renewal}
	var got []string
	moments, _ := tell(events, sim.Names(), &Options{})
	for _, m := range moments {
		got = append(got, m.text)
	}
	want := "C1 acquires: granted 33 for 5s|2 renewals of C1, 1 repeated acquire of C1|C2 acquires as C1 again: still 33, for 5s|" +
		"C2 renews 7: granted 33, the tenure of C1|2 renewals of C1, 1 repeated acquire of C1"
	if text := strings.Join(got, "|"); text != want {
		t.Errorf("told is %q, want %q", text, want)
	}
}

// The bar in the store's lane is the tenure's, whoever got the answer.
func TestTheTenureIsDrawnAsTheHoldersWhoeverRenewsIt(t *testing.T) {
	events := []model.Event{grantTo(c2, 33), handled(client1, model.OpRenew, first, 7, model.CodeGranted, c2, 33)}
	moments, _ := tell(events, sim.Names(), &Options{})
	if l := moments[1].lanes[sim.StoreNode]; l.owner != c2 || l.token != 33 {
		t.Errorf("the lane has %+v, want the tenure of %+v under 33", l, c2)
	}
}

func TestARefusalWithoutAHolderIsBySomebody(t *testing.T) {
	for token, want := range map[uint64]string{0: "refused, somebody holds it", 3: "refused, somebody holds 3"} {
		e := handled(client1, model.OpAcquire, first, 0, model.CodeHeld, nobody, token)
		if got := new(story).answer(&e); got != want {
			t.Errorf("told as %q, want %q", got, want)
		}
	}
}
