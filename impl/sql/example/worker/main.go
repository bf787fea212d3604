// Command worker is a singleton: of all that run on one database, one leads and
// writes a row each 200 ms, and none of a leader that was deposed lands.
//
// It must not hold a rule: who leads is the elector's part, and which write
// lands the guard's, in the transaction of the row.
//
// Start at lead. In two terminals:
//
//	go run ./impl/sql/example/worker -db /tmp/jobs.db -name a
//	go run ./impl/sql/example/worker -db /tmp/jobs.db -name b
//
// Kill the one that leads with kill -9: the other takes over within the bound
// that it printed. For a write that comes late, start the first one with
// -freeze 20s: after five writes it stands still, as in a long pause, with the
// sixth one under way. On PostgreSQL: -dsn postgres://user@host/database.
package main

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"

	"fencepost/impl/clock"
	"fencepost/impl/lease"
	leasesql "fencepost/impl/sql"
)

const (
	resource    = "worker"
	every       = 200 * time.Millisecond
	freezeAfter = 5 // writes
)

func main() {
	file := flag.String("db", "", "SQLite `file`, made if need be")
	dsn := flag.String("dsn", "", "PostgreSQL instead: postgres://...")
	name := flag.String("name", fmt.Sprint("worker-", os.Getpid()), "who this is")
	ttl := flag.Duration("ttl", 5*time.Second, "of the lease")
	freeze := flag.Duration("freeze", 0, "stand still for as long, once, with a write under way")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	w := &worker{name: *name, freeze: *freeze, clk: clock.Boot()}
	if err := w.run(ctx, *file, *dsn, *ttl); err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "worker:", err)
		os.Exit(1)
	}
}

type worker struct {
	name    string
	db      *sql.DB
	dialect leasesql.Dialect
	clk     clock.Clock
	freeze  time.Duration
	frozen  pause
}

func (w *worker) run(ctx context.Context, file, dsn string, ttl time.Duration) (err error) {
	driver, create := "pgx", `CREATE TABLE IF NOT EXISTS job (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, worker text NOT NULL, token bigint NOT NULL)`
	w.dialect = leasesql.PostgreSQL()
	switch {
	case (file == "") == (dsn == ""):
		return errors.New("one of -db and -dsn must be given")
	case file != "":
		driver, create = "sqlite", `CREATE TABLE IF NOT EXISTS job (id INTEGER PRIMARY KEY, worker TEXT NOT NULL, token INTEGER NOT NULL)`
		w.dialect = leasesql.SQLite()
		dsn = "file:" + file + "?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_txlock=immediate"
	}
	if w.db, err = sql.Open(driver, dsn); err != nil {
		return err
	}
	defer w.db.Close()
	store, err := leasesql.New(w.db, w.dialect, leasesql.Options{})
	if err != nil {
		return err
	}
	if err := store.Create(ctx); err != nil {
		return err
	}
	if _, err := w.db.ExecContext(ctx, create); err != nil {
		return err
	}
	timing := lease.Config{TTL: ttl, MaxDriftRate: 0.01, SafetyMargin: ttl / 10}
	elector, err := lease.NewElector(freezing{store, &w.frozen}, lease.ElectorConfig{
		Resource: resource, Node: w.name, Timing: timing, Clock: w.clk,
		Fencers: []lease.Fencer{store.KV(resource)},
	})
	if err != nil {
		return err
	}
	w.say("waiting to lead; where the leader dies, somebody takes over within %v", timing.Failover().Round(time.Millisecond))
	return elector.Run(ctx, w.lead)
}

// lead writes under the term's token until ctx ends with the term.
func (w *worker) lead(ctx context.Context, term lease.Term) error {
	w.say("leading under token %d, until %v from now unless renewed", term.Token, (term.Deadline() - w.clk.Now()).Round(time.Millisecond))
	tick := w.clk.Timer(w.clk.Now())
	defer tick.Stop()
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			w.say("lost leadership under token %d: %v", term.Token, context.Cause(ctx))
			return nil
		case <-tick.C():
			tick.Reset(w.clk.Now() + every)
		}
		write := ctx
		if n > freezeAfter && w.freeze > 0 {
			// Once decided and sent, no deadline and no context calls a write back.
			write = context.WithoutCancel(ctx)
			w.say("standing still for %v, with a write under token %d under way", w.freeze, term.Token)
			w.frozen.hold(w.clk, w.freeze)
			w.freeze = 0
		}
		id, err := w.write(write, term.Token)
		switch {
		case errors.Is(err, lease.ErrStale):
			w.say("write refused: %v", err)
			return nil
		case err != nil && ctx.Err() == nil:
			w.say("write failed: %v", err)
		case err == nil:
			w.say("wrote job %d under token %d", id, term.Token)
		}
	}
}

// write is what a service does: its own statements, in its own transaction,
// that begins with the guard.
func (w *worker) write(ctx context.Context, token lease.Token) (id int64, err error) {
	tx, err := w.db.BeginTx(ctx, nil)
	if err != nil {
		return 0, err
	}
	defer tx.Rollback() // does nothing after a commit
	if err := leasesql.Fence(ctx, tx, w.dialect, resource, token); err != nil {
		return 0, err
	}
	err = tx.QueryRowContext(ctx, `INSERT INTO job (worker, token) VALUES ($1, $2) RETURNING id`, w.name, int64(token)).Scan(&id)
	if err != nil {
		return 0, err
	}
	return id, tx.Commit()
}

func (w *worker) say(format string, args ...any) {
	fmt.Printf("%s %s: %s\n", time.Now().Format("15:04:05.000"), w.name, fmt.Sprintf(format, args...))
}
