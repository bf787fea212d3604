package model

// grants are the latest changes of ownership, of which a Monitor remembers
// span, whatever their tokens are: those of a rising store may lie far apart.
type grants struct {
	ring [span]term
	n    uint64 // how many there were, so that ring[(n-1)%span] is the latest
}

func (g *grants) add(t term) {
	g.ring[g.n%span] = t
	g.n++
}

// owner is whom token was granted to, nobody if it never was; known is false
// for a token that may have been granted too long ago to be remembered. The
// search begins with the latest, which is what nearly all writes carry.
func (g *grants) owner(token uint64) (to Owner, known bool) {
	for i := g.n; i > g.n-min(g.n, span); i-- {
		if t := &g.ring[(i-1)%span]; t.Token == token {
			return t.Owner, true
		}
	}
	return Owner{}, g.n <= span || token > g.ring[g.n%span].Token
}

// led are the tokens of the latest terms.
type led struct {
	ring [span]uint64
	n    uint64
	top  uint64 // the highest of all
}

// add notes a term and reports whether its token is new, as far as can be
// remembered.
func (l *led) add(token uint64) bool {
	if l.has(token) {
		return false
	}
	l.ring[l.n%span] = token
	l.top = max(l.top, token)
	l.n++
	return true
}

func (l *led) has(token uint64) bool {
	if token <= l.top {
		for _, t := range l.ring[:min(l.n, span)] {
			if t == token {
				return true
			}
		}
	}
	return false
}
