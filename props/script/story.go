package script

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"fencepost/model"
)

const (
	storyLines = 10  // of what happened
	storyWidth = 110 // up to which the reason stands on the line it is about
)

// Story is r for people: when, what was asked, what was answered. The last
// line is marked with "◄" and what a correct store would have answered, if
// that broke a rule. A long story has its last lines only.
func Story(r Result) []string {
	rows := tell(r)
	var at, asked int
	for _, row := range rows {
		at, asked = max(at, utf8.RuneCountInString(row.at)), max(asked, utf8.RuneCountInString(row.asked))
	}
	var out []string
	if r.Others > 0 {
		out = append(out, fmt.Sprintf("(on a store with other leases, those of %d scripts before it or at the same time)", r.Others))
	}
	if n := len(rows) - storyLines; n > 0 {
		rows = rows[n:]
		out = append(out, fmt.Sprintf("(%d lines before)", n))
	}
	for _, row := range rows {
		out = append(out, strings.TrimRight(fmt.Sprintf("%*s  %-*s  %s", at, row.at, asked, row.asked, row.answer), " "))
	}
	if r.Breach == nil || len(out) == 0 {
		return out
	}
	last := &out[len(out)-1]
	*last += "  ◄"
	if why := " expected: " + r.Breach.Want; utf8.RuneCountInString(*last+why) <= storyWidth {
		*last += why
	} else {
		out = append(out, strings.Repeat(" ", at)+"  "+why[1:])
	}
	return out
}

type row struct{ at, asked, answer string }

// teller remembers what the words for a step depend on.
type teller struct {
	both   bool         // there are two leases, so that each needs its name
	met    map[Who]bool // incarnations that were explained
	owners [len(resources)]map[uint64]Who
}

// tell leaves out what had no effect, and passages of time that the instants
// of other lines show.
func tell(r Result) []row {
	t := teller{met: map[Who]bool{}}
	t.both = slices.ContainsFunc(r.Lines, func(l Line) bool { return !l.NoOp && l.Step.On == 1 })
	for i := range t.owners {
		t.owners[i] = map[uint64]Who{}
	}
	var rows []row
	for i := range r.Lines {
		l := &r.Lines[i]
		if l.NoOp || l.Step.Do == Advance && (r.Breach == nil || i < len(r.Lines)-1) {
			continue
		}
		rows = append(rows, row{at: l.At.String(), asked: t.asked(l), answer: l.Answer})
		if l.Said.Code == model.CodeGranted && l.Step.Do == Acquire {
			t.owners[l.Step.On][l.Said.Token] = l.Step.Who
		}
	}
	return rows
}

// asked is what was asked, in words.
func (t *teller) asked(l *Line) string {
	s := l.Step
	who := s.Who.String()
	if s.Who.Seq > 1 && !t.met[s.Who] {
		who += fmt.Sprintf(" (%s, restarted)", nodes[s.Who.Node])
		t.met[s.Who] = true
	}
	it, on := "", ""
	if t.both {
		it, on = " "+resources[s.On], " of "+resources[s.On]
	}
	switch s.Do {
	case Acquire:
		return fmt.Sprintf("%s acquires%s for %v", who, it, s.TTL)
	case Renew:
		return fmt.Sprintf("%s renews%s under %s for %v", who, it, t.token(l), s.TTL)
	case Release:
		return fmt.Sprintf("%s releases%s under %s", who, it, t.token(l))
	case Get:
		if t.both {
			return "who holds " + resources[s.On] + "?"
		}
		return "who holds it?"
	case Advance:
		return fmt.Sprintf("%v pass", s.D)
	case Restart:
		return "the store crashes and restarts"
	case Delete:
		return "an operator deletes the lease" + on
	}
	return s.Do.String()
}

// token says whose l.Token is, unless it is the asker's own.
func (t *teller) token(l *Line) string {
	switch owner, ok := t.owners[l.Step.On][l.Token]; {
	case !ok:
		return fmt.Sprintf("token %d (never granted)", l.Token)
	case owner != l.Step.Who:
		return fmt.Sprintf("token %d (%s's)", l.Token, owner)
	case l.Step.Token != (Ref{Of: l.Step.Who}):
		return fmt.Sprintf("token %d (an old one)", l.Token)
	}
	return fmt.Sprintf("token %d", l.Token)
}

// Said is s as the subject of a sentence.
func Said(s Step) string {
	switch s.Do {
	case Acquire:
		return s.Who.String() + "'s acquire"
	case Renew:
		return s.Who.String() + "'s renewal"
	case Release:
		return s.Who.String() + "'s release"
	case Get:
		return "the question who holds it"
	case Delete:
		return "the deletion"
	}
	return "the " + s.Do.String()
}
