package leasesql_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	"fencepost/impl/fence"
	"fencepost/impl/lease"
	leasesql "fencepost/impl/sql"
	"fencepost/props"
	"fencepost/props/livetest"
)

// Stores that are wrong, each in a way of its own.

// ownerless ends whatever tenure there is, as a DELETE without the owner in its
// WHERE does.
type ownerless struct {
	*leasesql.Store
	db *sql.DB
}

func (s ownerless) Release(ctx context.Context, resource string, _ lease.Holder, _ lease.Token) error {
	_, err := s.db.ExecContext(ctx, `UPDATE fencepost_lease SET status = 0 WHERE resource = $1`, leasesql.Key(resource))
	return err
}

// deleting forgets the row of a lease that was released, and the counter with it.
type deleting struct {
	*leasesql.Store
	db *sql.DB
}

func (s deleting) Release(ctx context.Context, resource string, holder lease.Holder, token lease.Token) error {
	if err := s.Store.Release(ctx, resource, holder, token); err != nil {
		return err
	}
	_, err := s.db.ExecContext(ctx, `DELETE FROM fencepost_lease WHERE resource = $1`, leasesql.Key(resource))
	return err
}

// truncating has a column of whole seconds, and says that it granted what was
// asked for.
type truncating struct{ *leasesql.Store }

func (s truncating) Acquire(ctx context.Context, resource string, holder lease.Holder, ttl time.Duration) (lease.Grant, error) {
	g, err := s.Store.Acquire(ctx, resource, holder, max(ttl.Truncate(time.Second), 1))
	g.TTL = ttl
	return g, err
}

// perKey has the token of each value beside it, and no other.
type perKey struct {
	leasesql.KV
	db *sql.DB
}

func (kv perKey) Fence(context.Context, lease.Token) error { return nil }

func (kv perKey) Write(ctx context.Context, token lease.Token, key, value string) error {
	res, err := kv.db.ExecContext(ctx, `INSERT INTO fencepost_item VALUES ('wrong', $1, $2, $3)
		ON CONFLICT DO UPDATE SET value = excluded.value, token = excluded.token WHERE token <= excluded.token`, []byte(key), []byte(value), int64(token))
	if err != nil {
		return err
	}
	if n, err := res.RowsAffected(); n == 0 || err != nil {
		return errors.Join(fence.ErrStale, err)
	}
	return nil
}

func TestATokenForEachKeyIsCaught(t *testing.T) {
	s := file(t)
	s.created(t)
	open := func(e props.LiveEnv) fence.KV {
		db := s.open(t)
		store, err := leasesql.New(db, s.dialect, leasesql.Options{})
		if err != nil {
			e.Fatal(err)
		}
		return perKey{store.KV("wrong"), db}
	}
	const name = "rules/a-fence-bars"
	for _, check := range livetest.StorageChecks(open, props.LiveStorageOptions{NoRestart: "not what this is about"}) {
		if check.Name == name {
			if out := check.Run(); out.Failure == nil {
				t.Errorf("%s did not catch it: %+v", name, out)
			}
			return
		}
	}
	t.Errorf("there is no check %s", name)
}

func TestWrongStoresAreCaught(t *testing.T) {
	s := file(t)
	s.created(t)
	right := func(e props.LiveEnv) (*leasesql.Store, *sql.DB) {
		db := s.open(t)
		store, err := leasesql.New(db, s.dialect, leasesql.Options{})
		if err != nil {
			e.Fatal(err)
		}
		return store, db
	}
	for name, c := range map[string]struct {
		open  func(props.LiveEnv) lease.Store
		check string
	}{
		"release without owner": {func(e props.LiveEnv) lease.Store { store, db := right(e); return ownerless{store, db} }, "rules/release-only-by-the-holder"},
		"row deleted":           {func(e props.LiveEnv) lease.Store { store, db := right(e); return deleting{store, db} }, "rules/release-frees-at-once"},
		"whole seconds":         {func(e props.LiveEnv) lease.Store { store, _ := right(e); return truncating{store} }, "ttl/1999ms"},
	} {
		t.Run(name, func(t *testing.T) {
			o := props.LiveOptions{NoRestart: "not what this is about"}
			o.SteadyClock = true
			for _, check := range livetest.StoreChecks(c.open, o) {
				if check.Name == c.check {
					if out := check.Run(); out.Failure == nil {
						t.Errorf("%s did not catch it: %+v", c.check, out)
					}
					return
				}
			}
			t.Errorf("there is no check %s", c.check)
		})
	}
}
