package leasesql

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"fencepost/impl/lease"
)

// answer is a reply that is durable, or why there is none.
type answer struct {
	rep lease.Reply
	err error
}

func (a answer) reply(c lease.Call) (lease.Reply, error) {
	if a.err != nil {
		return lease.Reply{}, fmt.Errorf("lease %q: %v: %w", c.Resource, c.Op, a.err)
	}
	return a.rep, nil
}

// Batch implements [lease.Batcher]: all calls are one transaction, so that ten
// thousand renewals are written to disk once. On PostgreSQL and SQLite renewals
// that are granted are one statement.
func (s *Store) Batch(ctx context.Context, calls []lease.Call) []lease.Answer {
	list := make([]lease.Answer, len(calls))
	for i, a := range s.askAll(ctx, calls) {
		if rep, err := a.reply(calls[i]); err != nil {
			list[i].Err = err
		} else {
			list[i] = rep.Answer(calls[i].Resource)
		}
	}
	return list
}

func (s *Store) handle(ctx context.Context, c lease.Call) (lease.Reply, error) {
	return s.ask(ctx, c).reply(c)
}

// ask looks first where the answer is likely to change nothing.
func (s *Store) ask(ctx context.Context, call lease.Call) answer {
	if !readable(call.Holder) {
		return answer{rep: call.To(lease.CodeInvalid)}
	}
	if call.Op == lease.OpAcquire || call.Op == lease.OpGet {
		key := Key(call.Resource)
		rows, err := s.look(ctx, key)
		if err != nil {
			return answer{err: err}
		}
		r, there := rows[key]
		if !there {
			r = s.initial()
		}
		r, restored := r.on(s.opts.Boot)
		if next, rep := r.handle(s.opts.LockDelay, call.Request); next == r.rec && !restored {
			return answer{rep: rep}
		}
	}
	return s.askAll(ctx, []lease.Call{call})[0]
}

// askAll answers as many as it is asked, all or none of them durably.
func (s *Store) askAll(ctx context.Context, calls []lease.Call) []answer {
	answers := make([]answer, len(calls))
	var open []pending
	for i, call := range calls {
		if !readable(call.Holder) {
			answers[i].rep = call.To(lease.CodeInvalid)
			continue
		}
		open = append(open, pending{Call: call, key: Key(call.Resource), answer: &answers[i]})
	}
	// In one order, whoever locks the rows.
	slices.SortStableFunc(open, func(a, b pending) int { return strings.Compare(a.key, b.key) })
	if s.d.renewAll != "" {
		open = s.renew(ctx, open)
	}
	if len(open) == 0 {
		return answers
	}
	err := s.transact(ctx, func(q querier) (bool, error) { return s.judge(ctx, q, open) })
	if err != nil {
		for _, p := range open {
			*p.answer = answer{err: err}
		}
	}
	return answers
}

// pending is a call that waits for its answer.
type pending struct {
	lease.Call
	key string
	*answer
}

// judge answers each call of open, and writes what has to be committed before
// the answers count.
func (s *Store) judge(ctx context.Context, q querier, open []pending) (changed bool, err error) {
	if s.d.renewAt != "" {
		renewed, err := s.renewAt(ctx, q, open)
		if err != nil || renewed == len(open) {
			return true, err
		}
		changed = renewed > 0 // and renewed once more below
	}
	rows, err := s.lock(ctx, q, open)
	if err != nil {
		return false, err
	}
	if missing := s.missing(rows, open); len(missing) > 0 {
		// Whoever else inserts one comes first or waits: in any case there is a
		// row to lock then.
		if err := s.insert(ctx, q, missing); err != nil {
			return false, err
		}
		if rows, err = s.lock(ctx, q, open); err != nil {
			return false, err
		}
	}
	var writes []write
	for _, p := range open {
		r, there := rows[p.key]
		if !there {
			r = s.initial()
		}
		r, restored := r.on(s.opts.Boot)
		next, rep := r.handle(s.opts.LockDelay, p.Request)
		*p.answer = answer{rep: rep}
		if there && (next != r.rec || restored) {
			writes = append(writes, write{key: p.key, from: r.rec, to: next})
		}
		rows[p.key] = row{rec: next, boot: s.opts.Boot, now: r.now}
	}
	written, err := s.write(ctx, q, writes)
	return changed || written, err
}

// missing are the keys without a row that a call would change.
func (s *Store) missing(rows map[string]row, open []pending) (keys []string) {
	for _, p := range open {
		if _, ok := rows[p.key]; ok {
			continue
		}
		r := s.initial()
		if next, _ := r.handle(s.opts.LockDelay, p.Request); next != r.rec {
			keys = append(keys, p.key)
		}
	}
	return slices.Compact(keys)
}

// initial is a resource that nobody ever held.
func (s *Store) initial() row {
	return row{rec: lease.Record{Durable: lease.Durable{Token: max(s.opts.FirstToken, 1) - 1}}, boot: s.opts.Boot}
}
