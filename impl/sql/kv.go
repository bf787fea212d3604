package leasesql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"fencepost/impl/fence"
	"fencepost/impl/lease"
)

// KV is a [fence.KV] in the table fencepost_item: for small things that a leader
// keeps, such as how far it got. Data that has a table calls [Fence] or
// [Carried] in its own transactions.
type KV struct {
	store    *Store
	resource string
	guard    func(ctx context.Context, tx Querier, d Dialect, resource string, token lease.Token) error
}

var _ fence.KV = KV{}

// KV is the values kept under the lease on resource, by the rule of [Fence]: the
// lease itself may be in another store.
func (s *Store) KV(resource string) KV { return KV{s, resource, Fence} }

// CarriedKV is the values kept under the lease on resource of this store, by the
// rule of [Carried].
func (s *Store) CarriedKV(resource string) KV { return KV{s, resource, Carried} }

// Fence is the barrier of a new leader. It is refused as [Fence] or [Carried]
// refuses; after another error that says so the outcome is unknown.
func (kv KV) Fence(ctx context.Context, token lease.Token) error {
	return kv.guarded(ctx, token, func(*sql.Tx) error { return nil })
}

// Write lands value under key, with errors as of [KV.Fence].
func (kv KV) Write(ctx context.Context, token lease.Token, key, value string) error {
	return kv.guarded(ctx, token, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, kv.store.d.guard.put, Key(kv.resource), []byte(key), []byte(value), int64(token))
		return err
	})
}

// Read gives the value that landed last under key. The error is the database's.
func (kv KV) Read(ctx context.Context, key string) (value string, ok bool, err error) {
	var b []byte
	err = kv.store.again(ctx, func() error {
		err := kv.store.db.QueryRowContext(ctx, kv.store.d.guard.get, Key(kv.resource), []byte(key)).Scan(&b)
		if err != nil {
			return nothingDone(err)
		}
		return nil
	})
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return "", false, nil
	case err != nil:
		return "", false, fmt.Errorf("reading %q of %q: %w", key, kv.resource, err)
	}
	return string(b), true, nil
}

func (kv KV) guarded(ctx context.Context, token lease.Token, do func(tx *sql.Tx) error) error {
	err := kv.store.again(ctx, func() error { return kv.once(ctx, token, do) })
	if err == nil || errors.Is(err, fence.ErrStale) {
		return err
	}
	return fmt.Errorf("write under token %d to what %q protects: %w", token, kv.resource, err)
}

func (kv KV) once(ctx context.Context, token lease.Token, do func(tx *sql.Tx) error) error {
	tx, err := kv.store.db.BeginTx(ctx, nil)
	if err != nil {
		return nothingDone(err)
	}
	defer tx.Rollback() // does nothing after a commit
	if err := kv.guard(ctx, tx, kv.store.d, kv.resource, token); errors.Is(err, fence.ErrStale) {
		return err
	} else if err != nil {
		return nothingDone(err)
	}
	if err := do(tx); err != nil {
		return nothingDone(err)
	}
	return unknown(tx.Commit())
}
