// Package sqllease is a lease store on a SQL table, told as the story of how it
// got right: three wrong ones in the order in which people write them ([Step1],
// [Step2], [Step3]), each with what fencepost says of it, and then [Leases]. A
// fenced storage, [Table], is beside it.
//
// It must not know a clock of its own. In production each statement says what
// the time is by the *database's* clock, such as
//
//	unixepoch('subsec') in SQLite, clock_timestamp() in PostgreSQL
//
// in the very statement that decides, so that there is one clock for all
// callers and no instant travels between machines. A test has to move time, so
// here now is a function whose answer is a parameter of the statement: the one
// line to change.
//
// Start at [Step1], and read on in the order of the files.
package sqllease

import (
	"context"
	"database/sql"
	"math"
	"time"
)

// later is ttl after now in nanoseconds, or the last instant that a column
// holds: in SQL a sum that overflows is an error, or a floating point number.
func later(now, ttl time.Duration) int64 {
	if ttl > math.MaxInt64-now {
		return math.MaxInt64
	}
	return int64(now + ttl)
}

// changed says whether a statement found a row that its WHERE let through: that
// is how a guarded UPDATE answers.
func changed(ctx context.Context, db *sql.DB, query string, args ...any) (bool, error) {
	res, err := db.ExecContext(ctx, query, args...)
	if err != nil {
		return false, err
	}
	n, err := res.RowsAffected()
	return n > 0, err
}
