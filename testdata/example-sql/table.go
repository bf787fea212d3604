package sqllease

import (
	"context"
	"database/sql"
	"errors"
)

// Table is a key-value storage that refuses stale tokens. The highest token
// seen is a row of its own, not a column of each value: a leader that has
// written one key bars its predecessor from all the others as well.
type Table struct {
	DB *sql.DB
}

// TableSchema is its tables.
const TableSchema = `
CREATE TABLE IF NOT EXISTS fence (one INTEGER PRIMARY KEY CHECK (one = 1), highest INTEGER NOT NULL);
INSERT OR IGNORE INTO fence VALUES (1, 0);
CREATE TABLE IF NOT EXISTS item (key TEXT PRIMARY KEY, value TEXT NOT NULL, token INTEGER NOT NULL)`

// admit is the rule, as one guarded UPDATE: it moves the highest token up, and
// finds no row where that is above token already. Token 0 is none: it is what a
// client sends that forgot it.
const admit = `UPDATE fence SET highest = ?1 WHERE highest <= ?1 AND ?1 > 0`

// Fence bars lower tokens than token, before anything is written under it.
func (t Table) Fence(ctx context.Context, token uint64) (ok bool, err error) {
	return changed(ctx, t.DB, admit, int64(token))
}

// Write lands value under key, or nothing at all where token is stale. Both
// statements are one transaction, which begins with the UPDATE: the row that it
// locks keeps every other writer out until the value has landed.
func (t Table) Write(ctx context.Context, token uint64, key, value string) (ok bool, err error) {
	tx, err := t.DB.BeginTx(ctx, nil)
	if err != nil {
		return false, err
	}
	defer tx.Rollback() // does nothing after a commit
	res, err := tx.ExecContext(ctx, admit, int64(token))
	if err != nil {
		return false, err
	}
	if n, err := res.RowsAffected(); n == 0 || err != nil {
		return false, err
	}
	_, err = tx.ExecContext(ctx, `INSERT INTO item (key, value, token) VALUES (?, ?, ?)
		ON CONFLICT (key) DO UPDATE SET value = excluded.value, token = excluded.token`, key, value, int64(token))
	if err != nil {
		return false, err
	}
	err = tx.Commit()
	return err == nil, err
}

// Read gives the value under key.
func (t Table) Read(ctx context.Context, key string) (value string, ok bool, err error) {
	err = t.DB.QueryRowContext(ctx, `SELECT value FROM item WHERE key = ?`, key).Scan(&value)
	if errors.Is(err, sql.ErrNoRows) {
		return "", false, nil
	}
	return value, err == nil, err
}
