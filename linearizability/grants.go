package linearizability

// tokenOf is a token of one lease.
type tokenOf struct {
	key   string
	token uint64
}

// grants is what a history tells of who was granted which token.
type grants struct {
	known   []*fact           // acquires that succeeded, in the order of their calls
	to      map[granted]int64 // place of the first call under which it was granted
	unknown map[string]int64  // by owner, place of the first call of an unknown acquire
	lowest  map[string]uint64 // by lease, of the tokens granted on record
	all     bool              // the history has every grant there was: tokens have a known beginning
	judge   bool              // there are tokens
}

// granted is a token in somebody's hands.
type granted struct {
	key, owner string
	token      uint64
}

func (x *facts) grants() grants {
	g := grants{
		to: make(map[granted]int64), unknown: make(map[string]int64), lowest: make(map[string]uint64),
		all: x.meta.First > 0, judge: x.meta.Tokens != TokensNone,
	}
	for i := range x.all {
		f := &x.all[i]
		switch {
		case f.kind != factAcquire:
		case f.Type == Info:
			if _, seen := g.unknown[f.owner]; !seen {
				g.unknown[f.owner] = f.call
			}
		case f.Type == OK && f.hasToken:
			g.known = append(g.known, f)
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
	}
	return g
}

// may reports whether the token of a lease (or of any, for the empty key) can
// have been granted to the owner by the given place.
func (g grants) may(key, owner string, token uint64, place int64) bool {
	if !g.judge {
		return true
	}
	if call, ok := g.to[granted{key, owner, token}]; ok && call < place {
		return true
	}
	if call, ok := g.unknown[owner]; ok && call < place {
		return true
	}
	// Before the recording began.
	low, any := g.lowest[key]
	return !g.all && (!any || token < low)
}
