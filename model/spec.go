package model

import "math"

// Answer is what a store or storage says to a request.
type Answer struct {
	Code      Code
	Token     uint64
	Holder    Owner
	Remaining int64 // ns on the answerer's clock
	Value     int64 // read
}

// AnswerOf is the answer that a KindHandle event carries.
func AnswerOf(e *Event) Answer {
	a := Answer{Code: e.Code, Token: e.Token, Holder: e.Holder, Remaining: e.Remaining}
	if e.Op == OpRead {
		a.Value = e.Value
	}
	return a
}

// LeaseSpec says what a lease store must answer, request by request: the rules
// of the store in the plainest form, for lockstep comparison. It is a value.
type LeaseSpec struct {
	// LockDelay is how long after a lapse nobody is granted, in ns.
	LockDelay int64
	// Issued is the highest token issued.
	Issued uint64

	owner  Owner // of the last tenure; nobody once it was released or deleted
	until  int64 // its end on the store's clock
	ttl    int64 // the largest granted in it
	known  bool  // somebody was told that it lapsed
	lapsed int64 // when, on the store's clock, once known
}

// LeaseMemory is what a LeaseSpec remembers beside its exported fields. Instants
// are on the store's clock.
type LeaseMemory struct {
	Owner  Owner // of the last tenure; nobody once it was released or deleted
	Until  int64 // its end
	TTL    int64 // the largest granted in it
	Known  bool  // somebody was told that it lapsed
	Lapsed int64 // when, once known
}

// Memory is what s remembers.
func (s *LeaseSpec) Memory() LeaseMemory {
	return LeaseMemory{s.owner, s.until, s.ttl, s.known, s.lapsed}
}

// Remember makes s remember m.
func (s *LeaseSpec) Remember(m LeaseMemory) {
	s.owner, s.until, s.ttl, s.known, s.lapsed = m.Owner, m.Until, m.TTL, m.Known, m.Lapsed
}

// Holder is who holds the lease at now on the store's clock.
func (s *LeaseSpec) Holder(now int64) Owner {
	if s.owner != (Owner{}) && !s.known && now < s.until {
		return s.owner
	}
	return Owner{}
}

// Step is the answer to the request in e at e.Local on the store's clock.
func (s *LeaseSpec) Step(e *Event) Answer {
	now := e.Local
	holder := s.Holder(now)
	mine := e.Owner != Owner{} && holder == e.Owner
	switch e.Op {
	case OpAcquire:
		switch {
		case e.TTL <= 0 || e.Owner == Owner{}:
			return Answer{Code: CodeInvalid}
		case mine:
			return s.prolong(now, e.TTL)
		case holder != Owner{}:
			return Answer{CodeHeld, s.Issued, holder, s.until - now, 0}
		}
		if wait := s.noticeLapse(now); wait > 0 {
			return Answer{Code: CodeDelayed, Token: s.Issued, Remaining: wait}
		}
		if s.Issued == math.MaxUint64 {
			return Answer{Code: CodeInvalid}
		}
		*s = LeaseSpec{LockDelay: s.LockDelay, Issued: s.Issued + 1, owner: e.Owner, until: now}
		return s.prolong(now, e.TTL)
	case OpGet:
		if holder != (Owner{}) {
			return Answer{CodeHeld, s.Issued, holder, s.until - now, 0}
		}
		if wait := s.noticeLapse(now); wait > 0 {
			return Answer{Code: CodeDelayed, Token: s.Issued, Remaining: wait}
		}
		return Answer{Code: CodeFree, Token: s.Issued}
	case OpRenew, OpRelease:
		if e.Op == OpRenew && e.TTL <= 0 || e.Owner == (Owner{}) || e.Asked == 0 {
			return s.refuse(now, CodeInvalid)
		}
		if e.Asked != s.Issued || s.owner != e.Owner {
			if holder == (Owner{}) {
				s.noticeLapse(now) // the refusal says that nobody holds it
			}
			return s.refuse(now, CodeLost)
		}
		if !mine {
			s.noticeLapse(now)
			return s.refuse(now, CodeLapsed)
		}
		if e.Op == OpRenew {
			return s.prolong(now, e.TTL)
		}
		s.owner = Owner{}
		return Answer{Code: CodeReleased, Token: s.Issued}
	}
	return Answer{Code: CodeInvalid}
}

// Delete is the operator's deletion: nobody's lease, the same counter.
func (s *LeaseSpec) Delete() { *s = LeaseSpec{LockDelay: s.LockDelay, Issued: s.Issued} }

// Restart brings the store back with a new clock that reads now: what may
// still be held is held for its longest TTL, and a lapse that was told stays.
func (s *LeaseSpec) Restart(now int64) {
	s.until, s.lapsed = saturate(now, s.ttl), now
}

// noticeLapse remembers that somebody is told of a lapse, and gives what is
// left of the lock delay after it.
func (s *LeaseSpec) noticeLapse(now int64) (wait int64) {
	if s.owner == (Owner{}) {
		return 0
	}
	if !s.known {
		s.known, s.lapsed = true, s.until
	}
	return max(saturate(s.lapsed, s.LockDelay)-now, 0)
}

func (s *LeaseSpec) prolong(now, ttl int64) Answer {
	s.until = max(s.until, saturate(now, ttl))
	s.ttl = max(s.ttl, ttl)
	return Answer{CodeGranted, s.Issued, s.owner, s.until - now, 0}
}

func (s *LeaseSpec) refuse(now int64, c Code) Answer {
	a := Answer{Code: c, Token: s.Issued}
	if c == CodeInvalid {
		a.Token = 0
	}
	if h := s.Holder(now); c != CodeInvalid && h != (Owner{}) {
		a.Holder, a.Remaining = h, s.until-now
	}
	return a
}

func saturate(a, b int64) int64 {
	if b > 0 && a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// StorageSpec says what a fenced storage must answer. It is a value.
type StorageSpec struct {
	Highest uint64 // the highest token processed
	Values  [Keys]int64
}

// Step is the answer to the request in e. Restarts change nothing: all of it
// is durable.
func (s *StorageSpec) Step(e *Event) Answer {
	if int(e.Key) >= Keys {
		return Answer{Code: CodeInvalid}
	}
	switch e.Op {
	case OpRead:
		return Answer{Code: CodeValue, Token: s.Highest, Value: s.Values[e.Key]}
	case OpFence, OpWrite:
		if e.Asked < s.Highest || e.Asked == 0 {
			return Answer{Code: CodeStale, Token: s.Highest}
		}
		s.Highest = e.Asked
		if e.Op == OpFence {
			return Answer{Code: CodeFenced, Token: s.Highest}
		}
		s.Values[e.Key] = e.Value
		return Answer{Code: CodeLanded, Token: s.Highest}
	}
	return Answer{Code: CodeInvalid}
}
