package fence

import "fencepost/impl/lease"

// Guard is the rule of fenced storage as a pure value: it remembers the
// highest token it has seen and admits nothing lower. An equal token is
// admitted, since a leader writes many times under one. The zero Guard has
// seen none. Highest must be durable before the answer leaves the storage.
//
// The rule is Kleppmann's, "How to do distributed locking" (2016).
type Guard struct {
	Highest lease.Token
}

// Admit returns the guard that has processed token and whether what carries it
// may land. Token 0 is no token and never admitted.
func (g Guard) Admit(token lease.Token) (Guard, bool) {
	if token == 0 || token < g.Highest {
		return g, false
	}
	return Guard{Highest: token}, true
}
