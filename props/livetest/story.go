package livetest

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"fencepost/impl/lease"
)

// line is a step of a story; times counts those that were alike.
type line struct {
	at            time.Duration // since the trial began
	asked, answer string
	times         int
}

// tell adds a step. One like the last is counted with it.
func (t *trial) tell(at time.Duration, asked, answer string) {
	if n := len(t.lines); n > 0 && t.lines[n-1].asked == asked && t.lines[n-1].answer == answer {
		t.lines[n-1].times++
		t.lines[n-1].at = at - t.began
		return
	}
	t.lines = append(t.lines, line{at - t.began, asked, answer, 1})
}

func (t *trial) answers() (n int) {
	for _, l := range t.lines {
		if l.answer != "" {
			n += l.times
		}
	}
	return n
}

const (
	storyLines = 9   // of what happened: the end of it
	storyWidth = 110 // up to which the correct answer stands beside the wrong one
)

func (t *trial) story(want string) []string { return layOut(t.lines, want) }

// layOut aligns the steps of a story, the last of which is marked.
func layOut(lines []line, want string) []string {
	var out []string
	if n := len(lines) - storyLines; n > 0 {
		lines = lines[n:]
		out = append(out, fmt.Sprintf("(%d steps before)", n))
	}
	var instants, asks int
	at := make([]string, len(lines))
	for i, l := range lines {
		at[i] = l.at.Round(10 * time.Microsecond).String()
		instants = max(instants, utf8.RuneCountInString(at[i]))
		asks = max(asks, utf8.RuneCountInString(l.asked))
	}
	for i, l := range lines {
		text := fmt.Sprintf("%*s  %-*s  %s", instants, at[i], asks, l.asked, l.answer)
		if l.times > 1 {
			text += fmt.Sprintf(" (the last of %d times)", l.times)
		}
		out = append(out, strings.TrimRight(text, " "))
	}
	if len(out) == 0 || want == "" {
		return out
	}
	last := &out[len(out)-1]
	*last += "  ◄"
	if why := " expected: " + want; utf8.RuneCountInString(*last+why) <= storyWidth {
		*last += why
	} else {
		out = append(out, strings.Repeat(" ", instants)+" "+why)
	}
	return out
}

// named is a candidate in a story: its node, and which of its incarnations
// unless it is the first.
func named(h lease.Holder) string {
	switch {
	case h.IsZero():
		return "nobody"
	case h.Seq == 1:
		return h.Node
	}
	return fmt.Sprintf("%s.%d", h.Node, h.Seq)
}

func describe(req lease.Request) string {
	who := named(req.Holder)
	switch req.Op {
	case lease.OpAcquire:
		return fmt.Sprintf("%s acquires for %v", who, req.TTL)
	case lease.OpRenew:
		return fmt.Sprintf("%s renews under token %d for %v", who, req.Token, req.TTL)
	case lease.OpRelease:
		return fmt.Sprintf("%s releases under token %d", who, req.Token)
	}
	return "who has it?"
}

// says is the answer in a few words. What remains is left out, so that refusals
// for one reason are alike.
func (a answer) says() string {
	switch a.code {
	case lease.CodeGranted:
		return fmt.Sprintf("granted: token %d for %v", a.grant.Token, a.grant.TTL)
	case lease.CodeReleased:
		return "released"
	case lease.CodeFree:
		return "nobody"
	case lease.CodeNone:
		return fmt.Sprintf("error: %v", a.err)
	case lease.CodeDelayed:
		return "refused: in its lock delay"
	case lease.CodeHeld:
		held, refused := errors.AsType[*lease.HeldError](a.err)
		switch {
		case !refused:
			return fmt.Sprintf("%s, token %d", named(a.seen.Holder), a.seen.Token)
		case held.Holder.IsZero():
			return "refused as held"
		}
		return fmt.Sprintf("refused: held by %s under token %d", named(held.Holder), held.Token)
	}
	return "refused as " + a.code.String()
}
