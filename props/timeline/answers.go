package timeline

import (
	"fmt"
	"strconv"

	"fencepost/model"
)

var nobody model.Owner

// requester is the node that sent the request which e is about.
func requester(e *model.Event) model.Node {
	if e.Kind == model.KindHandle {
		return e.Peer
	}
	return e.Node
}

// request is the noun for what a request asks for.
func (s *story) request(e *model.Event) string {
	as := s.as(e)
	switch e.Op {
	case model.OpAcquire:
		return "acquire" + as
	case model.OpRenew:
		return fmt.Sprintf("renewal of %d%s", e.Asked, as)
	case model.OpRelease:
		return fmt.Sprintf("release of %d%s", e.Asked, as)
	case model.OpGet:
		return "query"
	case model.OpFence:
		return fmt.Sprintf("fence %d%s", e.Asked, as)
	case model.OpWrite:
		return fmt.Sprintf("write %s=%d under %d%s", key(e.Key), e.Value, e.Asked, as)
	case model.OpRead:
		return "read"
	}
	return "message"
}

// did is a request and its answer. What the answer has that is not what the
// request carried is said: as a rule that is what decides.
func (s *story) did(e *model.Event) string {
	as := s.as(e)
	switch e.Op {
	case model.OpAcquire:
		if s.holds(e) {
			return fmt.Sprintf("acquires%s again: still %d, for %s", as, e.Token, duration(e.Remaining))
		}
		return "acquires" + as + ": " + s.answer(e)
	case model.OpRenew:
		if s.asAsked(e) {
			return fmt.Sprintf("renews %d%s for %s", e.Asked, as, duration(e.Remaining))
		}
		return fmt.Sprintf("renews %d%s: %s", e.Asked, as, s.answer(e))
	case model.OpRelease:
		text := fmt.Sprintf("releases %d%s", e.Asked, as)
		switch {
		case e.Code != model.CodeReleased:
			text += ": " + s.answer(e)
		case s.endsOther(e):
			text += ": " + s.ends(e)
		}
		return text
	case model.OpGet:
		return "asks who holds: " + s.answer(e)
	case model.OpFence:
		text := fmt.Sprintf("fences %d%s", e.Asked, as)
		if e.Code != model.CodeFenced || e.Token > e.Asked {
			text += ": " + s.answer(e)
		}
		return text
	case model.OpWrite:
		return fmt.Sprintf("writes %s=%d under %d%s: %s", key(e.Key), e.Value, e.Asked, as, s.answer(e))
	case model.OpRead:
		return fmt.Sprintf("reads %s: %s", key(e.Key), s.answer(e))
	}
	return s.answer(e)
}

// answer is the outcome of an operation.
func (s *story) answer(e *model.Event) string {
	switch e.Code {
	case model.CodeGranted:
		return s.granted(e)
	case model.CodeHeld:
		holds := fmt.Sprintf("%s holds %d", s.owner(e.Holder, e), e.Token)
		switch {
		case e.Holder == nobody && e.Token == 0: // refusals of some stores carry no details
			holds = "somebody holds it"
		case e.Holder == nobody:
			holds = fmt.Sprintf("somebody holds %d", e.Token)
		}
		if e.Op == model.OpGet {
			return holds
		}
		return "refused, " + holds
	case model.CodeDelayed:
		if e.Op == model.OpGet {
			return "nobody, lock delay for " + duration(e.Remaining)
		}
		return "refused, lock delay for " + duration(e.Remaining)
	case model.CodeFree:
		return "nobody"
	case model.CodeNone:
		return "no answer"
	case model.CodeLapsed:
		return "refused, lapsed"
	case model.CodeLost:
		if e.Holder != nobody {
			return fmt.Sprintf("refused, %s holds %d", s.owner(e.Holder, e), e.Token)
		}
		return "refused, not its holder"
	case model.CodeInvalid:
		return "refused as invalid"
	case model.CodeStale:
		return fmt.Sprintf("refused, %d was seen", e.Token)
	case model.CodeLanded, model.CodeFenced:
		text := "lands"
		if e.Code == model.CodeFenced {
			text = "accepted"
		}
		if e.Token > e.Asked {
			text += fmt.Sprintf(", though %d was seen", e.Token)
		}
		return text
	case model.CodeValue:
		return strconv.FormatInt(e.Value, 10)
	}
	return fmt.Sprint(e.Code)
}

func refused(c model.Code) bool {
	switch c {
	case model.CodeHeld, model.CodeDelayed, model.CodeLapsed, model.CodeLost, model.CodeInvalid, model.CodeStale:
		return true
	}
	return false
}

// granted is what a grant gave: to its sender for how long, or else whose it is.
func (s *story) granted(e *model.Event) string {
	text := fmt.Sprintf("granted %d", e.Token)
	if of := s.tenureOf(e); s.isOther(of, e) {
		text += ", the tenure of " + s.owner(of, e)
	} else {
		text += " for " + duration(e.Remaining)
	}
	if s.endsOther(e) {
		text += ", " + s.ends(e)
	}
	return text
}

// asAsked reports whether e grants the tenure that the request named, and that
// was the one to renew.
func (s *story) asAsked(e *model.Event) bool {
	return e.Code == model.CodeGranted && (e.Token == e.Asked || e.Token == 0) && s.other(e) == nobody
}

// holds reports whether e grants what its owner holds already.
func (s *story) holds(e *model.Event) bool {
	l := &s.lanes[e.Node]
	return e.Kind == model.KindHandle && e.Code == model.CodeGranted && l.bar == barTenure && l.token == e.Token && l.owner == e.Owner && s.tenureOf(e) == e.Owner
}

// tenureOf is whose tenure an answer is about: who the store says, or who has
// had its token until now, or else whose request it is.
func (s *story) tenureOf(e *model.Event) model.Owner {
	switch l := &s.lanes[e.Node]; {
	case e.Holder != nobody:
		return e.Holder
	case e.Kind == model.KindHandle && l.bar == barTenure && l.token == e.Token:
		return l.owner
	}
	return e.Owner
}

// isOther reports whether o is not the holder that the request carried.
func (s *story) isOther(o model.Owner, e *model.Event) bool {
	if e.Owner == nobody { // it did not say: a node stands for itself
		return o != nobody && o.Node != requester(e)
	}
	return o != e.Owner
}

// other is whose tenure an answer touches besides that of the holder that the
// request carried, if any.
func (s *story) other(e *model.Event) model.Owner {
	if of := s.tenureOf(e); s.isOther(of, e) {
		return of
	}
	if s.endsOther(e) {
		return s.lanes[e.Node].owner
	}
	return nobody
}

// endsOther reports whether an answer ends a running tenure that neither the
// request nor the answer names. A store that keeps the rules never does.
func (s *story) endsOther(e *model.Event) bool {
	l := &s.lanes[e.Node]
	switch {
	case e.Kind != model.KindHandle || l.bar != barTenure:
		return false
	case l.token == e.Asked && !s.isOther(l.owner, e):
		return false
	case e.Code == model.CodeGranted:
		return l.token != e.Token || l.owner != s.tenureOf(e)
	}
	return e.Code == model.CodeReleased
}

func (s *story) ends(e *model.Event) string {
	l := &s.lanes[e.Node]
	return fmt.Sprintf("ends the tenure of %s under %d", s.owner(l.owner, e), l.token)
}

// as says which holder a request carried: where its node is not the sender, or
// where the answer is about another incarnation of that node.
func (s *story) as(e *model.Event) string {
	other := s.other(e)
	switch {
	case e.Owner == nobody:
		return ""
	case other.Node == e.Owner.Node && other != e.Owner:
		return " as " + s.incarnation(e.Owner)
	case e.Owner.Node != requester(e):
		return " as " + s.name(e.Owner.Node)
	}
	return ""
}

// owner names o in the telling of e: the whole incarnation where its node's
// name would be taken for the sender, or for the holder that the request carried.
func (s *story) owner(o model.Owner, e *model.Event) string {
	if o.Node != 0 && (o.Node == requester(e) || o.Node == e.Owner.Node && o != e.Owner) {
		return s.incarnation(o)
	}
	return s.name(o.Node)
}

// incarnation is o as model.Names.Owner has it, fit for one line of text.
func (s *story) incarnation(o model.Owner) string {
	text := fmt.Sprintf("%s#%d", s.name(o.Node), o.Seq)
	if o.Boot != 0 {
		text += fmt.Sprintf(".%d", o.Boot)
	}
	return text
}
