package storagetest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"fencepost/props/kit"
)

// storyLines is how long a story may be.
const storyLines = 10

// deed is a line of a story: who does what, and what comes of it. Those that
// overlap others are told in two lines, by when they begin and end.
type deed struct {
	who, does, got string
	mark           string // what is wrong about it, if it is what breaks the rule
	call, ret      int64  // in the order of events; ret 0: it never returned
}

// people names who acts under which token: by who came first.
func people(tokens []uint64) func(uint64) string {
	tokens = slices.DeleteFunc(slices.Clone(tokens), func(t uint64) bool { return t == 0 })
	slices.Sort(tokens)
	tokens = slices.Compact(tokens)
	names := []string{"leader"}
	switch n := len(tokens); {
	case n == 2:
		names = []string{"predecessor", "successor"}
	case n > 2:
		names = []string{"1st leader", "2nd leader", "3rd leader"}
		for i := 4; i <= n; i++ {
			names = append(names, fmt.Sprintf("%dth leader", i))
		}
	}
	return func(t uint64) string {
		if i, ok := slices.BinarySearch(tokens, t); ok {
			return names[i]
		}
		return "somebody"
	}
}

// story tells what deeds there were, in columns.
func story(deeds []deed) []string {
	type moment struct {
		at    int64
		cells [3]string
		mark  string
	}
	var all []moment
	for i, d := range deeds {
		overlaps := d.ret == 0 || slices.ContainsFunc(deeds, func(e deed) bool {
			return e != deeds[i] && (d.call < e.call && e.call < d.ret || e.ret != 0 && d.call < e.ret && e.ret < d.ret)
		})
		if !overlaps {
			all = append(all, moment{d.call, [3]string{d.who, d.does, d.got}, d.mark})
			continue
		}
		if d.ret == 0 {
			all = append(all, moment{d.call, [3]string{d.who, d.does, "(no answer)"}, d.mark})
			continue
		}
		all = append(all, moment{d.call, [3]string{d.who, d.does, "…"}, ""}, moment{d.ret, [3]string{d.who, "… " + d.does, d.got}, d.mark})
	}
	slices.SortFunc(all, func(a, b moment) int { return cmp.Compare(a.at, b.at) })
	var width [2]int
	for _, m := range all {
		for c := range width {
			width[c] = max(width[c], utf8.RuneCountInString(m.cells[c]))
		}
	}
	lines := make([]string, len(all))
	for i, m := range all {
		l := pad(m.cells[0], width[0]) + "  " + pad(m.cells[1], width[1]) + "  " + m.cells[2]
		if m.mark != "" {
			l += "  ◄ " + m.mark
		}
		lines[i] = strings.TrimRight(l, " ")
	}
	if n := len(lines); n > storyLines {
		// What comes last breaks the rule.
		gap := fmt.Sprintf("… %d more …", n-storyLines+1)
		lines = slices.Concat(lines[:2], []string{gap}, lines[n-storyLines+3:])
	}
	return lines
}

func pad(s string, width int) string {
	return s + strings.Repeat(" ", max(0, width-utf8.RuneCountInString(s)))
}

// tell is a run as a story.
func (r *result) tell(cas bool) []string {
	var tokens []uint64
	granted := uint64(0)
	for _, l := range r.lines {
		if l.step.do == doGrant {
			granted++
			tokens = append(tokens, granted)
		}
		tokens = append(tokens, l.step.token)
	}
	name := people(tokens)
	var deeds []deed
	granted = 0
	for i, l := range r.lines {
		if l.noOp {
			continue
		}
		d := deed{who: name(l.step.token), does: does(l.step), got: got(l.step, l.answer), call: int64(2*i + 1), ret: int64(2*i + 2)}
		switch l.step.do {
		case doRestart:
			d.who, d.does = "the storage", "restarts"
		case doGrant:
			granted++
			d.who, d.does = name(granted), fmt.Sprintf("is granted the lease under token %d", granted)
		case doRelease:
			d.who, d.does = name(granted), "releases the lease"
		case doRead:
			d.who = "anybody"
		}
		if r.breach != nil && i == len(r.lines)-1 {
			d.mark = r.breach.want
		}
		deeds = append(deeds, d)
	}
	return story(deeds)
}

func does(st step) string {
	switch st.do {
	case doWrite:
		return fmt.Sprintf("writes %s=%s under token %d", show(st.key), show(st.value), st.token)
	case doFence:
		return fmt.Sprintf("fences under token %d", st.token)
	case doRead:
		return "reads " + show(st.key)
	}
	return kindNames[st.do]
}

func got(st step, a answer) string {
	switch a.said {
	case saidStale:
		return "refused"
	case saidFailed:
		return "error: " + clip(a.err)
	case saidPanic:
		return "panic: " + a.err
	case saidNothing:
		return ""
	}
	switch st.do {
	case doFence:
		return "acknowledged"
	case doRead:
		if !a.found {
			return "nothing"
		}
		return show(a.value)
	}
	return "landed"
}

// failure is a run that broke a rule, nil if it did not. A rule given by name
// is told instead of the one that was found broken.
func (r *result) failure(o Options, as rule) *kit.Failure {
	if r.breach == nil {
		return nil
	}
	which := r.breach.rule
	if as != noRule && which != neverPanics {
		which = as
	}
	f := convict(which, r.breach.what, r.tell(o.Carry != nil))
	f.More, f.Log = r.stack, r.log
	return f
}

// convict is a failure without a file.
func convict(r rule, what string, story []string) *kit.Failure {
	return &kit.Failure{Rule: r.String(), Says: ruleTable[r].says, What: what, Story: story, Read: ruleTable[r].read, Hint: hints[r]}
}
