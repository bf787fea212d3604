package leasesql_test

import (
	"strings"
	"testing"

	leasesql "fencepost/impl/sql"
)

// A table above which nobody knows of transactions: its writes are refused from
// the barrier of the next leader on, in rows that the next one has not written
// too.
func protectedTable(t *testing.T, s server) {
	db := s.created(t)
	store, err := leasesql.New(db, s.dialect, leasesql.Options{})
	if err != nil {
		t.Fatal(err)
	}
	exec := func(query string) error {
		_, err := db.ExecContext(t.Context(), query)
		return err
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	stale := func(err error) {
		t.Helper()
		if !leasesql.IsStale(err) {
			t.Errorf("answered %v, want a stale token", err)
		}
	}
	must(exec(`CREATE TABLE job (id BIGINT PRIMARY KEY, state VARCHAR(20) NOT NULL)`))
	must(exec(`INSERT INTO job VALUES (1, 'new'), (2, 'new')`))
	for _, statement := range leasesql.Protect(s.dialect, "job", "it's a worker") {
		must(exec(statement))
	}
	must(exec(`UPDATE job SET state = 'by nobody' WHERE id = 1`)) // nobody has fenced yet
	kv := store.KV("it's a worker")
	must(kv.Fence(t.Context(), 33))
	must(exec(`UPDATE job SET state = 'by a', fencepost_token = 33 WHERE id = 1`))
	stale(exec(`UPDATE job SET state = 'by nobody' WHERE id = 2`))
	must(kv.Fence(t.Context(), 34))
	stale(exec(`UPDATE job SET state = 'late', fencepost_token = 33 WHERE id = 1`))
	stale(exec(`UPDATE job SET state = 'late' WHERE id = 1`))
	stale(exec(`UPDATE job SET state = 'late', fencepost_token = 33 WHERE id = 2`))
	stale(exec(`INSERT INTO job (id, state, fencepost_token) VALUES (3, 'late', 33)`))
	must(exec(`UPDATE job SET state = 'by b', fencepost_token = 34 WHERE id = 2`))
	must(exec(`INSERT INTO job (id, state, fencepost_token) VALUES (3, 'by b', 34)`))
	rows, err := db.QueryContext(t.Context(), `SELECT state FROM job ORDER BY id`)
	must(err)
	defer rows.Close()
	var states []string
	for rows.Next() {
		var state string
		must(rows.Scan(&state))
		states = append(states, state)
	}
	if got, want := strings.Join(states, ", "), "by a, by b, by b"; got != want || rows.Err() != nil {
		t.Errorf("the table has %q, want %q (%v)", got, want, rows.Err())
	}
}
