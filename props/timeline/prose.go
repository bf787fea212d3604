package timeline

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"fencepost/model"
)

// moment says what event i is as a moment of its own, before it is applied to
// the lanes, and whether it is worth one.
func (s *story) moment(i int) (m moment, shown bool) {
	e := &s.events[i]
	who := s.name(e.Node)
	m = moment{at: e.At, until: e.At, sent: e.At, who: e.Node}
	say := func(format string, args ...any) { m.text = fmt.Sprintf(format, args...) }
	switch e.Kind {
	case model.KindInvoke:
		return s.sends(i)
	case model.KindHandle:
		return s.handles(i), true
	case model.KindReturn:
		return s.returns(i)
	case model.KindLose:
		return s.loses(i)
	case model.KindDuplicate:
		say("the network copies a message from %s to %s: %v", s.name(e.Peer), who, e.Op)
		m.from, m.to, m.stroke = e.Peer, e.Node, strokeSent
		return m, false
	case model.KindLapse:
		say("the tenure of %s under %d lapses", s.name(e.Holder.Node), e.Token)
	case model.KindDelete:
		say("an operator deletes the lease")
	case model.KindLead:
		say("%s leads under %d", who, e.Token)
		if e.TTL > 0 {
			m.text += " for " + duration(e.TTL)
		}
	case model.KindFencing:
		say("%s holds %d and waits for the barrier", who, e.Token)
	case model.KindExtend:
		say("%s %s", who, s.clause(e))
		m.routine = answer
	case model.KindStepDown:
		switch {
		case e.Reason == model.ReasonLapsed && s.lanes[e.Node].bar == barFencing:
			say("%s never led under %d: its window ran out", who, e.Token)
		case e.Reason == model.ReasonLapsed && s.lanes[e.Node].mode == asleep:
			say("%s's term under %d runs out while it stands still", who, e.Token)
		case e.Reason == model.ReasonLapsed:
			say("%s's term under %d runs out", who, e.Token)
		default:
			say("%s %s from %d", who, s.clause(e), e.Token)
		}
	case model.KindResign:
		say("%s resigns from %d", who, e.Token)
		if !s.followed(i) {
			m.text += ", its work goes on"
		}
	case model.KindWork:
		say("%s begins work under %d", who, e.Token)
	case model.KindWorkDone:
		say("%s ends its work under %d", who, e.Token)
	case model.KindPause:
		say("%s pauses", who)
	case model.KindSuspend:
		say("%s is suspended", who)
	case model.KindFreeze:
		say("%s freezes, its clocks too", who)
	case model.KindResume:
		say("%s goes on after %s", who, duration(e.At-s.since[e.Node]))
	case model.KindCrash:
		say("%s crashes", who)
	case model.KindRestart:
		say("%s restarts", who)
		switch s.names[e.Node].Role {
		case model.RoleStore:
			switch {
			case e.Holder == (model.Owner{}):
				m.text += ": nobody holds the lease"
			case s.lanes[e.Node].bar != barTenure:
				// It had run out. Of a store that is known by its answers, only the
				// next ones tell whether it had put that on record.
				m.text += fmt.Sprintf(": %s may hold %d again", s.name(e.Holder.Node), e.Token)
			default:
				m.text += fmt.Sprintf(": %s holds %d", s.name(e.Holder.Node), e.Token)
			}
		case model.RoleStorage:
			m.text += fmt.Sprintf(": the highest token is %d", e.Token)
		}
	case model.KindDrift:
		if !s.drifts(i) {
			return m, false
		}
		say("%s's clock runs at %s of true time", who, percent(e.Value))
		if e.Value == 1_000_000 {
			m.routine = clockTrue
		}
	case model.KindJump:
		say("%s's wall clock jumps by %s", who, duration(e.Value))
		m.routine = wallJump
	case model.KindCut:
		say("the link between %s and %s is cut", who, s.name(e.Peer))
		m.from, m.to, m.stroke = e.Node, e.Peer, strokeCut
	case model.KindHeal:
		say("all links work again")
	case model.KindCalm:
		say("calm: no faults from here, messages take %s", duration(e.Remaining))
	case model.KindCalmEnd:
		say("the calm ends")
		return m, false
	default:
		say("%s: %v", who, e.Kind)
	}
	return m, true
}

// clause is what a client made of something, without its name; "" for events
// that are no such thing.
func (s *story) clause(e *model.Event) string {
	switch e.Kind {
	case model.KindLead:
		if e.TTL > 0 {
			return "leads for " + duration(e.TTL)
		}
		return "leads"
	case model.KindExtend:
		return "leads for " + duration(e.TTL) + " more"
	case model.KindFencing:
		return "waits for the barrier"
	case model.KindStepDown:
		if s.lanes[e.Node].bar == barFencing {
			return "gives up"
		}
		return "steps down"
	}
	return ""
}

// sends is worth a moment where the message matters and is long on its way.
func (s *story) sends(i int) (m moment, shown bool) {
	e, t := &s.events[i], s.trail(i)
	m = moment{at: e.At, until: e.At, sent: e.At, from: e.Node, to: e.Peer, stroke: strokeSent,
		text: fmt.Sprintf("%s sends its %s", s.name(e.Node), s.request(e))}
	slow := t.arrived-t.sent >= e.TTL/4
	switch e.Op {
	case model.OpWrite, model.OpRelease, model.OpFence:
		shown = true
	case model.OpRenew:
		shown = slow || !t.handled
	case model.OpAcquire:
		shown = slow && t.code == model.CodeGranted && !t.again
	}
	switch {
	case t.request != i || t.lost && !t.handled || t.handled && t.arrived == e.At || t.returned && !t.handled:
		return m, false
	case !t.handled:
		m.text += ", which never arrives"
		m.stroke = strokeNever
	}
	return m, shown
}

// handles is a request at the store or storage, with its answer.
func (s *story) handles(i int) moment {
	e, t := &s.events[i], s.trail(i)
	m := moment{at: e.At, until: e.At, sent: t.sent, from: e.Peer, to: e.Node, stroke: strokeArrives, who: e.Peer}
	text := s.name(e.Peer) + " " + s.did(e)
	if e.Copy {
		text = "a copy arrives: " + text
	}
	m.text = text + late(e, t.sent, "sent")
	if refused(e.Code) && e.Op != model.OpGet {
		m.stroke = strokeRefused
	}
	switch {
	case e.Op == model.OpAcquire && s.holds(e) && e.Owner.Node == e.Peer:
		m.routine = repeatedAcquire
	case e.Op == model.OpAcquire && (e.Code == model.CodeHeld || e.Code == model.CodeDelayed):
		m.routine = refusedAcquire
	case e.Op == model.OpRenew && s.asAsked(e) && e.Owner.Node == e.Peer:
		m.routine = renewal
	case e.Op == model.OpGet:
		m.routine = leaseQuery
	case e.Op == model.OpWrite:
		m.note = fmt.Sprintf("%s=%d (%d)", key(e.Key), e.Value, e.Asked)
	}
	return m
}

// late says when a message that took long was sent: of a request for a lease,
// a tenth of it.
func late(e *model.Event, sent int64, verb string) string {
	took := e.At - sent
	if took < int64(time.Millisecond) || took < e.TTL/10 {
		return ""
	}
	return fmt.Sprintf(" (%s %s ago)", verb, roughly(took))
}

// returns is worth a moment if the answer changed something, or if nobody saw
// the request being handled.
func (s *story) returns(i int) (m moment, shown bool) {
	e, t := &s.events[i], s.trail(i)
	m = moment{at: e.At, until: e.At, sent: t.arrived, from: e.Peer, to: e.Node, stroke: strokeArrives, who: e.Node}
	if !t.handled {
		m.sent, m.stroke, m.from, m.to = t.sent, strokeBoth, e.Node, e.Peer
		m.text = s.name(e.Node) + " " + s.did(e) + late(e, t.sent, "asked")
		return m, true
	}
	what := "an answer"
	switch {
	case refused(e.Code):
		what = "its refusal"
	case e.Op == model.OpAcquire:
		what = fmt.Sprintf("its grant of %d", e.Token)
		if other := s.other(e); other != nobody {
			what += ", the tenure of " + s.owner(other, e)
		}
	case e.Op == model.OpRenew && e.Code == model.CodeGranted && !s.asAsked(e):
		what = "its renewal: " + s.granted(e)
	case e.Op == model.OpRenew:
		what = "its renewal"
		if i+1 < len(s.events) && s.events[i+1].Kind == model.KindExtend {
			m.routine = answer
		}
	case e.Op == model.OpFence:
		what = "its fence"
	}
	m.text = s.name(e.Node) + " hears of " + what + late(e, t.sent, "asked")
	return m, s.followed(i)
}

// loses is a message that does not arrive. That of an attempt which could
// not have succeeded is routine.
func (s *story) loses(i int) (m moment, shown bool) {
	e, t := &s.events[i], s.trail(i)
	m = moment{at: e.At, until: e.At, sent: e.At, from: e.Peer, to: e.Node, stroke: strokeLost, who: e.Peer}
	sent := &s.events[t.request]
	isAnswer := sent.Kind == model.KindInvoke && sent.Peer != e.Node
	what := fmt.Sprint(e.Op)
	if sent.Kind == model.KindInvoke {
		what = s.request(sent)
	}
	if isAnswer {
		m.who = e.Node
	}
	what = s.name(m.who) + "'s " + what
	if isAnswer {
		what = "the answer to " + what
	}
	if e.Copy {
		what = "a copy of " + what
	}
	m.text = what + " is lost"
	switch e.Reason {
	case model.ReasonDown:
		m.text += ": " + s.name(e.Node) + " is down"
	case model.ReasonOverflow:
		m.text += ": too much is under way"
	}
	switch {
	case e.Copy, e.Op == model.OpGet, e.Op == model.OpRead, e.Op == model.OpAcquire && (!isAnswer || t.code != model.CodeGranted), isAnswer && e.Op == model.OpWrite:
		m.routine = lostMessage
	}
	return m, true
}

// drifts reports whether from event i on a clock runs at another rate than
// before: a rate that changes again at the same instant was never kept, and
// where an advance ends and another begins it mostly does not change at all.
func (s *story) drifts(i int) bool {
	e := &s.events[i]
	for j := i + 1; j < len(s.events) && s.events[j].At == e.At; j++ {
		if n := &s.events[j]; n.Kind == model.KindDrift && n.Node == e.Node {
			return false
		}
	}
	before := s.rates[e.Node]
	s.rates[e.Node] = e.Value
	if before == 0 {
		before = 1_000_000
	}
	return e.Value != before
}

func (s *story) name(n model.Node) string { return nameOf(s.names, n) }

// nameOf is the name of n, fit for one line of text.
func nameOf(names *model.Names, n model.Node) string {
	if n != 0 && names[n].Name == "" {
		return fmt.Sprintf("node %d", n)
	}
	return clean(names.Of(n))
}

func key(k uint8) string {
	if int(k) < model.Keys {
		return string("xyzw"[k])
	}
	return fmt.Sprintf("k%d", k)
}

// duration is ns of some clock, to the millisecond where it is longer than
// that.
func duration(ns int64) string {
	d := time.Duration(ns)
	if d >= time.Second || d <= -time.Second {
		d = d.Round(time.Millisecond)
	} else {
		d = d.Round(time.Microsecond)
	}
	if d == 0 && ns != 0 {
		d = time.Duration(ns)
	}
	text := d.String()
	for _, zero := range [...]string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-2]
		}
	}
	return text
}

// roughly is a duration to three digits.
func roughly(ns int64) string {
	unit := int64(1)
	for ns/unit >= 1000 {
		unit *= 10
	}
	return duration((ns + unit/2) / unit * unit)
}

// percent is parts per million as a percentage.
func percent(ppm int64) string {
	return strconv.FormatFloat(float64(ppm)/1e4, 'f', -1, 64) + "%"
}
