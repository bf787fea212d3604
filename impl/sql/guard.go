package leasesql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"

	"fencepost/impl/fence"
	"fencepost/impl/lease"
)

// Querier is what the guards need of a transaction: a *[sql.Tx], or a *[sql.Conn]
// in one that was begun by hand.
type Querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// guardTexts lock a row until the transaction ends. raise moves the highest
// token seen up to one, or leaves it, and says which it is now: whether the
// token may write is for [fence.Guard] to say.
type guardTexts struct {
	raise   string // resource, token
	carrier string // resource
	put     string // resource, name, value, token
	get     string // resource, name
	protect []string
}

const (
	insertFence = `INSERT INTO fencepost_fence (resource, highest) VALUES (?, ?) `
	insertItem  = `INSERT INTO fencepost_item (resource, name, value, token) VALUES (?, ?, ?, ?) `
	onConflict  = `ON CONFLICT (resource, name) DO UPDATE SET value = excluded.value, token = excluded.token`
	carrier     = `SELECT ` + columns + `, 0 FROM fencepost_lease WHERE resource = ?`
	getItem     = `SELECT value FROM fencepost_item WHERE resource = ? AND name = ?`
)

func sqliteGuard() guardTexts {
	return guardTexts{
		raise:   insertFence + `ON CONFLICT (resource) DO UPDATE SET highest = max(highest, excluded.highest) RETURNING highest`,
		carrier: carrier, // a transaction that writes after others have fails
		put:     insertItem + onConflict,
		get:     getItem,
		protect: sqliteProtect(),
	}
}

func postgresGuard() guardTexts {
	return guardTexts{
		raise:   numbered(insertFence + `ON CONFLICT (resource) DO UPDATE SET highest = greatest(fencepost_fence.highest, excluded.highest) RETURNING highest`),
		carrier: numbered(carrier + ` FOR SHARE`),
		put:     numbered(insertItem + onConflict),
		get:     numbered(getItem),
		protect: postgresProtect(),
	}
}

func mariadbGuard() guardTexts {
	return guardTexts{
		raise:   insertFence + `ON DUPLICATE KEY UPDATE highest = GREATEST(highest, VALUES(highest)) RETURNING highest`,
		carrier: carrier + ` LOCK IN SHARE MODE`,
		put:     insertItem + `ON DUPLICATE KEY UPDATE value = VALUES(value), token = VALUES(token)`,
		get:     getItem,
		protect: mariadbProtect(),
	}
}

// Fence lets the rest of tx land only under token: it locks the highest token
// that the data of resource have seen, and raises it to token. Call it first in
// each transaction that writes what the lease protects, whatever else that is,
// and end the transaction on any error. By itself, committed, it is the barrier
// of a new leader.
//
// A token lower than another transaction has committed is refused with a
// *[fence.StaleTokenError], which matches [fence.ErrStale]. Transactions of one
// resource run one after the other from here to their end. Any other error is
// the database's: nothing has landed unless tx is committed all the same.
func Fence(ctx context.Context, tx Querier, d Dialect, resource string, token lease.Token) error {
	if _, ok := (fence.Guard{}).Admit(token); !ok {
		return &fence.StaleTokenError{Token: token}
	}
	if token > math.MaxInt64 {
		return fmt.Errorf("fencing the data of %q under token %d: it is more than a column holds, and no lease of this package grants it", resource, token)
	}
	var highest int64
	if err := tx.QueryRowContext(ctx, d.guard.raise, Key(resource), int64(token)).Scan(&highest); err != nil {
		return fmt.Errorf("fencing the data of %q under token %d: %w", resource, token, err)
	}
	g := fence.Guard{Highest: lease.Token(highest)}
	if _, ok := g.Admit(token); !ok {
		return &fence.StaleTokenError{Token: token, Highest: g.Highest}
	}
	return nil
}

// Carried lets the rest of tx land only while the lease carries token, as
// [fence.Carries] has it: the lease's own row is looked at, and nobody can
// acquire or release it until tx ends. So it needs no barrier and no row of its
// own, but the same database as the lease. Call it first; end the transaction
// on any error.
//
// The holder's renewals wait for tx as well, on PostgreSQL and MariaDB: a
// transaction that takes as long as a TTL ends the term that it writes under.
// Use [Fence] for long ones.
//
// The refusal is a *[fence.NotCarriedError], which matches [fence.ErrStale].
func Carried(ctx context.Context, tx Querier, d Dialect, resource string, token lease.Token) error {
	_, r, err := scan(tx.QueryRowContext(ctx, d.guard.carrier, Key(resource)))
	switch {
	case errors.Is(err, sql.ErrNoRows): // nobody ever held it
	case err != nil:
		return fmt.Errorf("comparing the lease %q with token %d: %w", resource, token, err)
	}
	if !fence.Carries(r.rec.Durable, token) {
		return &fence.NotCarriedError{Resource: resource, Token: token, Latest: r.rec.Token}
	}
	return nil
}
