package sqllease

import (
	"context"
	"database/sql"
	"errors"
	"time"
)

// Step3 keeps the row for ever, and with it the counter. Its renewal is the
// statement that everybody forgets a condition of, since it is only a
// renewal: that the lease has not run out is there, and whose it is is not. A
// leader that was paused past its lease wakes up, renews its successor's, is
// told that all is well, and leads beside it. What it says:
//
//	rules/renew-by-another-is-refused
//
// And its times are whole seconds, as a column that people read has: a lease
// granted at 0.9s for 1.5s ends at 2s, four tenths early, while its holder acts
// on. What it says:
//
//	rules/held-until-the-last-nanosecond-of-a-tenth
type Step3 struct {
	DB  *sql.DB
	Now func() time.Duration
}

// Step3Schema is its table.
const Step3Schema = `CREATE TABLE IF NOT EXISTS lease (
	resource TEXT PRIMARY KEY,
	holder   TEXT NOT NULL,
	token    INTEGER NOT NULL,
	expires  INTEGER NOT NULL -- seconds
)`

func seconds(ns int64) int64 { return ns / int64(time.Second) }

// Acquire is that of [Step2].
func (s Step3) Acquire(ctx context.Context, resource, holder string, ttl time.Duration) (token uint64, ok bool, err error) {
	now := s.Now()
	err = s.DB.QueryRowContext(ctx, `
		INSERT INTO lease (resource, holder, token, expires) VALUES (@resource, @holder, 1, @until)
		ON CONFLICT (resource) DO UPDATE SET
			holder  = excluded.holder,
			token   = token + (expires <= @now),
			expires = max(expires, excluded.expires)
		WHERE holder = excluded.holder OR expires <= @now
		RETURNING token`,
		sql.Named("resource", resource), sql.Named("holder", holder),
		sql.Named("now", seconds(int64(now))), sql.Named("until", seconds(later(now, ttl)))).
		Scan(&token)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, false, nil
	}
	return token, err == nil, err
}

// Renew extends the lease, as long as it is one.
func (s Step3) Renew(ctx context.Context, resource, _ string, _ uint64, ttl time.Duration) (bool, error) {
	now := s.Now()
	return changed(ctx, s.DB, `UPDATE lease SET expires = max(expires, ?) WHERE resource = ? AND expires > ?`,
		seconds(later(now, ttl)), resource, seconds(int64(now)))
}

// Release gives it back. The row stays, for its token.
func (s Step3) Release(ctx context.Context, resource, holder string, token uint64) (bool, error) {
	return changed(ctx, s.DB, `UPDATE lease SET holder = '', expires = 0 WHERE resource = ? AND holder = ? AND token = ? AND expires > ?`,
		resource, holder, int64(token), seconds(int64(s.Now())))
}
