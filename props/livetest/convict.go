package livetest

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"

	"fencepost/impl/lease"
	"fencepost/linearizability"
	"fencepost/props/kit"
)

const (
	ruleHistory = "linearizability"
	saysHistory = "There must be an order of the calls, each between when it was called and when it was answered, in which every answer is right and every tenure lasts: those who call at the same time must not see the store in the middle of another's call."
)

// convictHistory shows a small part of a violated history that is violated by
// itself.
func convictHistory(h linearizability.History, v linearizability.Verdict, o linearizability.Options, log string) *kit.Failure {
	o.AtLeast = linearizability.Activity{}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	f := &kit.Failure{Rule: ruleHistory, Says: saysHistory, Read: "go doc fencepost/linearizability", Log: log}
	small, err := linearizability.Reduce(ctx, h, o)
	if err != nil {
		small = h
	} else if again, err := linearizability.Check(ctx, small, o); err == nil && again.Result == linearizability.Violated {
		v = again
	}
	f.What = "no order of the calls explains what they were answered: " + shortly(&small, v.Reason)
	bad := int64(-1)
	for _, p := range v.Partitions {
		if p.Result == linearizability.Violated {
			bad = p.Index
		}
	}
	f.Story = tellHistory(&small, bad)
	var data bytes.Buffer
	if err := small.WriteJSON(&data); err == nil {
		file := kit.NewFile("live", "jsonl", data.Bytes())
		f.File = &file
	}
	return f
}

// tellHistory is a history as a story, with the event of index bad marked.
func tellHistory(h *linearizability.History, bad int64) []string {
	var lines []line
	for _, op := range h.Ops() {
		e := &h.Events[op.Call]
		l := line{at: time.Duration(e.Time - h.Events[0].Time), asked: shortly(h, askedIn(e)), answer: "(answer does not matter)", times: 1}
		if op.Return >= 0 {
			r := &h.Events[op.Return]
			l.answer = shortly(h, answeredIn(r)) + fmt.Sprintf(" (%v later)", time.Duration(r.Time-e.Time).Round(time.Microsecond))
			if r.Index == bad {
				l.answer += "  ◄"
			}
		}
		lines = append(lines, l)
	}
	return layOut(lines, "")
}

func askedIn(e *linearizability.Event) string {
	ttl, _ := e.Field("ttl").Int()
	token, _ := e.Field("token").Uint()
	owner, key := text(e, "owner"), text(e, "key")
	switch e.F {
	case "acquire":
		return fmt.Sprintf("%s acquires %s for %v", owner, key, time.Duration(ttl))
	case "renew":
		return fmt.Sprintf("%s renews %s under token %d for %v", owner, key, token, time.Duration(ttl))
	case "release":
		return fmt.Sprintf("%s releases %s under token %d", owner, key, token)
	case "get":
		return "who has " + key + "?"
	}
	return e.F + " of " + key
}

func answeredIn(e *linearizability.Event) string {
	token, _ := e.Field("token").Uint()
	switch {
	case e.Type == linearizability.Info:
		return "error: " + text(e, "error")
	case e.Type == linearizability.Fail && text(e, "holder") != "":
		return "refused: held by " + text(e, "holder")
	case e.Type == linearizability.Fail:
		return "refused: " + text(e, "error")
	case e.F == "get" && text(e, "owner") == "":
		return "nobody"
	case e.F == "get":
		return fmt.Sprintf("%s, token %d", text(e, "owner"), token)
	case e.F == "acquire":
		return fmt.Sprintf("granted, token %d", token)
	}
	return "done"
}

func text(e *linearizability.Event, field string) string {
	w, _ := e.Field(field).Word()
	return w
}

// shortly is a sentence about a history in which candidates have the names of
// stories.
func shortly(h *linearizability.History, text string) string {
	for i := range h.Events {
		for _, field := range [...]string{"owner", "holder"} {
			word, _ := h.Events[i].Field(field).Word()
			if holder, err := lease.ParseHolder(word); err == nil && !holder.IsZero() {
				text = strings.ReplaceAll(text, word, named(holder))
			}
		}
	}
	return text
}
