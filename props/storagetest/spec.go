package storagetest

import (
	"fmt"
	"slices"
)

// answer is what a storage said to a step.
type answer struct {
	said    said
	highest uint64 // of a refusal: the token it names, 0 if none
	value   string // of a read
	found   bool
	err     string // what any other error said
}

type said uint8

const (
	saidDone    said = iota // landed, fenced, read
	saidStale               // refused by an error that matches ErrStale
	saidFailed              // any other error
	saidPanic               //
	saidNothing             // the step needs no answer
)

// breach is an answer that no right storage gives.
type breach struct {
	rule rule
	what string // in a sentence
	want string // what it should have been, for the margin of the story
}

// spec is what a fenced storage must do when it is asked one thing at a time,
// in the plainest form. It remembers all that it was told, so that it can say
// why an answer is wrong.
type spec struct {
	cas     bool // the lease's own token decides, not the highest seen
	carried uint64
	granted uint64 // the last one

	seen    []sight // every token admitted
	landed  map[string]landing
	refused []step // every write that was refused
	fences  int    // how many were admitted
	boot    int    // how many restarts
}

// sight is a token that was admitted.
type sight struct {
	token uint64
	key   string
	fence bool
	boot  int
}

func (s sight) String() string {
	by := "by a write of " + show(s.key)
	if s.fence {
		by = "by a fence"
	}
	return fmt.Sprintf("token %d was seen %s", s.token, by)
}

// landing is what landed last under a key.
type landing struct {
	value   string
	boot    int // when
	fences  int // how many fences had been
	refused int // how many writes had been refused
}

// highest is the highest token seen.
func (s *spec) highest() (h uint64) {
	for _, t := range s.seen {
		h = max(h, t.token)
	}
	return h
}

// judge takes the answer to st into account and says what it breaks, nil if
// nothing.
func (s *spec) judge(st step, a answer) *breach {
	if a.said == saidPanic {
		return &breach{neverPanics, fmt.Sprintf("a %s panicked: %s", kindNames[st.do], a.err), "must not panic"}
	}
	switch st.do {
	case doRestart:
		s.boot++
	case doGrant:
		s.granted++
		s.carried = s.granted
	case doRelease:
		s.carried = 0
	case doRead:
		return s.read(st, a)
	case doWrite, doFence:
		if s.cas {
			return s.swap(st, a)
		}
		return s.guard(st, a)
	}
	return nil
}

// guard judges a write or fence by the highest token seen.
func (s *spec) guard(st step, a answer) *breach {
	if st.token == 0 {
		return s.refuse(st, a, tokenZeroIsRefused, "no lease grants token 0")
	}
	var higher []sight
	for _, t := range s.seen {
		if t.token > st.token {
			higher = append(higher, t)
		}
	}
	if len(higher) == 0 {
		r, why := higherTokenLands, "no token was seen before"
		if h := s.highest(); h == st.token {
			r, why = equalTokenLands, fmt.Sprintf("token %d is the highest seen", h)
		} else if h > 0 {
			why = fmt.Sprintf("the highest token seen is %d", h)
		}
		return s.admit(st, a, r, why)
	}
	// The plainest reason is the rule that is broken if it lands.
	for _, why := range []struct {
		rule   rule
		reason func(sight) bool
	}{
		{lowerTokenIsRefused, func(t sight) bool { return t.boot == s.boot && !t.fence && (t.key == st.key || st.do == doFence) }},
		{oneGuardForAllKeys, func(t sight) bool { return t.boot == s.boot && !t.fence }},
		{fenceBarsLowerTokens, func(t sight) bool { return t.boot == s.boot }},
		{restartKeepsTheHighestToken, func(sight) bool { return true }},
	} {
		if i := slices.IndexFunc(higher, why.reason); i >= 0 {
			r, reason := why.rule, higher[i].String()
			if r == restartKeepsTheHighestToken {
				reason += " before the restart"
			} else if st.do == doFence {
				r = fenceOfALowerTokenIsRefused
			}
			return s.refuse(st, a, r, reason)
		}
	}
	panic("unreachable: the last reason is any")
}

// swap judges a write or fence by the token that the lease carries.
func (s *spec) swap(st step, a answer) *breach {
	switch {
	case st.token == 0:
		return s.refuse(st, a, tokenZeroIsRefused, "no lease grants token 0")
	case st.token == s.carried:
		return s.admit(st, a, theCarriedTokenLands, "the lease carries that token")
	case s.carried == 0 && st.token == s.granted:
		return s.refuse(st, a, afterAReleaseNothingLands, "the lease was released")
	case s.carried == 0 && s.granted > 0:
		return s.refuse(st, a, onlyTheCarriedTokenLands, "the lease was released")
	case s.carried == 0:
		return s.refuse(st, a, onlyTheCarriedTokenLands, "the lease was never granted")
	}
	return s.refuse(st, a, onlyTheCarriedTokenLands, fmt.Sprintf("the lease carries token %d", s.carried))
}

// admit judges the answer to what must be admitted, by rule r.
func (s *spec) admit(st step, a answer, r rule, why string) *breach {
	name := kindNames[st.do]
	switch a.said {
	case saidStale:
		return &breach{r, fmt.Sprintf("a %s under token %d was refused, though %s", name, st.token, why), "must be admitted: " + why}
	case saidFailed:
		return &breach{r, fmt.Sprintf("a %s under token %d failed: %s", name, st.token, a.err), "must be admitted: " + why}
	}
	s.seen = append(s.seen, sight{st.token, st.key, st.do == doFence, s.boot})
	if st.do == doFence {
		s.fences++
		return nil
	}
	if s.landed == nil {
		s.landed = map[string]landing{}
	}
	s.landed[st.key] = landing{st.value, s.boot, s.fences, len(s.refused)}
	return nil
}

// refuse judges the answer to what must be refused, by rule r.
func (s *spec) refuse(st step, a answer, r rule, why string) *breach {
	name := kindNames[st.do]
	switch {
	case a.said == saidDone:
		verb := "landed"
		if st.do == doFence {
			verb = "was acknowledged"
		}
		return &breach{r, fmt.Sprintf("a %s under token %d %s, though %s", name, st.token, verb, why), "must be refused: " + why}
	case a.said == saidFailed && r != tokenZeroIsRefused: // which need not be called stale
		return &breach{refusalMatchesErrStale, fmt.Sprintf("a %s under token %d was refused by an error that errors.Is(err, fence.ErrStale) does not match: %s", name, st.token, a.err), "must match fence.ErrStale"}
	case a.highest != 0 && !s.cas && a.highest != s.highest() && st.token != 0:
		return &breach{refusalNamesTheHighest, fmt.Sprintf("a refusal says that the storage has seen token %d; it has seen %d", a.highest, s.highest()), fmt.Sprintf("must name token %d", s.highest())}
	}
	if st.do == doWrite {
		s.refused = append(s.refused, st)
	}
	return nil
}

// read judges a read, and where it is wrong finds the rule that explains it
// best.
func (s *spec) read(st step, a answer) *breach {
	want, ok := s.landed[st.key]
	if a.said == saidDone && a.found == ok && a.value == want.value {
		return nil
	}
	must := "nothing landed there"
	if ok {
		must = fmt.Sprintf("%s landed there last", show(want.value))
	}
	b := &breach{rule: readGivesWhatLandedLast, want: "must be nothing: " + must}
	if ok {
		b.want = "must be " + show(want.value)
	}
	switch {
	case a.said != saidDone:
		b.what = fmt.Sprintf("a read of %s failed: %s", show(st.key), a.err)
		return b
	case a.found:
		b.what = fmt.Sprintf("a read of %s gave %s, though %s", show(st.key), show(a.value), must)
	default:
		b.what = fmt.Sprintf("a read of %s found nothing, though %s", show(st.key), must)
	}
	refused := s.refused[want.refused:]
	toKey := func(w step) bool { return w.key == st.key }
	switch {
	case a.found && slices.ContainsFunc(refused, func(w step) bool { return toKey(w) && w.value == a.value }):
		b.rule = refusedWriteChangesNothing
		b.what = fmt.Sprintf("a write of %s=%s was refused, and a read found it", show(st.key), show(a.value))
	case ok && want.boot < s.boot:
		b.rule = restartKeepsWhatLanded
	case slices.ContainsFunc(refused, toKey):
		b.rule = refusedWriteChangesNothing
	case ok && want.value == "" && !a.found:
		b.rule = emptyValuesAreValues
	case a.found && s.elsewhere(st.key, a.value):
		b.rule = keysAreApart
	case s.fences > want.fences:
		b.rule = fenceWritesNothing
	}
	return b
}

// elsewhere reports whether value was written under another key than key.
func (s *spec) elsewhere(key, value string) bool {
	for k, l := range s.landed {
		if k != key && l.value == value {
			return true
		}
	}
	return slices.ContainsFunc(s.refused, func(w step) bool { return w.key != key && w.value == value })
}

// show is a key or value for a person: quoted unless it is a plain word, and
// short.
func show(s string) string {
	if w := word(s); len(w) <= 24 {
		return w
	}
	return fmt.Sprintf("%s… (%d bytes)", word(s[:12]), len(s))
}
