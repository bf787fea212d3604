package leasesql_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	_ "modernc.org/sqlite"

	"fencepost/impl/lease"
	leasesql "fencepost/impl/sql"
)

// database is one in memory, for examples. On disk, wait for other writers and
// write each commit through:
//
//	file:jobs.db?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)
func database() (*sql.DB, *leasesql.Store) {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		panic(err)
	}
	db.SetMaxOpenConns(1) // each would have a memory of its own
	store, err := leasesql.New(db, leasesql.SQLite(), leasesql.Options{})
	if err != nil {
		panic(err)
	}
	if err := store.Create(context.Background()); err != nil {
		panic(err)
	}
	return db, store
}

var (
	a = lease.Holder{Node: "a", Seq: 1, Nonce: 0xa1}
	b = lease.Holder{Node: "b", Seq: 1, Nonce: 0xb2}
)

func ExampleNew() {
	ctx := context.Background()
	db, _ := sql.Open("sqlite", ":memory:") // PostgreSQL: "pgx", and leasesql.PostgreSQL()
	defer db.Close()
	db.SetMaxOpenConns(1)
	store, err := leasesql.New(db, leasesql.SQLite(), leasesql.Options{})
	if err != nil {
		panic(err)
	}
	fmt.Println(store.Create(ctx))
	grant, err := store.Acquire(ctx, "worker", a, 10*time.Second)
	fmt.Println("token", grant.Token, err)
	_, err = store.Acquire(ctx, "worker", b, 10*time.Second)
	held, _ := errors.AsType[*lease.HeldError](err)
	fmt.Println("held by", held.Holder.Node)
	fmt.Println(store.Release(ctx, "worker", a, grant.Token))
	grant, err = store.Acquire(ctx, "worker", b, 10*time.Second)
	fmt.Println("token", grant.Token, err)
	// Output:
	// <nil>
	// token 1 <nil>
	// held by a
	// <nil>
	// token 2 <nil>
}

// The work runs on one node at a time, and what it writes is fenced.
func Example_elector() {
	db, store := database()
	defer db.Close()
	progress := store.KV("worker")
	elector, err := lease.NewElector(store, lease.ElectorConfig{
		Resource: "worker", Node: "node-1",
		Timing:  lease.Config{TTL: 10 * time.Second, MaxDriftRate: 0.01, SafetyMargin: 500 * time.Millisecond},
		Fencers: []lease.Fencer{progress},
	})
	if err != nil {
		panic(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	err = elector.Run(ctx, func(ctx context.Context, term lease.Term) error {
		defer stop() // here: one job and out
		return progress.Write(ctx, term.Token, "last job", "nightly")
	})
	job, _, _ := progress.Read(context.Background(), "last job")
	fmt.Println(job, "-", err)
	// Output: nightly - context canceled
}

// Many leases of one holder are renewed in one transaction.
func ExampleStore_Batch() {
	db, store := database()
	defer db.Close()
	var calls []lease.Call
	for _, shard := range []string{"shard-1", "shard-2", "shard-3"} {
		calls = append(calls, lease.Call{Resource: shard, Request: lease.Request{Op: lease.OpAcquire, Holder: a, TTL: time.Minute}})
	}
	for _, answer := range store.Batch(context.Background(), calls) {
		fmt.Println(answer.Grant.Resource, answer.Grant.Token, answer.Err)
	}
	// Output:
	// shard-1 1 <nil>
	// shard-2 1 <nil>
	// shard-3 1 <nil>
}

// An operator takes a lease away. The counter goes on.
func ExampleStore_Delete() {
	ctx := context.Background()
	db, store := database()
	defer db.Close()
	store.Acquire(ctx, "worker", a, time.Hour)
	fmt.Println(store.Delete(ctx, "worker"))
	grant, err := store.Acquire(ctx, "worker", b, time.Hour)
	fmt.Println("token", grant.Token, err)
	// Output:
	// <nil>
	// token 2 <nil>
}

// transfer moves money in a transaction of its own that lands only under token.
func transfer(ctx context.Context, db *sql.DB, token lease.Token) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // does nothing after a commit
	if err := leasesql.Fence(ctx, tx, leasesql.SQLite(), "transfers", token); err != nil {
		return err
	}
	for _, statement := range []string{
		`UPDATE account SET balance = balance - 10 WHERE name = 'alice'`,
		`UPDATE account SET balance = balance + 10 WHERE name = 'bob'`,
	} {
		if _, err := tx.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// Tables of one's own, of which the guard knows nothing.
func ExampleFence() {
	ctx := context.Background()
	db, _ := database()
	defer db.Close()
	db.ExecContext(ctx, `CREATE TABLE account (name TEXT, balance INTEGER)`)
	db.ExecContext(ctx, `INSERT INTO account VALUES ('alice', 100), ('bob', 0)`)

	fmt.Println(transfer(ctx, db, 33))
	fmt.Println(transfer(ctx, db, 34))
	fmt.Println(transfer(ctx, db, 33))
	var bob int
	fmt.Println(db.QueryRowContext(ctx, `SELECT balance FROM account WHERE name = 'bob'`).Scan(&bob), bob)
	// Output:
	// <nil>
	// <nil>
	// token 33 is stale: the storage has seen 34; stop, and acquire the lease anew
	// <nil> 20
}

// The lease's own row says whether the token may write: no barrier is needed.
func ExampleCarried() {
	ctx := context.Background()
	db, store := database()
	defer db.Close()
	write := func(token lease.Token) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		if err := leasesql.Carried(ctx, tx, leasesql.SQLite(), "worker", token); err != nil {
			return err
		}
		// ... statements of one's own
		return tx.Commit()
	}
	grant, _ := store.Acquire(ctx, "worker", a, time.Minute)
	fmt.Println(write(grant.Token))
	store.Release(ctx, "worker", a, grant.Token)
	fmt.Println(write(grant.Token))
	// Output:
	// <nil>
	// lease "worker" does not carry token 1: it was released or deleted; stop, and acquire the lease anew
}

// A table whose writers send single statements.
func ExampleProtect() {
	ctx := context.Background()
	db, store := database()
	defer db.Close()
	db.ExecContext(ctx, `CREATE TABLE job (id INTEGER PRIMARY KEY, state TEXT)`)
	db.ExecContext(ctx, `INSERT INTO job VALUES (1, 'new')`)
	for _, statement := range leasesql.Protect(leasesql.SQLite(), "job", "worker") {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			panic(err)
		}
	}
	fmt.Println(store.KV("worker").Fence(ctx, 34)) // the barrier of the new leader
	const done = `UPDATE job SET state = 'done', fencepost_token = $1 WHERE id = 1`
	_, err := db.ExecContext(ctx, done, 33)
	fmt.Println("stale:", leasesql.IsStale(err))
	_, err = db.ExecContext(ctx, done, 34)
	fmt.Println(err)
	// Output:
	// <nil>
	// stale: true
	// <nil>
}

// For a migration of one's own.
func ExampleSchema() {
	for line := range strings.Lines(leasesql.Schema(leasesql.PostgreSQL())) {
		if strings.HasPrefix(line, "CREATE TABLE") {
			fmt.Print(line)
		}
	}
	// Output:
	// CREATE TABLE IF NOT EXISTS fencepost_lease (
	// CREATE TABLE IF NOT EXISTS fencepost_fence (
	// CREATE TABLE IF NOT EXISTS fencepost_item (
}

// The row of a resource, for whoever looks at the tables.
func ExampleKey() {
	fmt.Println(leasesql.Key("billing/worker"))
	fmt.Println(leasesql.Key("not text: \x00"))
	// Output:
	// billing/worker
	// sha256:ec0be8e7db5c9c7a59daf14b3fe691404f6fa954c3264819ce3461a23ef677a5
}
