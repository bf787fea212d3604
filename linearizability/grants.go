package linearizability

// tokenOf is a token of one lease.
type tokenOf struct {
	key   string
	token uint64
}

// grant is an acquire that succeeded.
type grant struct {
	span
	key, owner string
	token      uint64
}

// grants is what a history tells of who was granted which token.
type grants struct {
	known   []grant           // in the order of their calls
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

func grantsOf(h *History, spans []span) grants {
	g := grants{
		to: make(map[granted]int64), unknown: make(map[string]int64), lowest: make(map[string]uint64),
		all: h.Meta.First > 0, judge: h.Meta.Tokens != TokensNone,
	}
	for _, s := range spans {
		if h.Events[s.Call].F != "acquire" {
			continue
		}
		key, owner := h.name(s.Op, "key"), h.name(s.Op, "owner")
		switch token, ok := h.field(s.Op, "token").Uint(); {
		case s.Type == Info:
			if _, seen := g.unknown[owner]; !seen {
				g.unknown[owner] = s.call
			}
		case s.Type == OK && ok:
			g.known = append(g.known, grant{s, key, owner, token})
			for _, k := range []granted{{key, owner, token}, {"", owner, token}} {
				if _, seen := g.to[k]; !seen {
					g.to[k] = s.call
				}
			}
			for _, k := range []string{key, ""} {
				if low, seen := g.lowest[k]; !seen || token < low {
					g.lowest[k] = token
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
