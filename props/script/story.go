package script

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
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
	if mark := "  ◄ " + r.Breach.Want; utf8.RuneCountInString(*last+mark) <= storyWidth {
		*last += mark
	} else {
		*last += "  ◄"
		out = append(out, strings.Repeat(" ", at)+"  ◄ "+r.Breach.Want)
	}
	return out
}

type row struct{ at, asked, answer string }

// tell leaves out what had no effect, and passages of time that the instants
// of other lines show.
func tell(r Result) []row {
	both := slices.ContainsFunc(r.Lines, func(l Line) bool { return !l.NoOp && l.Step.On == 1 })
	var rows []row
	met := map[Who]bool{}
	for i := range r.Lines {
		l := &r.Lines[i]
		last := i == len(r.Lines)-1
		if l.NoOp || l.Step.Do == Advance && !last {
			continue
		}
		if l.Step.Do == Advance && r.Breach == nil {
			continue
		}
		rows = append(rows, row{at: l.At.String(), asked: l.asked(both, met), answer: l.Answer})
	}
	return rows
}

// asked is the step in words. It knows who was met before.
func (l *Line) asked(both bool, met map[Who]bool) string {
	s := l.Step
	who := s.Who.String()
	if s.Who.Seq > 1 && !met[s.Who] {
		who += fmt.Sprintf(" (%s once more)", nodes[s.Who.Node])
	}
	met[s.Who] = true
	it, on := "", ""
	if both {
		it, on = " "+resources[s.On], " of "+resources[s.On]
	}
	under := func() string {
		switch {
		case s.Token.Of == (Who{}) && s.Token.Plus == 0:
			return fmt.Sprintf("token %d (the latest)", l.Token)
		case s.Token.Plus == 0:
			return fmt.Sprintf("token %d (%s's)", l.Token, s.Token.Of)
		case s.Token.Plus < 0:
			return fmt.Sprintf("token %d (an old one)", l.Token)
		}
		return fmt.Sprintf("token %d (never granted)", l.Token)
	}
	switch s.Do {
	case Acquire:
		return fmt.Sprintf("%s acquires%s for %v", who, it, s.TTL)
	case Renew:
		return fmt.Sprintf("%s renews%s under %s for %v", who, it, under(), s.TTL)
	case Release:
		return fmt.Sprintf("%s releases%s under %s", who, it, under())
	case Get:
		if both {
			return "who holds " + resources[s.On] + "?"
		}
		return "who holds it?"
	case Advance:
		return fmt.Sprintf("%v pass", time.Duration(s.D))
	case Restart:
		return "the store crashes and restarts"
	case Delete:
		return "an operator deletes the lease" + on
	}
	return s.Do.String()
}
