package lifelike

import (
	"strconv"

	"fencepost/linearizability"
)

// client is one candidate for one lease: it follows the rules of a leader, and
// besides asks for what it has no right to, as clients do that were paused.
type client struct {
	w       *world
	id      int
	lease   int
	process int64 // its own, until an outcome is unknown
	beliefs int64 // the process of its leads
	inc     int
	owner   string

	holds    bool // an acquire succeeded, and it has not given up since
	token    uint64
	deadline int64 // until when it may believe that it holds the lease
	fenced   bool
	led      bool // under this token, or came too late to
	leading  bool
	former   former // an earlier self that had the lease
}

// reincarnate makes it a new holder that has nothing.
func (c *client) reincarnate() {
	if c.holds {
		c.former = former{c.owner, c.token}
	}
	c.stopLeading()
	c.inc++
	c.owner = "c" + strconv.Itoa(c.id) + "#" + strconv.Itoa(c.inc)
	c.holds, c.token, c.deadline, c.fenced, c.led = false, 0, 0, false, false
}

// window is for how long from its call on a TTL lets a client believe.
func (c *client) window(ttl int64) int64 {
	w := c.w
	return mulDiv(ttl, billion, billion+w.Drift) - int64(w.Early) - w.rng.Int64N(2)*w.rng.Int64N(ttl/10)
}

// act is what the client does next, once it has its last answer.
func (c *client) act() {
	w := c.w
	if w.left <= 0 {
		return
	}
	if c.leading && w.plant("overstays") {
		// It stands still, and its belief does not end by itself.
		c.deadline = w.now + 4*w.ttl
		w.later(4*w.ttl, c.act)
		return
	}
	w.left--
	w.strike(c.lease)
	n := w.rng.IntN(100)
	switch {
	case n < 5:
		c.do(&operation{f: "get"}, c.looked)
	case n < 10 && c.former.owner != "":
		c.zombie()
	case n < 15 && w.Storage:
		c.do(&operation{f: "read", k: w.rng.IntN(storageKeys)}, nil)
	case !c.holds:
		c.acquire()
	case w.Barrier && !c.fenced:
		c.fence()
	case n < 20: // it gives up
		c.stopLeading()
		c.do(&operation{f: "release", owner: c.owner, token: c.token}, nil)
		c.reincarnate()
	case n < 26: // it says nothing, and comes back as somebody else
		c.reincarnate()
		c.acquire()
	case n < 29: // it asks again for what it has
		c.acquire()
	case w.now >= c.deadline && n < 45:
		c.reincarnate()
		c.acquire()
	case n < 60 || !w.Storage:
		c.renew()
	case n < 63:
		c.fence()
	default:
		c.write(c.owner, c.token)
	}
}

// do calls an operation, and acts again some time after.
func (c *client) do(o *operation, then func(answer)) {
	w := c.w
	o.process, o.lease = c.process, c.lease
	w.call(o, func(a answer) {
		if a.typ == linearizability.Info {
			c.process = w.fresh()
		}
		if then != nil {
			then(a)
		}
		pause := w.ttl / 8
		if !c.holds {
			pause = w.ttl * 3 / 2
		}
		if w.chance(0.02) {
			pause = 4 * w.ttl // at most: it stands still for a while
		}
		w.later(1+w.rng.Int64N(pause), c.act)
	})
}

func (c *client) ttl() int64 { return int64(c.w.TTLs[c.w.rng.IntN(len(c.w.TTLs))]) }

func (c *client) acquire() {
	w := c.w
	call, owner, ttl := w.now, c.owner, c.ttl()
	o := &operation{f: "acquire", owner: owner, ttl: ttl, blocks: w.now + w.rng.Int64N(2*w.ttl)}
	c.do(o, func(a answer) {
		if a.typ != linearizability.OK {
			return
		}
		if !c.holds || c.token != a.token {
			c.stopLeading()
			c.holds, c.token, c.deadline, c.fenced, c.led = true, a.token, 0, false, false
		}
		c.extend(call, ttl)
	})
}

func (c *client) renew() {
	call, ttl := c.w.now, c.ttl()
	c.do(&operation{f: "renew", owner: c.owner, token: c.token, ttl: ttl}, func(a answer) {
		switch {
		case a.typ == linearizability.OK:
			c.extend(call, ttl)
		case a.typ == linearizability.Fail && !isWord(a, "not-sent"):
			if c.w.RenewAfterLapse && c.w.chance(0.3) {
				c.stopLeading() // but it tries again
				return
			}
			c.reincarnate()
		}
	})
}

// extend is a grant that arrives: the TTL counts from the call on, and a belief
// that has ended stays so.
func (c *client) extend(call, ttl int64) {
	c.expire()
	c.deadline = max(c.deadline, call+c.window(ttl))
	if !c.w.Barrier || c.fenced || c.skipsBarrier() {
		c.lead(c.owner, c.token)
	}
}

// skipsBarrier is a planted bug: from some time on, all lead as if they had
// fenced their storage.
func (c *client) skipsBarrier() bool {
	c.fenced = c.fenced || c.w.Bug == "no-barrier" && (c.w.planted || c.w.plant("no-barrier"))
	return c.fenced
}

func (c *client) fence() {
	token := c.token
	c.do(&operation{f: "fence", owner: c.owner, token: token}, func(a answer) {
		if a.typ == linearizability.OK && c.token == token && !c.fenced {
			c.fenced = true
			c.lead(c.owner, c.token)
		}
	})
}

func (c *client) write(owner string, token uint64) {
	w := c.w
	w.value++
	c.do(&operation{f: "write", owner: owner, token: token, k: w.rng.IntN(storageKeys), v: w.value}, nil)
}

// zombie is an earlier self that was paused and does not know it.
func (c *client) zombie() {
	w, f := c.w, c.former
	switch n := w.rng.IntN(4); {
	case n == 0 && w.Storage, n == 1 && w.Storage:
		c.write(f.owner, f.token)
	case n == 2:
		c.do(&operation{f: "release", owner: f.owner, token: f.token}, nil)
	default:
		c.do(&operation{f: "renew", owner: f.owner, token: f.token, ttl: c.ttl()}, nil)
	}
}

// looked is the answer to a get. A correct client makes nothing of it.
func (c *client) looked(a answer) {
	if a.typ != linearizability.OK || a.owner == "" || a.owner == c.owner || c.leading {
		return
	}
	if c.w.Leads && c.w.plant("leads-unheld") {
		c.deadline = c.w.now + c.w.ttl/2
		c.led = false
		c.lead(c.owner, a.token)
	}
	if c.w.Storage && c.w.plant("borrows-token") {
		c.w.value++
		o := &operation{f: "write", process: c.w.fresh(), lease: c.lease, owner: c.owner, token: a.token, v: c.w.value}
		c.w.call(o, func(answer) {})
	}
}

// lead begins to believe, where beliefs are on record; once under a token.
func (c *client) lead(owner string, token uint64) {
	w := c.w
	if !w.Leads || c.led || c.leading || w.now >= c.deadline {
		return
	}
	c.led, c.leading = true, true
	o := &operation{f: "lead", lease: c.lease, owner: owner, token: token}
	w.event(c.beliefs, linearizability.Invoke, "lead", w.fields(o)...)
	belief := c.beliefs
	if w.chance(w.Crashes) {
		// The process is gone: nobody learns when its belief ended.
		if w.chance(0.5) {
			w.event(belief, linearizability.Info, "lead")
		}
		c.beliefs, c.leading = w.fresh(), false
		c.reincarnate()
		return
	}
	w.later(c.deadline-w.now, func() { c.watch(owner) })
}

// watch ends the belief of an incarnation at its deadline.
func (c *client) watch(owner string) {
	w := c.w
	switch {
	case !c.leading || c.owner != owner:
	case w.now < c.deadline:
		w.later(c.deadline-w.now, func() { c.watch(owner) })
	default:
		c.stopLeading()
	}
}

// expire ends a belief whose deadline has come, be its own step still to come.
// No later answer revives the term, nor begins it.
func (c *client) expire() {
	c.led = c.led || c.deadline > 0 && c.w.now >= c.deadline
	if c.leading && c.w.now >= c.deadline {
		c.stopLeading()
	}
}

func (c *client) stopLeading() {
	if c.leading {
		c.leading = false
		c.w.event(c.beliefs, linearizability.OK, "lead")
	}
}

func isWord(a answer, word string) bool {
	for _, f := range a.fields {
		if s, ok := f.Value.Word(); ok && f.Name == "error" && s == word {
			return true
		}
	}
	return false
}
