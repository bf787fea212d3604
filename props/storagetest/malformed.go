package storagetest

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"fencepost/impl/fence"
	"fencepost/impl/lease"
	"fencepost/props/kit"
)

// session asks a storage by hand, where the answers allow more than a script's
// rules do, and remembers what was said.
type session struct {
	lab   *kit.Lab[fence.KV]
	o     Options
	deeds []deed
	stack string
}

func newSession(open opener, o Options) *session {
	return &session{lab: kit.NewLab(open, nil), o: o}
}

// grant has the lease carry token, where that matters.
func (s *session) grant(token uint64) {
	if s.o.Carry != nil {
		s.o.carry(context.Background(), s.lab.Thing(), lease.Token(token))
		s.note("leader", fmt.Sprintf("is granted the lease under token %d", token), "")
	}
}

func (s *session) note(who, does, got string) {
	n := int64(2 * len(s.deeds))
	s.deeds = append(s.deeds, deed{who: who, does: does, got: got, call: n + 1, ret: n + 2})
}

func (s *session) ask(ctx context.Context, who string, st step) answer {
	a, stack := call(ctx, s.lab.Thing(), st)
	if a.said == saidPanic {
		s.stack = stack
	}
	does := does(st)
	if ctx.Err() != nil {
		does += ", its context ended"
	}
	s.note(who, does, got(st, a))
	return a
}

// convict is the failure that the last deed shows, with the deeds before it:
// all, or those that write keys if any are given.
func (s *session) convict(r rule, what, want string, keys ...string) kit.Outcome {
	last := len(s.deeds) - 1
	s.deeds[last].mark = want
	var told []deed
	for i, d := range s.deeds {
		writes := func(key string) bool { return strings.Contains(d.does, " "+show(key)+"=") }
		if i == last || len(keys) == 0 || slices.ContainsFunc(keys, writes) {
			told = append(told, d)
		}
	}
	f := convict(r, what, story(told))
	f.More, f.Log = s.stack, s.lab.Log()
	return kit.Outcome{Failure: f}
}

func (s *session) panicked(a answer, st step) kit.Outcome {
	return s.convict(neverPanics, fmt.Sprintf("a %s panicked: %s", kindNames[st.do], a.err), "must not panic", st.key)
}

var oddTexts = []string{
	"", " ", "key", "Key", "KEY", "key ", " key", "key\x00", "key\x00y", "key\n", "key\r\n", "\tkey",
	"o'clock", `"quoted"`, "`back`", "; DROP TABLE kv; --", "a%b", "%s%d%n", "100%", "a_b", "axb", "a*b", "a?b",
	`back\slash`, `\n`, "a/b", "../../etc/passwd", "a:b", "a=b", "a,b", "$key", "{key}", "<key>", "-1", "0", "1e3", "null", "true",
	"schlüssel", "schlu\u0308ssel", "SCHLÜSSEL", "鍵", "🔑", "\u202ekey", "key\u200b", "\xff\xfe", "\xc3",
}

// oddKeys writes under odd keys, each of which is refused, or kept apart from all
// others.
func oddKeys(open opener, o Options, _ kit.Effort) kit.Outcome {
	keys := append([]string{strings.Repeat("k", 10_000)}, oddTexts...)
	return odd(open, o, len(keys), func(i int) (string, string) { return keys[i], fmt.Sprintf("v%d", i+1) })
}

// oddValues writes odd values, each of which is refused or kept.
func oddValues(open opener, o Options, _ kit.Effort) kit.Outcome {
	values := append([]string{strings.Repeat("v", 10_000)}, oddTexts...)
	return odd(open, o, len(values), func(i int) (string, string) { return fmt.Sprintf("k%d", i+1), values[i] })
}

func odd(open opener, o Options, n int, pair func(i int) (key, value string)) kit.Outcome {
	s := newSession(open, o)
	defer s.lab.Close()
	ctx := context.Background()
	s.grant(1)
	kept := map[string]string{}
	from := map[string]string{} // the key of a value
	// check reads key, which was just written (fresh), or before others were.
	check := func(key string, fresh bool) (kit.Outcome, bool) {
		st := step{do: doRead, key: key}
		a := s.ask(ctx, "anybody", st)
		want, ok := kept[key]
		switch {
		case a.said == saidPanic:
			return s.panicked(a, st), false
		case a.said == saidFailed && !ok, a.said == saidDone && a.found == ok && a.value == want:
			return kit.Outcome{}, true
		case a.said == saidFailed:
			return s.convict(oddKeysAndValues, fmt.Sprintf("the write of %s landed, and a read failed: %s", show(key), a.err), "must be "+show(want), key), false
		}
		must := "must be nothing: it was refused"
		if ok {
			must = "must be " + show(want)
		}
		r, about := oddKeysAndValues, []string{key}
		if other, found := from[a.value]; found && a.found && other != key && !fresh {
			r, about = keysAreApart, append(about, other)
		}
		found := "nothing"
		if a.found {
			found = show(a.value)
		}
		return s.convict(r, fmt.Sprintf("a read of %s gave %s: it %s", show(key), found, must), must, about...), false
	}
	for i := range n {
		key, value := pair(i)
		st := step{do: doWrite, token: 1, key: key, value: value}
		switch a := s.ask(ctx, "leader", st); a.said {
		case saidPanic:
			return s.panicked(a, st)
		case saidStale:
			return s.convict(oddKeysAndValues, fmt.Sprintf("a write of %s=%s was refused as stale, which makes its leader step down", show(key), show(value)), "must land, or fail otherwise", key)
		case saidDone:
			kept[key], from[value] = value, key
		}
		if !o.NoRead {
			if out, ok := check(key, true); !ok {
				return out
			}
		}
	}
	if !o.NoRead {
		for i := range n {
			key, _ := pair(i)
			if out, ok := check(key, false); !ok {
				return out
			}
		}
	}
	return kit.Outcome{Covered: fmt.Sprintf("%d of %s kept, the others refused", len(kept), counted(n, "write"))}
}

// largestToken writes under tokens that are too large, by what the storage says
// of itself.
func largestToken(open opener, o Options, _ kit.Effort) kit.Outcome {
	ctx := context.Background()
	for _, token := range []uint64{o.max() + 1, math.MaxUint64 - 1, math.MaxUint64} {
		for _, base := range []bool{true, false} {
			if out := tooLarge(ctx, open, o, token, base); out != nil {
				return *out
			}
		}
	}
	return kit.Outcome{Covered: fmt.Sprintf("tokens above %d", o.max())}
}

func tooLarge(ctx context.Context, open opener, o Options, token uint64, base bool) *kit.Outcome {
	s := newSession(open, o)
	defer s.lab.Close()
	name := people([]uint64{2, token})
	ask := func(st step) answer { return s.ask(ctx, name(st.token), st) }
	if base {
		ask(step{do: doWrite, token: 2, key: "x", value: "base"})
	}
	huge := step{do: doWrite, token: token, key: "x", value: "huge"}
	a := ask(huge)
	if a.said == saidPanic {
		out := s.panicked(a, huge)
		return &out
	}
	old := step{do: doWrite, token: 2, key: "x", value: "old"}
	switch landed := a.said == saidDone; {
	case landed:
		if a := ask(old); a.said == saidDone {
			out := s.convict(tokensCompareAsIntegers, fmt.Sprintf("token %d was admitted, and then token 2 was too", token), fmt.Sprintf("must be refused: token %d was seen", token))
			return &out
		}
	case a.said == saidStale && !o.NoRead:
		if a := ask(step{do: doRead, key: "x"}); a.value == "huge" {
			out := s.convict(refusedWriteChangesNothing, fmt.Sprintf("a write under token %d was refused, and a read found its value", token), "must not be huge: it was refused")
			return &out
		}
	}
	return nil
}

// ended asks with contexts that have ended: whatever comes of that call, the
// storage is as good as before.
func ended(open opener, o Options, _ kit.Effort) kit.Outcome {
	s := newSession(open, o)
	defer s.lab.Close()
	ctx := context.Background()
	over, cancel := context.WithCancel(ctx)
	cancel()
	type request struct {
		ctx context.Context
		step
	}
	landed, late := "base", false // late: the late write may land yet
	for _, q := range []request{
		{ctx, step{do: doWrite, token: 1, key: "x", value: "base"}},
		{over, step{do: doRead, key: "x"}},
		{over, step{do: doWrite, token: 1, key: "x", value: "late"}},
		{over, step{do: doFence, token: 1}},
		{ctx, step{do: doRead, key: "x"}},
		{ctx, step{do: doFence, token: 1}},
		{ctx, step{do: doWrite, token: 1, key: "x", value: "new"}},
		{ctx, step{do: doRead, key: "x"}},
	} {
		if len(s.deeds) == 0 {
			s.grant(1)
		}
		if !o.offers(q.step) {
			continue
		}
		a := s.ask(q.ctx, "leader", q.step)
		alive := q.ctx.Err() == nil
		switch {
		case a.said == saidPanic:
			return s.panicked(a, q.step)
		case a.said == saidStale:
			return s.convict(endedContext, fmt.Sprintf("a %s under token %d was refused as stale, and the token is not", kindNames[q.do], q.token), "must not be refused: no higher token was seen")
		case alive && a.said != saidDone:
			return s.convict(endedContext, fmt.Sprintf("after a call whose context had ended, a %s failed: %s", kindNames[q.do], a.err), "must work: its context has not ended")
		case q.do == doWrite && a.said == saidDone:
			landed = q.value
		case q.do == doWrite:
			late = true
		case alive && q.do == doRead && a.value != landed && !(late && a.value == "late"):
			return s.convict(endedContext, fmt.Sprintf("a read gave %s", show(a.value)), "must be "+landed)
		}
	}
	return kit.Outcome{Covered: "a read, a write and a fence whose context had ended"}
}

// forgets is what is asked of a volatile storage: after a restart the data is
// gone, or the tokens are not.
func forgets(open opener, o Options, _ kit.Effort) kit.Outcome {
	s := newSession(open, o)
	defer s.lab.Close()
	ctx := context.Background()
	s.ask(ctx, "successor", step{do: doWrite, token: 2, key: "x", value: "new"})
	s.lab.Restart()
	s.note("the storage", "restarts", "")
	if a := s.ask(ctx, "anybody", step{do: doRead, key: "x"}); !a.found {
		return kit.Outcome{Covered: "a restart forgets the data too"}
	}
	if a := s.ask(ctx, "predecessor", step{do: doWrite, token: 1, key: "x", value: "old"}); a.said == saidDone {
		return s.convict(dataGoesWithTheTokens, "the data survived a restart and its tokens did not: a write under token 1 landed on one under token 2", "must be refused: what token 2 wrote is there")
	}
	return kit.Outcome{Covered: "a restart keeps the data, and the tokens too"}
}
