package storetest

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"fencepost/impl/lease"
	"fencepost/linearizability"
	"fencepost/model"
	"fencepost/props/kit"
)

// convict shows the smallest part of a violated history that is violated by
// itself.
func (h *hammer) convict(hist linearizability.History, o linearizability.Options) *kit.Failure {
	ctx := context.Background()
	if small, err := linearizability.Reduce(ctx, hist, o); err == nil {
		hist = small
	}
	f := &kit.Failure{
		Rule: "linearizability",
		Says: "There must be an order of the calls, each between when it was called and when it was answered, in which every answer is right: " +
			"those who call at the same time must not see the store in the middle of another's call.",
		What: "no order of the calls explains the marked answer",
		Read: "go doc fencepost/linearizability; fencepost check FILE draws it",
		Log:  h.lab.Log(),
	}
	bad := int64(-1)
	if v, err := linearizability.Check(ctx, hist, o); err == nil {
		for _, p := range v.Partitions {
			if p.Result == linearizability.Violated {
				bad = p.Index
			}
		}
		if found := telling(v.Findings); found != nil {
			f.What = fmt.Sprintf("%s: %s", found.Check, inWords(&hist, found.Text))
			if n := len(found.Indexes); bad < 0 && n > 0 {
				bad = found.Indexes[n-1]
			}
		}
	}
	f.Story = tellHistory(&hist, bad)
	var file bytes.Buffer
	if err := hist.WriteJSON(&file); err == nil {
		named := kit.NewFile("linearizability", "jsonl", file.Bytes())
		f.File = &named
	}
	return f
}

// telling is the finding that says best what the store did wrong, nil if there
// is none: about tokens, then about tenures, before what these led to.
func telling(found []linearizability.Finding) *linearizability.Finding {
	rank := func(f linearizability.Finding) int {
		switch {
		case !f.Violates:
			return 3
		case f.Invariant == model.TokenMonotonicity:
			return 0
		case f.Invariant == model.BeliefOwnership:
			return 1
		}
		return 2
	}
	if len(found) == 0 {
		return nil
	}
	best := slices.MinFunc(found, func(a, b linearizability.Finding) int { return cmp.Compare(rank(a), rank(b)) })
	if !best.Violates {
		return nil
	}
	return &best
}

// tellHistory is a history as a story, with the event of that index marked.
func tellHistory(h *linearizability.History, bad int64) []string {
	ops := h.Ops()
	times := make([]string, len(ops))
	width := 0
	for i, op := range ops {
		times[i] = time.Duration(h.Events[op.Call].Time - h.Events[0].Time).String()
		width = max(width, utf8.RuneCountInString(times[i]))
	}
	// A history made smaller has left out answers; one that is told for a call
	// without any has none left out.
	open := "(answer does not matter)"
	if slices.ContainsFunc(ops, func(op linearizability.Op) bool { return op.Return < 0 && h.Events[op.Call].Index == bad }) {
		open = "never returned"
	}
	lines := make([]storyLine, len(ops))
	for i, op := range ops {
		l := &lines[i]
		l.at, l.did, l.got = int64(op.Call)+1, fmt.Sprintf("at %-*s  %s", width, times[i], askedIn(&h.Events[op.Call])), open
		last := &h.Events[op.Call]
		if op.Return >= 0 {
			last = &h.Events[op.Return]
			l.until, l.got = int64(op.Return)+1, answeredIn(last)
		}
		l.bad = last.Index == bad
	}
	return layOut(lines, 0)
}

func askedIn(e *linearizability.Event) string {
	who, key := nameIn(e, "owner"), keyIn(e)
	ttl, _ := e.Field("ttl").Int()
	switch e.F {
	case "acquire":
		return fmt.Sprintf("%s acquires %s for %v", who, key, time.Duration(ttl))
	case "renew":
		return fmt.Sprintf("%s renews %s under token %s for %v", who, key, word(e, "token"), time.Duration(ttl))
	case "release":
		return fmt.Sprintf("%s releases %s under token %s", who, key, word(e, "token"))
	}
	return "who has " + key + "?"
}

func answeredIn(e *linearizability.Event) string {
	holder := nameIn(e, "holder")
	switch {
	case e.Type == linearizability.Info:
		if says := word(e, "error"); !strings.HasPrefix(says, "panic: ") {
			return "error: " + clip(says)
		}
		return word(e, "error")
	case e.Type == linearizability.Fail && holder != "":
		return "refused: held by " + holder
	case e.Type == linearizability.Fail:
		return "refused: " + word(e, "error")
	case e.F == "acquire":
		return "granted, token " + word(e, "token")
	case e.F == "get" && nameIn(e, "owner") == "":
		return "nobody"
	case e.F == "get":
		return fmt.Sprintf("%s, token %s", nameIn(e, "owner"), word(e, "token"))
	}
	return map[string]string{"renew": "renewed", "release": "released"}[e.F]
}

// word is the text of a field.
func word(e *linearizability.Event, field string) string {
	v := e.Field(field)
	if s, ok := v.Word(); ok {
		return s
	}
	return v.String()
}

func keyIn(e *linearizability.Event) string {
	name, _, _ := strings.Cut(word(e, "key"), "-")
	return name
}

// nameIn is the candidate that a field names, "" for nobody.
func nameIn(e *linearizability.Event, field string) string {
	if e.Field(field).IsNil() {
		return ""
	}
	text := word(e, field)
	h, err := lease.ParseHolder(text)
	if err != nil {
		return text
	}
	return named(h)
}

// inWords is a sentence about a history with its names as stories have them.
func inWords(h *linearizability.History, text string) string {
	for i := range h.Events {
		e := &h.Events[i]
		for _, field := range [...]string{"owner", "holder"} {
			if name := nameIn(e, field); name != "" {
				text = strings.ReplaceAll(text, `"`+word(e, field)+`"`, name)
			}
		}
		if key := word(e, "key"); e.Type == linearizability.Invoke {
			text = strings.ReplaceAll(text, `"`+key+`"`, keyIn(e))
		}
	}
	return text
}
