package sqllease

import (
	"context"
	"database/sql"
	"errors"
	"time"
)

// Step1 is the first thing that comes to mind: read the row, look at it in Go,
// write it. Everything about it is right but that it is two statements. Of two
// callers that read "nobody" at once both write themselves, both are told that
// they have the lease, and both under one token, so that no storage can tell
// them apart either. What it says:
//
//	concurrency/one-of-many-acquires-wins
//
// A transaction around the two does not mend it at the usual isolation level
// (READ COMMITTED lets both read the old row); SELECT ... FOR UPDATE would, once
// the row is there. One statement is simpler: see [Step2].
type Step1 struct {
	DB  *sql.DB
	Now func() time.Duration
}

// Step1Schema is its table.
const Step1Schema = `CREATE TABLE IF NOT EXISTS lease (
	resource TEXT PRIMARY KEY,
	holder   TEXT NOT NULL,
	token    INTEGER NOT NULL,
	expires  INTEGER NOT NULL
)`

// Acquire reads, then writes.
func (s Step1) Acquire(ctx context.Context, resource, holder string, ttl time.Duration) (token uint64, ok bool, err error) {
	now := s.Now()
	var last string
	var expires int64
	err = s.DB.QueryRowContext(ctx, `SELECT holder, token, expires FROM lease WHERE resource = ?`, resource).
		Scan(&last, &token, &expires)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return 0, false, err
	}
	held := int64(now) < expires
	if held && last != holder {
		return 0, false, nil
	}
	if !held {
		token, expires = token+1, 0
	}
	_, err = s.DB.ExecContext(ctx, `INSERT OR REPLACE INTO lease (resource, holder, token, expires) VALUES (?, ?, ?, ?)`,
		resource, holder, int64(token), max(expires, later(now, ttl)))
	return token, err == nil, err
}

// Renew extends what holder has.
func (s Step1) Renew(ctx context.Context, resource, holder string, token uint64, ttl time.Duration) (bool, error) {
	now := s.Now()
	return changed(ctx, s.DB, `UPDATE lease SET expires = max(expires, ?) WHERE resource = ? AND holder = ? AND token = ? AND expires > ?`,
		later(now, ttl), resource, holder, int64(token), int64(now))
}

// Release gives it back. The row stays, for its token.
func (s Step1) Release(ctx context.Context, resource, holder string, token uint64) (bool, error) {
	return changed(ctx, s.DB, `UPDATE lease SET holder = '', expires = 0 WHERE resource = ? AND holder = ? AND token = ? AND expires > ?`,
		resource, holder, int64(token), int64(s.Now()))
}
