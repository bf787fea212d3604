package sqllease

import (
	"context"
	"database/sql"
	"errors"
	"math"
	"time"
)

// Leases is the store that the three steps lead to:
//
//   - one statement decides, and its WHERE is the rule;
//   - the row, and with it the counter, is never deleted;
//   - whose it is, under which token, and until when, is in every WHERE;
//   - times are nanoseconds, and an expiry never moves back.
//
// An expiry is an instant of the database's clock, and stays right while that
// goes on, as the time of day does over a restart of the server: props.Options
// calls it a SteadyClock. For a database that may come back with its clock set
// there is [Leases.Recover], and for that alone the longest TTL is kept, and
// that a lease has run out is written down before anybody is told.
type Leases struct {
	DB  *sql.DB
	Now func() time.Duration
}

// LeasesSchema is its table.
const LeasesSchema = `CREATE TABLE IF NOT EXISTS lease (
	resource TEXT PRIMARY KEY,
	token    INTEGER NOT NULL, -- of the latest tenure: the counter
	holder   TEXT NOT NULL,    -- '': released, or known to have run out
	ttl      INTEGER NOT NULL, -- the longest asked for in this tenure
	expires  INTEGER NOT NULL  -- ns, by the database's clock
)`

// Recover is for when the clock of the database may have been set, as where it
// came back on another machine: how much of a tenure is left nobody knows, so it
// lasts for all of its TTL again. Call it before any other request is served.
// Where the clock has gone on, there is nothing to do.
func (s Leases) Recover(ctx context.Context) error {
	now := int64(s.Now())
	_, err := s.DB.ExecContext(ctx, `UPDATE lease SET expires = CASE WHEN ttl > @most - @now THEN @most ELSE @now + ttl END WHERE holder <> ''`,
		sql.Named("now", now), sql.Named("most", int64(math.MaxInt64)))
	return err
}

// Acquire gives resource to holder for ttl, unless somebody else has it, and
// says under which token. Whoever has it already keeps its token.
func (s Leases) Acquire(ctx context.Context, resource, holder string, ttl time.Duration) (token uint64, ok bool, err error) {
	now := s.Now()
	err = s.DB.QueryRowContext(ctx, `
		INSERT INTO lease (resource, token, holder, ttl, expires) VALUES (@resource, 1, @holder, @ttl, @until)
		ON CONFLICT (resource) DO UPDATE SET
			token   = CASE WHEN holder = @holder AND expires > @now THEN token             ELSE token + 1 END,
			ttl     = CASE WHEN holder = @holder AND expires > @now THEN max(ttl, @ttl)    ELSE @ttl      END,
			expires = CASE WHEN holder = @holder AND expires > @now THEN max(expires, @until) ELSE @until END,
			holder  = @holder
		WHERE holder IN ('', @holder) OR expires <= @now
		RETURNING token`,
		sql.Named("resource", resource), sql.Named("holder", holder), sql.Named("ttl", int64(ttl)),
		sql.Named("now", int64(now)), sql.Named("until", later(now, ttl))).
		Scan(&token)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, false, nil
	}
	return token, err == nil, err
}

// Renew lets holder have resource for ttl from now, if it has it under token.
func (s Leases) Renew(ctx context.Context, resource, holder string, token uint64, ttl time.Duration) (bool, error) {
	now := s.Now()
	ok, err := changed(ctx, s.DB, `
		UPDATE lease SET ttl = max(ttl, @ttl), expires = max(expires, @until)
		WHERE resource = @resource AND holder = @holder AND token = @token AND expires > @now`,
		sql.Named("resource", resource), sql.Named("holder", holder), sql.Named("token", int64(token)),
		sql.Named("ttl", int64(ttl)), sql.Named("now", int64(now)), sql.Named("until", later(now, ttl)))
	if ok || err != nil {
		return ok, err
	}
	return false, s.lapse(ctx, resource, now)
}

// Release gives resource back, if holder has it under token.
func (s Leases) Release(ctx context.Context, resource, holder string, token uint64) (bool, error) {
	now := s.Now()
	ok, err := changed(ctx, s.DB, `UPDATE lease SET holder = '' WHERE resource = ? AND holder = ? AND token = ? AND expires > ?`,
		resource, holder, int64(token), int64(now))
	if ok || err != nil {
		return ok, err
	}
	return false, s.lapse(ctx, resource, now)
}

// Get says who has resource under which token; "" is nobody.
func (s Leases) Get(ctx context.Context, resource string) (holder string, token uint64, err error) {
	now := s.Now()
	var expires int64
	err = s.DB.QueryRowContext(ctx, `SELECT holder, token, expires FROM lease WHERE resource = ?`, resource).Scan(&holder, &token, &expires)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return "", 0, nil
	case err != nil:
		return "", 0, err
	case expires <= int64(now):
		return "", token, s.lapse(ctx, resource, now)
	}
	return holder, token, nil
}

// lapse writes down that what ran out by now has, before anybody is told so: a
// database that comes back would hold it on. Whoever took the lease in between
// has it until later than now, and is not touched.
func (s Leases) lapse(ctx context.Context, resource string, now time.Duration) error {
	_, err := s.DB.ExecContext(ctx, `UPDATE lease SET holder = '' WHERE resource = ? AND expires <= ?`, resource, int64(now))
	return err
}
