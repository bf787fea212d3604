package leasesql

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"fencepost/impl/lease"
)

// answer is a reply that is durable, or why there is none.
type answer struct {
	rep lease.Reply
	err error
}

func (a answer) error(call lease.Call) error {
	if a.err != nil {
		return fmt.Errorf("lease %q: %v: %w", call.Resource, call.Op, a.err)
	}
	return a.rep.Err(call.Resource)
}

func (a answer) grant(call lease.Call) lease.Grant {
	if a.err != nil || a.rep.Code != lease.CodeGranted {
		return lease.Grant{}
	}
	return lease.Grant{Resource: call.Resource, Holder: a.rep.Holder, Token: a.rep.Token, TTL: a.rep.TTL}
}

// Batch implements [lease.Batcher]: all calls are one transaction, so that ten
// thousand renewals are written to disk once. On PostgreSQL renewals that are
// granted are one statement, and one round trip.
func (s *Store) Batch(ctx context.Context, calls []lease.Call) []lease.Answer {
	list := make([]lease.Answer, len(calls))
	for i, a := range s.askAll(ctx, calls) {
		list[i] = lease.Answer{Grant: a.grant(calls[i]), Err: a.error(calls[i])}
	}
	return list
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
	err := s.transact(ctx, func(q querier) ([]write, error) { return s.judge(ctx, q, open) })
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

// judge locks the rows of open, has each call answered, and gives what is to be
// written before the answers count.
func (s *Store) judge(ctx context.Context, q querier, open []pending) ([]write, error) {
	rows, err := s.lock(ctx, q, open)
	if err != nil {
		return nil, err
	}
	if missing := s.missing(rows, open); len(missing) > 0 {
		// Whoever else inserts one comes first or waits: in any case there is a
		// row to lock then.
		for _, key := range missing {
			if err := q.exec(ctx, s.d.insert, key, int64(s.initial().rec.Token)); err != nil {
				return nil, err
			}
		}
		if rows, err = s.lock(ctx, q, open); err != nil {
			return nil, err
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
	return writes, nil
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

// renewal is a call as JSON, for renewAll.
type renewal struct {
	Resource string `json:"resource"`
	Holder   string `json:"holder"`
	Token    int64  `json:"token"`
	TTL      int64  `json:"ttl"`
}

// renew grants what renewAll does, and returns what is left: all else, and what
// could not be asked so.
func (s *Store) renew(ctx context.Context, open []pending) (left []pending) {
	var asked []renewal
	for i, p := range open {
		if p.Op == lease.OpRenew && p.TTL > 0 && p.Token > 0 && p.Token <= math.MaxInt64 &&
			!p.Holder.IsZero() && (i == 0 || open[i-1].key != p.key) {
			asked = append(asked, renewal{p.key, formatHolder(p.Holder), int64(p.Token), int64(p.TTL)})
		}
	}
	if len(asked) == 0 {
		return open
	}
	granted, err := s.granted(ctx, asked)
	next := 0
	for _, p := range open {
		renewed := next < len(asked) && asked[next].Resource == p.key && p.Op == lease.OpRenew
		switch {
		case !renewed:
			left = append(left, p)
			continue
		case err != nil:
			*p.answer = answer{err: err}
		case granted[p.key]:
			// What a Record says of a renewal that it grants, but for how much
			// remains, which no grant says.
			rep := p.To(lease.CodeGranted)
			rep.Token, rep.TTL = p.Token, p.TTL
			*p.answer = answer{rep: rep}
		default:
			left = append(left, p)
		}
		next++
	}
	return left
}

func (s *Store) granted(ctx context.Context, asked []renewal) (map[string]bool, error) {
	list, err := json.Marshal(asked)
	if err != nil {
		return nil, nothingDone(err)
	}
	granted := make(map[string]bool, len(asked))
	err = s.again(ctx, func() error {
		clear(granted)
		rows, err := s.db.QueryContext(ctx, s.d.renewAll, string(list))
		if err != nil {
			return unknown(err)
		}
		defer rows.Close()
		for rows.Next() {
			var key string
			if err := rows.Scan(&key); err != nil {
				return unknown(err)
			}
			granted[key] = true
		}
		return unknown(rows.Err())
	})
	return granted, err
}
