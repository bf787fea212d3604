package leasesql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// querier is a connection within a transaction, or none in particular.
type querier struct {
	conn interface {
		ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
		QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
		PrepareContext(ctx context.Context, query string) (*sql.Stmt, error)
	}
}

func (q querier) exec(ctx context.Context, query string, args ...any) error {
	_, err := q.conn.ExecContext(ctx, query, args...)
	return err
}

// transact runs judge in a transaction, which is committed if judge changed
// anything. After an error nothing was done, or (in the commit) it is unknown: the
// error says which.
func (s *Store) transact(ctx context.Context, judge func(querier) (changed bool, err error)) error {
	return s.again(ctx, func() error { return s.once(ctx, judge) })
}

func (s *Store) once(ctx context.Context, judge func(querier) (changed bool, err error)) (err error) {
	if err := ctx.Err(); err != nil {
		return nothingDone(context.Cause(ctx))
	}
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return nothingDone(err)
	}
	defer conn.Close()
	q := querier{conn}
	if err := q.exec(ctx, s.d.begin); err != nil {
		s.rollback(ctx, conn) // an answer that was lost may have begun it
		return nothingDone(err)
	}
	ended := false
	defer func() { // also of a panic
		if !ended {
			s.rollback(ctx, conn)
		}
	}()
	changed, err := judge(q)
	if err != nil {
		return nothingDone(err)
	}
	if !changed {
		return nil // the answers hold by the rows as they were, locked
	}
	err = q.exec(ctx, `COMMIT`)
	ended = err == nil
	return unknown(err)
}

// rollback ends the transaction whatever became of ctx: a connection in one is
// of use to nobody. Where that fails the connection goes, and with it the
// transaction; but in SQLite it fails only for want of one, and the connection
// may be all there is of a database in memory.
func (s *Store) rollback(ctx context.Context, conn *sql.Conn) {
	_, err := conn.ExecContext(context.WithoutCancel(ctx), `ROLLBACK`)
	if err != nil && s.d.hasClock {
		conn.Raw(func(any) error { return driver.ErrBadConn })
	}
}

// Intervals between attempts, by the store's clock. What is in the way is a
// transaction of some milliseconds.
const (
	firstPause = time.Millisecond
	mostPause  = 50 * time.Millisecond
)

// again repeats do while its errors mean that nothing was done and that another
// attempt may go better.
func (s *Store) again(ctx context.Context, do func() error) error {
	for pause := firstPause; ; pause = min(2*pause, mostPause) {
		err := do()
		if err == nil || !s.d.transient(err) {
			return err
		}
		timer := s.clk.Timer(s.clk.Now() + pause)
		select {
		case <-timer.C():
			timer.Stop()
		case <-ctx.Done():
			timer.Stop()
			return nothingDone(fmt.Errorf("%w; last: %w", context.Cause(ctx), err))
		}
	}
}

func nothingDone(err error) error { return fmt.Errorf("nothing done: %w", err) }

func unknown(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("outcome unknown: %w", err)
}

// look reads one row without a lock.
func (s *Store) look(ctx context.Context, key string) (rows map[string]row, err error) {
	err = s.again(ctx, func() error {
		var err error
		if rows, err = s.read(ctx, querier{s.db}, s.d.lookOne, key); err != nil {
			return nothingDone(err)
		}
		return nil
	})
	return rows, err
}

// lock reads the rows of open, and lets nothing change them until the
// transaction ends.
func (s *Store) lock(ctx context.Context, q querier, open []pending) (map[string]row, error) {
	if len(open) == 1 {
		return s.read(ctx, q, s.d.lockOne, open[0].key)
	}
	keys := make([]string, len(open))
	for i, p := range open {
		keys[i] = p.key
	}
	list, err := json.Marshal(keys)
	if err != nil {
		return nil, err
	}
	return s.read(ctx, q, s.d.lockAll, string(list))
}

// read gives the rows that query finds, each with what the clock said after it
// was read, and locked if query does that.
func (s *Store) read(ctx context.Context, q querier, query string, arg string) (map[string]row, error) {
	found, err := s.rows(ctx, q, query, arg)
	if err != nil || len(found) == 0 {
		return found, err
	}
	var now time.Duration
	switch {
	case !s.d.hasClock:
		now = s.clk.Now()
	case s.d.clock == "":
		return found, nil
	default:
		if now, err = s.serverTime(ctx, q); err != nil {
			return nil, err
		}
	}
	for key, r := range found {
		r.now = now
		found[key] = r
	}
	return found, nil
}

func (s *Store) rows(ctx context.Context, q querier, query, arg string) (map[string]row, error) {
	rows, err := q.conn.QueryContext(ctx, query, arg)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	found := map[string]row{}
	for rows.Next() {
		key, r, err := scan(rows)
		if err != nil {
			return nil, err
		}
		found[key] = r
	}
	return found, rows.Err()
}

func (s *Store) serverTime(ctx context.Context, q querier) (now time.Duration, err error) {
	rows, err := q.conn.QueryContext(ctx, s.d.clock)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	if !rows.Next() {
		return 0, errors.Join(errors.New("the server does not say what time it is"), rows.Err())
	}
	err = rows.Scan(&now)
	return now, errors.Join(err, rows.Close())
}
