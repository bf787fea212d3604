package postgres_test

import (
	"context"
	"database/sql"
	"fmt"

	leasesql "fencepost/impl/sql"
	"fencepost/impl/sql/postgres"
)

// A candidate that learns of a release at once.
func ExampleNew() {
	_ = func(ctx context.Context, dsn string) error {
		db, err := sql.Open("pgx", dsn)
		if err != nil {
			return err
		}
		defer db.Close()
		store, err := postgres.New(db, leasesql.Options{})
		if err != nil {
			return err
		}
		defer store.Close() // ends the watches
		if err := store.Create(ctx); err != nil {
			return err
		}
		hints, err := store.Watch(ctx, "worker")
		if err != nil {
			return err
		}
		for range hints {
			fmt.Println(store.Get(ctx, "worker"))
		}
		return nil
	}
	// Output:
}
