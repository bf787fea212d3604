package sqllease

import (
	"context"
	"database/sql"
	"errors"
	"time"
)

// Step2 decides in one statement: the WHERE is the check, and the database does
// not let anybody between it and the write. It also tidies up: a lease that was
// released is a row less. But the token is a column of that row, and goes with
// it: the next holder gets token 1 once more, and a write that the first one
// still had under way, under its token 1, lands. What it says:
//
//	rules/next-token-after-release
//
// Counters outlive what they count.
type Step2 struct {
	DB  *sql.DB
	Now func() time.Duration
}

// Step2Schema is its table, which is that of [Step1].
const Step2Schema = Step1Schema

// Acquire inserts the row, or takes the one that is there where nobody else has
// it. In an upsert, expires is the row's and excluded.expires the one to be
// inserted.
func (s Step2) Acquire(ctx context.Context, resource, holder string, ttl time.Duration) (token uint64, ok bool, err error) {
	now := s.Now()
	err = s.DB.QueryRowContext(ctx, `
		INSERT INTO lease (resource, holder, token, expires) VALUES (@resource, @holder, 1, @until)
		ON CONFLICT (resource) DO UPDATE SET
			holder  = excluded.holder,
			token   = token + (expires <= @now),
			expires = max(expires, excluded.expires)
		WHERE holder = excluded.holder OR expires <= @now
		RETURNING token`,
		sql.Named("resource", resource), sql.Named("holder", holder), sql.Named("now", int64(now)), sql.Named("until", later(now, ttl))).
		Scan(&token)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, false, nil // the WHERE let nothing through: somebody else has it
	}
	return token, err == nil, err
}

// Renew extends what holder has.
func (s Step2) Renew(ctx context.Context, resource, holder string, token uint64, ttl time.Duration) (bool, error) {
	now := s.Now()
	return changed(ctx, s.DB, `UPDATE lease SET expires = max(expires, ?) WHERE resource = ? AND holder = ? AND token = ? AND expires > ?`,
		later(now, ttl), resource, holder, int64(token), int64(now))
}

// Release tidies up.
func (s Step2) Release(ctx context.Context, resource, holder string, token uint64) (bool, error) {
	return changed(ctx, s.DB, `DELETE FROM lease WHERE resource = ? AND holder = ? AND token = ? AND expires > ?`,
		resource, holder, int64(token), int64(s.Now()))
}
