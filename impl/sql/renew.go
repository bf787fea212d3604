package leasesql

import (
	"context"
	"encoding/json"
	"math"
	"strconv"

	"fencepost/impl/lease"
)

// grantable reports whether p is a renewal that a Record may grant, whatever is in
// the row.
func (p pending) grantable() bool {
	return p.Op == lease.OpRenew && p.TTL > 0 && p.Token > 0 && p.Token <= math.MaxInt64 && !p.Holder.IsZero()
}

// renewed answers p as a Record does that grants it, but for how much remains,
// which no grant says.
func (p pending) renewed() {
	rep := p.To(lease.CodeGranted)
	rep.Token, rep.TTL = p.Token, p.TTL
	*p.answer = answer{rep: rep}
}

// renewAt makes one statement of open where that is renewals only, of one lease
// each and all for one TTL, and reports how many rows it renewed. Where that is all
// of them, they are answered. Else it is not known which: the Record is to judge
// every one, and renews again what was renewed.
func (s *Store) renewAt(ctx context.Context, q querier, open []pending) (renewed int, err error) {
	asked := make(map[string]string, len(open))
	for _, p := range open {
		if !p.grantable() || p.TTL != open[0].TTL {
			return 0, nil
		}
		asked[p.key] = strconv.FormatUint(uint64(p.Token), 10) + " " + formatHolder(p.Holder)
	}
	if len(asked) < len(open) {
		return 0, nil
	}
	list, err := json.Marshal(asked)
	if err != nil {
		return 0, err
	}
	ttl, now := open[0].TTL, s.clk.Now()
	// As long as a tenure that begins now.
	until := lease.Restore(lease.Durable{TTL: ttl, Status: lease.Running}, now).Expires
	res, err := q.conn.ExecContext(ctx, s.d.renewAt, int64(ttl), int64(until), string(list), s.opts.Boot, int64(now))
	if err != nil {
		return 0, err
	}
	n, err := res.RowsAffected()
	if err != nil {
		return 0, err
	}
	if int(n) == len(open) {
		for _, p := range open {
			p.renewed()
		}
	}
	return int(n), nil
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
		if p.grantable() && (i == 0 || open[i-1].key != p.key) {
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
			p.renewed()
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
