package leasesql_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"fencepost/impl/lease"
	"fencepost/linearizability"
)

// ack is a write that was acknowledged.
type ack struct {
	at    time.Duration // by the clock of the machine's boot
	token lease.Token
	n     int
	value string
	by    *victim
}

// grant is a tenure that was acknowledged.
type grant struct {
	owner    string
	from, to time.Duration // of the call
}

// journal is what all candidates of a run have said, as far as it was read.
type journal struct {
	changed chan struct{} // has one element after a change

	mu     sync.Mutex
	acks   []ack
	grants map[lease.Token]grant
	last   lease.Token // that was granted
	fault  error       // the first
}

func newJournal() *journal {
	return &journal{changed: make(chan struct{}, 1), grants: make(map[lease.Token]grant)}
}

// said is a line of a candidate's history, which by itself is none.
type said struct {
	Time    time.Duration
	Process *int64
	Type    string
	F       string
	Owner   string
	Token   lease.Token
	K, V    string
}

// heard takes in one event of a candidate; called is the event of its call.
func (j *journal) heard(by *victim, called, e said) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if e.Type == "ok" {
		switch e.F {
		case "acquire":
			j.granted(e.Token, grant{called.Owner, called.Time, e.Time})
		case "write":
			n, _ := strconv.Atoi(called.K)
			j.acks = append(j.acks, ack{e.Time, called.Token, n, called.V, by})
		}
	}
	select {
	case j.changed <- struct{}{}:
	default:
	}
}

// granted holds one grant against all others: a token is one holder's, and of
// two grants of which one ended before the other was asked for, the later has
// the higher token.
func (j *journal) granted(token lease.Token, g grant) {
	for t, old := range j.grants {
		switch {
		case t == token && old.owner != g.owner:
			j.blame(fmt.Errorf("token %d was granted to %s and to %s", t, old.owner, g.owner))
		case t > token && old.to < g.from, t < token && g.to < old.from:
			j.blame(fmt.Errorf("tokens %d (%s) and %d (%s) were granted in the wrong order", t, old.owner, token, g.owner))
		}
	}
	j.grants[token] = g
	j.last = max(j.last, token)
}

func (j *journal) blame(err error) {
	if j.fault == nil {
		j.fault = err
	}
}

// await waits until f finds an ack, or something was wrong.
func (j *journal) await(within time.Duration, what string, f func(acks []ack) (ack, bool)) (ack, error) {
	timeout := time.After(within)
	for {
		j.mu.Lock()
		a, ok := f(j.acks)
		err := j.fault
		j.mu.Unlock()
		if ok || err != nil {
			return a, err
		}
		select {
		case <-j.changed:
		case <-timeout:
			return a, fmt.Errorf("no %s within %v", what, within)
		}
	}
}

// numberedAgainst holds all that is in the storage against the acks, in order: each is
// there as it was acknowledged, and tokens do not step back.
func numberedAgainst(acks []ack, read func(n int) (string, bool, error)) (numbers int, err error) {
	var all []string
	for n := 1; ; n++ {
		value, ok, err := read(n)
		if err != nil {
			return n, err
		}
		if !ok {
			break
		}
		all = append(all, value)
	}
	last := 0
	for i, value := range all {
		text, _, _ := strings.Cut(value, " ")
		token, err := strconv.Atoi(text)
		if err != nil || token < last {
			return i, fmt.Errorf("number %d has %q, after token %d", i+1, value, last)
		}
		last = token
	}
	for _, a := range acks {
		if a.n > len(all) {
			return len(all), fmt.Errorf("write %d (%q) was acknowledged, and is lost: there are %d", a.n, a.value, len(all))
		}
		if all[a.n-1] != a.value {
			return len(all), fmt.Errorf("write %d (%q) was acknowledged, and there is %q", a.n, a.value, all[a.n-1])
		}
	}
	return len(all), nil
}

// merged is what the candidates recorded, as one history by their common clock.
func merged(victims []*victim) (linearizability.History, error) {
	h := linearizability.History{Name: "kill", Meta: killMeta()}
	var processes int64
	for _, v := range victims {
		whole := v.said.Bytes()
		whole = whole[:bytes.LastIndexByte(whole, '\n')+1] // the last line may be torn
		if len(whole) == 0 {
			continue
		}
		one, err := linearizability.Read(bytes.NewReader(whole), v.node)
		if err != nil {
			return h, err
		}
		next := processes
		for _, e := range one.Events {
			e.Process += processes
			next = max(next, e.Process+1)
			h.Events = append(h.Events, e)
		}
		processes = next
	}
	slices.SortStableFunc(h.Events, func(a, b linearizability.Event) int { return int(a.Time - b.Time) })
	for i := range h.Events {
		h.Events[i].Index = int64(i)
	}
	return h, nil
}

// judged is the verdict on what the candidates recorded.
func judged(ctx context.Context, victims []*victim, least linearizability.Activity) (linearizability.Verdict, error) {
	h, err := merged(victims)
	if err != nil {
		return linearizability.Verdict{}, err
	}
	v, err := linearizability.Check(ctx, h, linearizability.Options{
		Model:   linearizability.Model{Name: linearizability.ModelFencepost},
		AtLeast: least,
	})
	if err == nil && v.Result != linearizability.Holds {
		err = errors.New(v.String())
	}
	return v, err
}
