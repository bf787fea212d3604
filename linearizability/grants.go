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
	to       map[granted]*fact  // the first call under which it was granted
	unknown  map[holding]*fact  // the first call that may have granted a token nobody knows
	owner    map[tokenOf]string // the first on record to be granted it
	// lowest is, by lease, of the tokens granted on record. Below it are those
	// from before the recording; of any lease, for the empty key, below the highest
	// of these. It has nothing where there is no bound.
	lowest map[string]uint64
	leases map[fence][]string // which granted a token to an owner
	keys   map[string]bool    // of all leases
	only   []string           // the lease, if the history has one alone
	all    bool               // the history has every grant there was: tokens have a known beginning
	eps    int64
	judge  bool // there are tokens
}

// granted is a token in somebody's hands; of any lease, for the empty key.
type granted struct {
	key, owner string
	token      uint64
}

func (x *facts) grants() grants {
	g := grants{
		to: make(map[granted]*fact), unknown: make(map[holding]*fact), owner: make(map[tokenOf]string), lowest: make(map[string]uint64), leases: make(map[fence][]string), keys: make(map[string]bool),
		eps: x.meta.Eps, all: x.meta.First > 0, judge: x.meta.Tokens != TokensNone && !x.storages,
	}
	for i := range x.all {
		f := &x.all[i]
		if f.kind != factAcquire && f.kind != factRenew && f.kind != factLead && f.kind != factHolds {
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
					g.unknown[h] = f
				}
			}
		}
	}
	for _, key := range g.only {
		low, any := g.lowest[key]
		if !any {
			delete(g.lowest, "")
			break
		}
		g.lowest[""] = max(g.lowest[""], low)
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
	if t := (tokenOf{f.key, f.token}); g.owner[t] == "" {
		g.owner[t] = f.owner
	}
	for _, k := range []granted{{f.key, f.owner, f.token}, {"", f.owner, f.token}} {
		if _, seen := g.to[k]; !seen {
			g.to[k] = f
		}
	}
	if low, seen := g.lowest[f.key]; !seen || f.token < low {
		g.lowest[f.key] = f.token
	}
}

// may reports whether the token of a lease (or of any, for the empty key) can
// have been granted to the owner by a place, which is at a time.
func (g *grants) may(key, owner string, token uint64, place, time int64) bool {
	if !g.judge {
		return true
	}
	before := func(f *fact) bool {
		switch {
		case f == nil:
			return false
		case g.eps > 0 && time != NoTime:
			return f.from-g.eps <= time+g.eps // the places of two recorders' calls are not in order
		}
		return f.call < place
	}
	if before(g.to[granted{key, owner, token}]) {
		return true
	}
	lease := key
	if key == "" && len(g.only) == 1 {
		lease = g.only[0]
	}
	if other := g.owner[tokenOf{lease, token}]; (other == "" || other == owner) && before(g.unknown[holding{key, owner}]) {
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
