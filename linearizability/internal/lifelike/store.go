package lifelike

import (
	"fencepost/linearizability"
)

// lease is what the store knows of one resource. Instants are the recorder's;
// the store knows them by its own clock, which only the world can convert.
type lease struct {
	owner   string // of the last tenure; "" if it was released, or there was none
	token   uint64 // of the last tenure
	lapse   int64  // when it lapses; as late as any of its grants says
	largest int64  // TTL granted in this tenure
	// noticed says that the lapse is on durable record: it was answered to
	// somebody, or the store came across it. Nothing but a new grant, or a renewal
	// where that is allowed, undoes it.
	noticed bool
	delay   int64 // until when nobody is granted after the lapse; 0: not computed

	// For planted bugs.
	before former // the tenure before
	deaf   bool   // renewals of this tenure are forgotten
}

// former is an ended tenure.
type former struct {
	owner string
	token uint64
}

func (l *lease) held(now int64) bool   { return l.owner != "" && !l.noticed && now < l.lapse }
func (l *lease) lapsed(now int64) bool { return l.owner != "" && !l.held(now) }

// ends draws when a TTL that runs since g ends: by the store's clock, early or
// late within the promise.
func (w *world) ends(g, ttl int64) int64 {
	late := int64(w.Late)
	if late == linearizability.Unbounded {
		late = 4 * ttl
	}
	at := w.clock.after(g, ttl)
	switch w.rng.IntN(4) {
	case 0:
		at -= int64(w.Early)
	case 1:
		at += late
	default:
		at += w.rng.Int64N(int64(w.Early)+late+1) - int64(w.Early)
	}
	earliest := g + fastest(ttl, w.Drift) - int64(w.Early)
	latest := g + slowest(ttl, w.Drift) + late
	return max(earliest, min(at, latest))
}

// delayEnds is until when the lock delay lasts after the lapse of l.
func (w *world) delayEnds(l *lease) int64 {
	if w.LockDelay == 0 || l.owner == "" {
		return 0
	}
	if l.delay == 0 {
		d := int64(w.LockDelay)
		l.delay = max(l.lapse+fastest(d, w.Drift), min(w.clock.after(l.lapse, d), l.lapse+slowest(d, w.Drift)))
	}
	return l.delay
}

// notice puts the lapse of l on record.
func (l *lease) notice() { l.noticed = true }

// prolong lets the tenure run on; never shorter than it would have.
func (w *world) prolong(l *lease, g, ttl int64) {
	end := w.ends(g, ttl)
	if l.held(w.now) {
		end = max(end, l.lapse)
	}
	l.lapse, l.delay, l.noticed = end, 0, false
	l.largest = max(l.largest, ttl)
}

// anchor is from when on the TTL of an acquire runs that wins now.
func (w *world) anchor(o *operation) int64 {
	if w.Anchor == linearizability.AnchorGrant {
		return w.now
	}
	// It must not have run out by now, whatever the clock.
	oldest := max(o.call, w.now-fastest(o.ttl, w.Drift)+int64(w.Early)+1)
	return oldest + w.rng.Int64N(w.now-oldest+1)
}

// answer is what a server says.
type answer struct {
	typ    linearizability.Type
	fields []linearizability.Field
	wait   bool // not yet: ask again

	owner string // granted or named
	token uint64
}

var ok = answer{typ: linearizability.OK}

func refusal(word string, more ...linearizability.Field) answer {
	return answer{typ: linearizability.Fail, fields: append([]linearizability.Field{{Name: "error", Value: linearizability.Keyword(word)}}, more...)}
}

// serveLease carries out an operation on a lease.
func (w *world) serveLease(o *operation) answer {
	l := &w.leases[o.lease]
	switch o.f {
	case "acquire":
		return w.acquire(l, o)
	case "renew":
		return w.renew(l, o)
	case "release":
		return w.release(l, o)
	case "get":
		return w.get(l)
	case "delete":
		l.before = former{l.owner, l.token}
		l.owner, l.noticed = "", false
		return ok
	}
	panic("lifelike: no operation " + o.f)
}

func (w *world) acquire(l *lease, o *operation) answer {
	if l.lapsed(w.now) && !l.noticed && l.owner != o.owner && w.plant("lapses-late") {
		l.lapse = w.now + l.largest
	}
	switch held := l.held(w.now); {
	case held && l.owner == o.owner:
		w.prolong(l, w.anchor(o), o.ttl)
		return w.granted(l, o)
	case held && w.now >= l.lapse-l.largest/3 && w.plant("grants-early"):
		return w.grant(l, o)
	case held && w.queues(o, l.lapse):
		return answer{wait: true}
	case held && w.chance(0.8):
		return refusal("held", text("holder", l.owner))
	case held:
		return refusal("held")
	case l.lapsed(w.now) && w.RenewAfterLapse && l.owner == o.owner && w.chance(0.5):
		w.prolong(l, w.anchor(o), o.ttl)
		return w.granted(l, o)
	case l.lapsed(w.now) && w.now < w.delayEnds(l) && !w.plant("delay-ignored"):
		if w.queues(o, w.delayEnds(l)) {
			return answer{wait: true}
		}
		l.notice()
		if w.chance(0.8) {
			return refusal("delay")
		}
		return refusal("held")
	}
	return w.grant(l, o)
}

// grant begins a new tenure.
func (w *world) grant(l *lease, o *operation) answer {
	released := l.owner == "" && l.token != 0
	before := former{l.owner, l.token}
	if l.owner == "" {
		before.owner = l.before.owner
	}
	switch {
	case released && l.before.owner != "" && w.plant("token-reused"):
	case l.token > w.first+2 && w.plant("token-falls"):
		l.token--
	case l.token > 0 && w.Tokens == linearizability.TokensNext && w.plant("token-skips"):
		l.token += 2
	case l.token == 0:
		l.token = w.first
	case w.Tokens == linearizability.TokensRising:
		l.token += 1 + w.rng.Uint64N(9)
	default:
		l.token++
	}
	l.before = before
	l.owner, l.largest, l.noticed, l.delay, l.deaf = o.owner, o.ttl, false, 0, false
	g := w.anchor(o)
	l.lapse = w.ends(g, o.ttl)
	if w.Anchor == linearizability.AnchorCall {
		l.lapse = max(l.lapse, w.now+1) // it won, so it holds
	}
	return w.granted(l, o)
}

func (w *world) granted(l *lease, o *operation) answer {
	a := answer{typ: linearizability.OK, owner: o.owner, token: l.token}
	if w.Tokens != linearizability.TokensNone {
		a.fields = []linearizability.Field{number("token", l.token)}
	}
	return a
}

// mine reports whether the last tenure is the asker's.
func (w *world) mine(l *lease, o *operation) bool {
	return l.owner == o.owner && (w.Tokens == linearizability.TokensNone || l.token == o.token)
}

// refuse tells the asker that it does not hold the lease.
func (w *world) refuse(l *lease, o *operation) answer {
	switch {
	case w.mine(l, o): // it lapsed
		l.notice()
		return refusal("lapsed")
	case l.lapsed(w.now) && w.chance(0.5):
		l.notice() // come across, though not answered
	}
	return refusal("lost")
}

func (w *world) renew(l *lease, o *operation) answer {
	held, mine := l.held(w.now), w.mine(l, o)
	switch {
	case held && !mine && w.plant("renew-unchecked"):
		return ok
	case !mine:
		return w.refuse(l, o)
	case held && w.plant("refused-while-held"):
		return refusal("lapsed")
	case held && (l.deaf || w.plant("renew-not-applied")):
		l.deaf = true
		return ok
	case held && w.now+2*o.ttl < l.lapse+l.largest && w.plant("renew-shortens"):
		l.lapse, l.delay = w.ends(w.now, o.ttl), 0
		return ok
	case held, l.lapsed(w.now) && w.RenewAfterLapse && w.chance(0.8):
		w.prolong(l, w.now, o.ttl)
		return ok
	}
	return w.refuse(l, o)
}

func (w *world) release(l *lease, o *operation) answer {
	held, mine := l.held(w.now), w.mine(l, o)
	if !held || !mine && !w.plant("release-unchecked") {
		return w.refuse(l, o)
	}
	l.before = former{l.owner, l.token}
	l.owner, l.noticed = "", false
	return ok
}

func (w *world) get(l *lease) answer {
	who := former{l.owner, l.token}
	switch {
	case l.held(w.now) && l.before.owner != "" && w.plant("get-stale"):
		who = l.before
	case !l.held(w.now):
		if l.lapsed(w.now) {
			l.notice()
		}
		return answer{typ: linearizability.OK, fields: []linearizability.Field{text("owner", "")}}
	}
	a := answer{typ: linearizability.OK, owner: who.owner, token: who.token, fields: []linearizability.Field{text("owner", who.owner)}}
	if w.Tokens != linearizability.TokensNone {
		a.fields = append(a.fields, number("token", who.token))
	}
	return a
}

// restart brings the store back with what it had on record: who held each lease
// and for how long at most, but no instant, since its clock starts anew. What
// had lapsed unnoticed is held once more.
func (w *world) restart() {
	for i := range w.leases {
		l := &w.leases[i]
		switch {
		case l.owner == "":
		case l.noticed && w.plant("lapse-forgotten"), !l.noticed:
			l.noticed = false
			l.lapse, l.delay = w.ends(w.now, l.largest), 0
		default:
			l.lapse, l.delay = w.now, 0
		}
	}
}
