package leasesql

import (
	"context"
	"encoding/json"

	"fencepost/impl/lease"
)

// write is a lease that changes.
type write struct {
	key      string
	from, to lease.Record
}

// worthAHint reports whether whoever watches wants to know: not of a renewal.
func (w write) worthAHint() bool {
	return w.from.Token != w.to.Token || w.from.Holder != w.to.Holder || w.from.Status != w.to.Status
}

// write writes the rows, which are locked, and reports whether there were any.
func (s *Store) write(ctx context.Context, q querier, writes []write) (changed bool, err error) {
	var quiet, told []record
	for _, w := range writes {
		rec := recordOf(w.key, w.to, s.opts.Boot)
		if s.d.hint != "" && w.worthAHint() {
			told = append(told, rec)
		} else {
			quiet = append(quiet, rec)
		}
	}
	if err := s.update(ctx, q, s.d.update, s.d.updateAll, quiet); err != nil {
		return false, err
	}
	if err := s.update(ctx, q, s.d.hint, s.d.hintAll, told); err != nil {
		return false, err
	}
	return len(writes) > 0, nil
}

// update writes the rows by the statement one, or all of them by the other where
// there is one.
func (s *Store) update(ctx context.Context, q querier, one, all string, rows []record) error {
	switch {
	case len(rows) == 0:
		return nil
	case len(rows) == 1:
		return q.exec(ctx, one, rows[0].args()...)
	case all == "":
		return s.updateEach(ctx, q, one, rows)
	}
	list, err := json.Marshal(rows)
	if err != nil {
		return err
	}
	return q.exec(ctx, all, string(list))
}

func (s *Store) updateEach(ctx context.Context, q querier, query string, rows []record) error {
	each := ctx
	if !s.d.hasClock {
		// A library in the process needs no interrupting in the middle of a row,
		// for which its driver would start a goroutine.
		each = context.WithoutCancel(ctx)
	}
	stmt, err := q.conn.PrepareContext(ctx, query)
	if err != nil {
		return err
	}
	defer stmt.Close()
	for _, row := range rows {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if _, err := stmt.ExecContext(each, row.args()...); err != nil {
			return err
		}
	}
	return nil
}

// insert makes a row of each key that has none.
func (s *Store) insert(ctx context.Context, q querier, keys []string) error {
	list, err := json.Marshal(keys)
	if err != nil {
		return err
	}
	return q.exec(ctx, s.d.insert, int64(s.initial().rec.Token), string(list))
}
