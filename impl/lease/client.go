package lease

import (
	"fmt"
	"math"
	"math/bits"
	"strings"
	"time"
)

// Phase is where a candidate stands.
type Phase uint8

// The phases. Only Leading is belief: Fencing holds a lease and waits for the
// storage to acknowledge the token; Stopping has resigned and waits for its
// work to stop before it releases.
const (
	Campaigning Phase = iota
	Fencing
	Leading
	Stopping
)

var phaseNames = [...]string{"campaigning", "fencing", "leading", "stopping"}

func (p Phase) String() string {
	if int(p) < len(phaseNames) {
		return phaseNames[p]
	}
	return fmt.Sprintf("phase(%d)", uint8(p))
}

// ClientState is everything a [Client] remembers, in a form that can be
// compared, copied and stored. All instants are on the client's own clock.
type ClientState struct {
	Holder    Holder // this incarnation
	Phase     Phase
	Working   bool          // work begun under a term has not ended
	Token     Token         // of the term; 0 while campaigning
	Deadline  time.Duration // the term ends here, whatever arrives later
	NextSend  time.Duration // the next request to the store is due
	NextFence time.Duration // the next fence request is due, while fencing
	Yielding  bool          // resigned, and no attempt made since: others go first
}

// Client is the candidate as a state machine without I/O: it is told the time
// and what arrived, and returns what to send. Its belief is local, makes no
// call, and ends by itself at the deadline. The shell must use one clock that
// never falls for every now; one that goes on during a suspend ends a term on
// time.
//
// A Client is a value: copying it is a snapshot.
type Client struct {
	ttl, margin, window, renewAfter, retry time.Duration
	driftPPB                               uint64
	barrier                                bool
	state                                  ClientState
}

// Requests is what a step of a [Client] sends: at most one request to the
// store and one to the storage. OpNone means none.
type Requests struct {
	Store   Request
	Storage Request
}

// NewClient is a candidate that first campaigns as holder at now. The error is
// that of [Config.Validate], or matches [ErrHolder] for a holder without a
// proper node name or a counter.
func NewClient(cfg Config, holder Holder, now time.Duration) (Client, error) {
	if err := cfg.Validate(); err != nil {
		return Client{}, err
	}
	if holder.Node == "" || strings.Contains(holder.Node, "#") || holder.Seq == 0 {
		return Client{}, fmt.Errorf("%w: node %q, incarnation %d: a candidate needs a node name without '#', and counts from 1", ErrHolder, holder.Node, holder.Seq)
	}
	return Client{
		ttl: cfg.TTL, margin: cfg.SafetyMargin, window: cfg.SafeWindow(), renewAfter: cfg.RenewAfter(), retry: cfg.Retry(),
		driftPPB: ppb(cfg.MaxDriftRate), barrier: cfg.Barrier,
		state: ClientState{Holder: holder, NextSend: now},
	}, nil
}

// State is what the client remembers.
func (c *Client) State() ClientState { return c.state }

// SetState replaces what the client remembers, for snapshots and for tools
// that must reach a state directly.
func (c *Client) SetState(s ClientState) { c.state = s }

// IsLeader reports whether the client may act as leader at now.
func (c *Client) IsLeader(now time.Duration) bool {
	return c.state.Phase == Leading && now < c.state.Deadline
}

// Acting reports whether anything may still act on the client's belief: it
// leads, or it has resigned and its work has not stopped. Release comes after.
func (c *Client) Acting(now time.Duration) bool {
	return c.state.Phase >= Leading && now < c.state.Deadline
}

// Wake is the next instant at which Tick has something to do, the last instant
// there is where only EndWork can change that.
func (c *Client) Wake() time.Duration {
	s := &c.state
	switch s.Phase {
	case Campaigning:
		if s.Working {
			return math.MaxInt64
		}
		return s.NextSend
	case Fencing:
		return min(s.Deadline, s.NextSend, s.NextFence)
	case Leading:
		return min(s.Deadline, s.NextSend)
	}
	return s.Deadline
}

// Hasten makes the next request to the store due at at, unless it is due before:
// for a hint that the lease has changed, or to spread renewals. How late a request
// comes is the client's to say. After a resignation others go first all the same,
// since the release itself is what watchers are told of.
func (c *Client) Hasten(at time.Duration) {
	if !c.state.Yielding {
		c.state.NextSend = min(c.state.NextSend, at)
	}
}

// Tick lets the client do what is due at now.
func (c *Client) Tick(now time.Duration) Requests {
	c.expire(now)
	var out Requests
	s := &c.state
	switch s.Phase {
	case Campaigning:
		// While old work goes on, a new term would put two under one roof.
		if !s.Working && now >= s.NextSend {
			out.Store = c.request(OpAcquire, now)
			s.NextSend, s.Yielding = now+c.retry, false
		}
	case Fencing, Leading:
		if now >= s.NextSend {
			out.Store = c.request(OpRenew, now)
			s.NextSend = now + c.retry
		}
		if s.Phase == Fencing && now >= s.NextFence {
			out.Storage = c.fence(now)
		}
	}
	return out
}

// Receive takes a reply from the store or the storage at now. Replies to other
// incarnations, to other tokens and those that come too late are ignored.
func (c *Client) Receive(now time.Duration, rep Reply) Requests {
	c.expire(now)
	s := &c.state
	if rep.Holder != s.Holder || rep.Sent > now {
		return Requests{}
	}
	switch rep.Op {
	case OpAcquire:
		// A refusal says nothing about a grant that came before or after it.
		if rep.Code == CodeGranted {
			return c.granted(now, rep)
		}
	case OpRenew:
		if rep.Asked != s.Token || s.Phase == Campaigning {
			break
		}
		// A grant under another token is no renewal: the tenure was lost.
		if rep.Code == CodeGranted && rep.Token == s.Token {
			c.extend(rep)
		} else {
			c.end(now)
		}
	case OpFence:
		if rep.Asked != s.Token || s.Phase == Campaigning {
			break
		}
		if rep.Code != CodeFenced {
			c.end(now)
		} else if s.Phase == Fencing {
			s.Phase = Leading
		}
	}
	return Requests{}
}

// Resign gives up the term of its own accord. Belief ends at once; the release
// is returned here, or by [Client.EndWork] while work has not stopped: released
// before, a successor could start beside it.
func (c *Client) Resign(now time.Duration) Requests {
	c.expire(now)
	s := &c.state
	switch {
	case s.Phase != Fencing && s.Phase != Leading:
		return Requests{}
	case s.Working:
		s.Phase = Stopping
		return Requests{}
	}
	return c.release(now)
}

// BeginWork notes that work starts on the strength of the term. It reports
// whether the client leads; if not, nothing may start.
func (c *Client) BeginWork(now time.Duration) bool {
	c.expire(now)
	if !c.IsLeader(now) {
		return false
	}
	c.state.Working = true
	return true
}

// EndWork notes that the work has stopped, and returns the release that a
// resignation left for this moment.
func (c *Client) EndWork(now time.Duration) Requests {
	c.expire(now)
	c.state.Working = false
	if c.state.Phase != Stopping {
		return Requests{}
	}
	return c.release(now)
}

// expire ends a term whose deadline has passed, before anything else happens.
func (c *Client) expire(now time.Duration) {
	if c.state.Phase != Campaigning && now >= c.state.Deadline {
		c.end(now)
	}
}

// end makes the next attempt a new incarnation, so that nothing said to the
// old one can bring its term back.
func (c *Client) end(now time.Duration) {
	c.state = ClientState{Holder: c.state.Holder.Next(), Working: c.state.Working, NextSend: now}
}

func (c *Client) granted(now time.Duration, rep Reply) Requests {
	s := &c.state
	deadline, renew := c.countdown(rep)
	usable, newer := now < deadline && !s.Working, rep.Token > s.Token
	switch {
	case s.Phase == Campaigning && !usable:
		// What is held all the same, a retry extends.
	case s.Phase == Campaigning, s.Phase == Fencing && newer && usable:
		// Also lost and regained before anything was led: the term that begins
		// has one token, and was never another's.
		s.Phase, s.Token, s.Deadline, s.NextSend = Leading, rep.Token, deadline, renew
		if c.barrier {
			s.Phase = Fencing
			return Requests{Storage: c.fence(now)}
		}
	case rep.Token == s.Token:
		c.extend(rep)
	case newer && s.Working:
		// Lost and regained: what was done under the old token must not go on
		// under the new one as if nothing had happened in between. Nor is the
		// new one released: it keeps others out while the work stops.
		c.end(now)
	case newer:
		s.Token = rep.Token
		return c.release(now)
	}
	return Requests{}
}

// extend moves the deadline, never back. The countdown runs from the send of
// the request answered: the store may have handled it at once.
func (c *Client) extend(rep Reply) {
	s := &c.state
	if d, renew := c.countdown(rep); d > s.Deadline && s.Phase != Stopping {
		s.Deadline, s.NextSend = d, renew
	}
}

// countdown gives the deadline and the next renewal that a grant allows. A
// store may grant less than was asked for, but more is never believed.
func (c *Client) countdown(rep Reply) (deadline, renew time.Duration) {
	if rep.TTL >= c.ttl {
		return rep.Sent + c.window, rep.Sent + c.renewAfter
	}
	w := window(rep.TTL, c.driftPPB, c.margin)
	if w <= 0 {
		return rep.Sent, rep.Sent
	}
	// The same fraction as of the full window, which w is part of.
	hi, lo := bits.Mul64(uint64(w), uint64(c.renewAfter))
	after, _ := bits.Div64(hi, lo, uint64(c.window))
	return rep.Sent + w, rep.Sent + time.Duration(after)
}

func (c *Client) release(now time.Duration) Requests {
	out := Requests{Store: c.request(OpRelease, now)}
	c.end(now)
	c.state.NextSend, c.state.Yielding = now+c.retry, true
	return out
}

func (c *Client) fence(now time.Duration) Request {
	c.state.NextFence = now + c.retry
	return c.request(OpFence, now)
}

func (c *Client) request(op Op, now time.Duration) Request {
	req := Request{Op: op, Holder: c.state.Holder, Token: c.state.Token, Sent: now}
	if op == OpAcquire || op == OpRenew {
		req.TTL = c.ttl
	}
	return req
}
