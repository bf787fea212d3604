package linearizability

import (
	"errors"
	"slices"
	"strings"
	"time"
)

// jepsenLockReading says in a verdict how JepsenLock understood a history.
const jepsenLockReading = "Jepsen lock: the owner is the process, tokens none, TTL from any instant since the call, late unbounded"

// isJepsenLock reports whether h records a lock by acquires and releases that
// name no owner: Jepsen's lock workloads do.
func isJepsenLock(h *History) bool {
	acquires := 0
	for i := range h.Events {
		e := &h.Events[i]
		if e.Process == NoProcess {
			continue
		}
		if e.F != "acquire" && e.F != "release" || e.Has("owner") || e.Has("token") {
			return false
		}
		acquires++
	}
	return acquires > 0
}

// JepsenLock reads a history of Jepsen's etcd lock as one of a lease with the
// given TTL. The lock is held while a lease is alive that the client keeps
// renewing; the history has neither the lease nor its renewals. So:
//
//   - the owner is the process; there are no tokens
//   - an acquire creates its lease and then waits for the lock, so that the TTL
//     may run from any instant since the call
//   - renewals are not in the file, so that a lease need never lapse
//   - a failed acquire with already-held, and a failed release with not-held,
//     were never sent: the client knew by itself
//   - a failed acquire with timeout may have been granted, and been given back
//     by the lapse of its lease: unknown
//   - a failed release that did not find its lease shows that it had lapsed
func JepsenLock(h History, ttl time.Duration) (History, error) {
	if ttl <= 0 {
		return History{}, errors.New("a Jepsen lock read as a lease needs its TTL, which the history does not have: give one above 0")
	}
	h.Events = slices.Clone(h.Events)
	h.Meta.Tokens, h.Meta.First, h.Meta.Anchor, h.Meta.Late = TokensNone, 0, AnchorCall, Unbounded
	next := int64(0)
	for i := range h.Events {
		next = max(next, h.Events[i].Process+1)
	}
	// A process whose acquire became unknown goes on under a new number.
	alias := make(map[int64]int64)
	for i := range h.Events {
		e := &h.Events[i]
		if e.Process == NoProcess {
			continue
		}
		owner := e.Process
		if p, ok := alias[owner]; ok {
			e.Process = p
		}
		switch e.Type {
		case Invoke:
			e.Fields = append(slices.Clip(e.Fields), Field{"owner", Int(owner)})
			if e.F == "acquire" {
				e.Fields = append(e.Fields, Field{"ttl", Int(int64(ttl))})
			}
		case Fail:
			error, err := jepsenLockError(&h, i)
			if err != nil {
				return History{}, err
			}
			if error == "" {
				e.Type = Info
				alias[owner] = next
				next++
				continue
			}
			e.Fields = slices.DeleteFunc(slices.Clone(e.Fields), func(f Field) bool { return f.Name == "error" })
			e.Fields = append(e.Fields, Field{"error", Keyword(error)})
		}
	}
	return h, nil
}

// jepsenLockError translates the error of the event at pos; empty if it says
// nothing of the outcome.
func jepsenLockError(h *History, pos int) (string, error) {
	e := &h.Events[pos]
	v := e.Field("error")
	text := v.String()
	switch {
	case e.F == "acquire" && text == ":already-held", e.F == "release" && text == ":not-held":
		return notSent, nil
	case e.F == "acquire" && text == ":timeout":
		return "", nil
	case e.F == "release" && strings.Contains(text, "requested lease not found"):
		return "lapsed", nil
	}
	o := operation{file: h.Name}
	return "", o.errorAt(e, pos, "error", "not known of a Jepsen lock: %s", quote(text))
}
