package linearizability

// tokenOf is a token of one lease.
type tokenOf struct {
	key   string
	token uint64
}

// grants is what a history tells of who was granted which token.
type grants struct {
	acquires []*fact            // those that succeeded, in the order of their calls
	known    []*fact            // of these what granted a token, and the renewals that drew one
	to       map[granted]int64  // place of the first call under which it was granted
	unknown  map[holding]int64  // place of the first call that may have granted a token nobody knows
	lowest   map[string]uint64  // by lease, of the tokens granted on record
	leases   map[fence][]string // which granted a token to an owner
	keys     map[string]bool    // of all leases
	only     []string           // the lease, if the history has one alone
	all      bool               // the history has every grant there was: tokens have a known beginning
	judge    bool               // there are tokens
}

// granted is a token in somebody's hands; of any lease, for the empty key.
type granted struct {
	key, owner string
	token      uint64
}

func (x *facts) grants() grants {
	g := grants{
		to: make(map[granted]int64), unknown: make(map[holding]int64), lowest: make(map[string]uint64), leases: make(map[fence][]string), keys: make(map[string]bool),
		all: x.meta.First > 0, judge: x.meta.Tokens != TokensNone,
	}
	for i := range x.all {
		f := &x.all[i]
		if f.kind != factAcquire && f.kind != factRenew && f.kind != factLead {
			continue
		}
		if !g.keys[f.key] {
			g.keys[f.key] = true
			g.only = append(g.only, f.key)
		}
		if f.kind == factAcquire && f.Type == OK {
			g.acquires = append(g.acquires, f)
		}
		switch {
		case f.kind == factAcquire && f.Type == OK && f.hasToken:
			g.known = append(g.known, f)
			if !f.found {
				g.grant(f)
			}
		case f.kind == factRenew && f.draws && f.Type == OK && f.hasToken:
			g.known = append(g.known, f)
			g.grant(f)
		case f.Type == Info && (f.kind == factAcquire || f.kind == factRenew && f.draws):
			for _, h := range []holding{{f.key, f.owner}, {"", f.owner}} {
				if _, ok := g.unknown[h]; !ok {
					g.unknown[h] = f.call
				}
			}
		}
	}
	if len(g.only) > 1 {
		g.only = nil
	}
	return g
}

// grant puts a grant on record.
func (g *grants) grant(f *fact) {
	if _, seen := g.to[granted{f.key, f.owner, f.token}]; !seen {
		by := fence{f.owner, f.token}
		g.leases[by] = append(g.leases[by], f.key)
	}
	for _, k := range []granted{{f.key, f.owner, f.token}, {"", f.owner, f.token}} {
		if _, seen := g.to[k]; !seen {
			g.to[k] = f.call
		}
	}
	for _, k := range []string{f.key, ""} {
		if low, seen := g.lowest[k]; !seen || f.token < low {
			g.lowest[k] = f.token
		}
	}
}

// may reports whether the token of a lease (or of any, for the empty key) can
// have been granted to the owner by the given place.
func (g *grants) may(key, owner string, token uint64, place int64) bool {
	if !g.judge {
		return true
	}
	if call, ok := g.to[granted{key, owner, token}]; ok && call < place {
		return true
	}
	if call, ok := g.unknown[holding{key, owner}]; ok && call < place {
		return true
	}
	// Before the recording began.
	low, any := g.lowest[key]
	return !g.all && (!any || token < low)
}

// of returns the leases whose token this can be, for a write to a storage: those
// that granted it to the owner and, where nothing is on record, the lease that
// the storage is named like, or the only one that there is. Tokens of two leases
// have nothing to do with each other.
func (g *grants) of(storage, owner string, token uint64) []string {
	if keys := g.leases[fence{owner, token}]; len(keys) > 0 {
		return keys
	}
	if g.keys[storage] {
		return []string{storage}
	}
	return g.only
}
