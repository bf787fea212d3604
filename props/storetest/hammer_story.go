package storetest

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"fencepost/impl/lease"
)

// note is a line of a story that is no call.
type note struct {
	at   int64
	text string
}

// who is the caller's name in stories.
func (c *call) who() string { return named(c.holder) }

// named is a candidate in a story: its node, and which of its incarnations
// unless it is the first.
func named(h lease.Holder) string {
	if h.Seq <= 1 {
		return h.Node
	}
	return fmt.Sprintf("%s.%d", h.Node, h.Seq)
}

func (c *call) asked() string {
	name, _, _ := strings.Cut(c.resource, "-")
	switch c.op {
	case lease.OpAcquire:
		return fmt.Sprintf("%s acquires %s for %v", c.who(), name, c.ttl)
	case lease.OpRenew:
		return fmt.Sprintf("%s renews %s under token %d for %v", c.who(), name, c.token, c.ttl)
	}
	return fmt.Sprintf("%s releases %s under token %d", c.who(), name, c.token)
}

func (c *call) answered() string {
	switch held, isHeld := errors.AsType[*lease.HeldError](c.err); {
	case !c.returned():
		return "never returned"
	case isHeld && !held.Holder.IsZero():
		return fmt.Sprintf("refused: held by %s, token %d", named(held.Holder), held.Token)
	case c.err != nil:
		if p, ok := errors.AsType[*panicError](c.err); ok {
			return p.Error()
		}
		return refusal(c.err)
	case c.op == lease.OpAcquire:
		return fmt.Sprintf("granted, token %d", c.grant.Token)
	case c.op == lease.OpRenew:
		return "renewed"
	}
	return "released"
}

// tell is the round as a story: when each call was made and answered, in steps.
func (h *hammer) tell(b *breach) []string { return tellCalls(h.calls, h.story, b) }

func tellCalls(calls []*call, story []note, b *breach) []string {
	first := int64(math.MaxInt64)
	for _, c := range calls {
		if c.from > 0 {
			first = min(first, c.from)
		}
	}
	var lines []storyLine
	for _, c := range calls {
		switch {
		case c.from == 0: // its caller did not get so far
		case b.with != nil && c != b.at && !slices.Contains(b.with, c):
		case !c.returned():
			lines = append(lines, storyLine{at: c.from - first + 1, did: c.asked(), got: c.answered(), bad: c == b.at})
		default:
			lines = append(lines, storyLine{c.from - first + 1, c.to - first + 1, c.asked(), c.answered(), c == b.at})
		}
	}
	for _, n := range story {
		lines = append(lines, storyLine{at: n.at - first + 1, did: n.text})
	}
	return layOut(lines, len(calls)+len(story)-len(lines))
}

// storyLine is a call, or something else that happened, in a story.
type storyLine struct {
	at, until int64 // steps of the call and of the answer, 0 if there is none
	did, got  string
	bad       bool
}

// maxStory is how many lines a story has at most.
const maxStory = 10

// layOut aligns a story, in the order of the calls, of which some were left out.
func layOut(lines []storyLine, left int) []string {
	slices.SortFunc(lines, func(a, b storyLine) int { return cmp.Compare(a.at, b.at) })
	if n := len(lines) - maxStory + 1; n > 0 {
		// The breach is near the end, and what it rests on just before it.
		if bad := slices.IndexFunc(lines, func(l storyLine) bool { return l.bad }); bad >= 0 {
			n = max(0, min(n, bad-maxStory+2))
		}
		left += len(lines) - maxStory + 1
		lines = lines[n : n+maxStory-1]
	}
	story := []string{"(calls whose steps overlap were under way at once)"}
	if left > 0 {
		story[0] = fmt.Sprintf("(%d calls left out; those whose steps overlap were under way at once)", left)
	}
	var whens, dids int
	for _, l := range lines {
		whens = max(whens, utf8.RuneCountInString(l.when()))
		if l.got != "" {
			dids = max(dids, utf8.RuneCountInString(l.did))
		}
	}
	for _, l := range lines {
		text := fmt.Sprintf("%-*s  %-*s  %s", whens, l.when(), dids, l.did, l.got)
		if l.bad {
			text += "  ◄"
		}
		story = append(story, strings.TrimRight(text, " "))
	}
	return story
}

func (l storyLine) when() string {
	switch {
	case l.until > 0:
		return fmt.Sprintf("%d…%d", l.at, l.until)
	case l.got != "":
		return fmt.Sprintf("%d…", l.at)
	}
	return fmt.Sprint(l.at)
}
