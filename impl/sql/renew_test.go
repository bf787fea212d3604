package leasesql_test

import (
	"database/sql"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"fencepost/impl/clock"
	"fencepost/impl/lease"
	leasesql "fencepost/impl/sql"
)

// statements is a database whose renewals are a statement.
type statements struct {
	db      *sql.DB
	dialect leasesql.Dialect
	opts    leasesql.Options
	now     string   // as an expression
	boots   []string // that a row may be of
	granted int      // of the renewals in differences
	wrong   map[string][2]string
}

func onSQLite(t *testing.T) statements {
	s := file(t)
	s.dsn = strings.Replace(s.dsn, "synchronous(FULL)", "synchronous(OFF)", 1) // nothing crashes here
	const now = 10 * time.Hour
	return statements{
		db: s.created(t), dialect: s.dialect, opts: leasesql.Options{Clock: clock.NewManual(now), Boot: "this"},
		now: fmt.Sprint(int64(now)), boots: []string{"this", "another"},
		// Running, by the holder, under its token, for one of three TTLs: with time
		// left, or, of another boot, held anew whatever is left.
		granted: 3 + 3*3,
		wrong: map[string][2]string{
			"whatever the status":   {"status = 1", "status >= 0"},
			"after the lapse":       {"expires > ?", "? > 0"},
			"of another boot":       {"boot = ?", "? <> ''"},
			"by whoever":            {"token || ' ' || holder = a.value", "token || ' ' = substr(a.value, 1, instr(a.value, ' '))"},
			"under any token":       {"token || ' ' || holder = a.value", "holder = substr(a.value, instr(a.value, ' ') + 1)"},
			"a shorter TTL":         {"ttl = max(ttl, ?)", "ttl = ?"},
			"to an earlier instant": {"expires = max(expires, ?)", "expires = ?"},
		},
	}
}

func onPostgreSQL(t *testing.T) statements {
	s := postgreSQL(t)
	s.dsn += "&synchronous_commit=off" // nothing crashes here
	return statements{
		db: s.created(t), dialect: s.dialect, now: leasesql.PostgresNow, boots: []string{""},
		granted: 3, // running, with time left, by the holder, under its token, for one of three TTLs
		wrong: map[string][2]string{
			"whatever the status":   {"f.status = 1", "f.status >= 0"},
			"after the lapse":       {"n.now < n.expires", "true"},
			"by whoever":            {"f.holder = a.holder", "true"},
			"under any token":       {"f.token = a.token", "true"},
			"a shorter TTL":         {"greatest(f.ttl, n.asked)", "n.asked"},
			"to an earlier instant": {"greatest(f.expires, ", "("},
		},
	}
}

func (s statements) store(t *testing.T, d leasesql.Dialect) *leasesql.Store {
	store, err := leasesql.New(s.db, d, s.opts)
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// standing is what a renewal leaves in a row; minutes because the clock of a server
// goes on.
type standing struct {
	status, ttl, minutesLeft int64
	boot                     string
}

func (s standing) near(o standing) bool {
	d := s.minutesLeft - o.minutesLeft
	s.minutesLeft = o.minutesLeft
	return s == o && -1 <= d && d <= 1
}

// differences has rows of each kind renewed in each way, by the statement of d and
// by the Record, and says where the answers or the rows are not the same.
func (s statements) differences(t *testing.T, d leasesql.Dialect) (granted, asked int, found []string) {
	withStatement, byRecord := s.store(t, d), s.store(t, leasesql.WithoutStatement(d))
	holders := []lease.Holder{{Node: "a", Seq: 1}, {Node: "b §", Seq: 2, Nonce: 3}}
	for _, boot := range s.boots {
		for status := range 3 {
			for _, left := range []time.Duration{-time.Hour, 0, time.Hour} {
				for _, holder := range holders {
					for _, token := range []lease.Token{0, 6, 7, 8, math.MaxUint64} {
						for _, ttl := range []time.Duration{-1, 0, time.Minute, 3 * time.Hour, math.MaxInt64} {
							name := fmt.Sprintf("boot %q, status %d, %v left, renewed by %v under %d for %v", boot, status, left, holder, token, ttl)
							ask := func(store *leasesql.Store) (row standing, answer error) {
								_, err := s.db.ExecContext(t.Context(), `INSERT INTO fencepost_lease VALUES ('p', 7, $1, 3600000000000, $2, `+s.now+` + $3, $4)
									ON CONFLICT (resource) DO UPDATE SET ttl = excluded.ttl, status = excluded.status, expires = excluded.expires, boot = excluded.boot`,
									holders[1].String(), status, int64(left), boot)
								if err != nil {
									t.Fatal(err)
								}
								_, answer = store.Renew(t.Context(), "p", holder, token, ttl)
								err = s.db.QueryRowContext(t.Context(), `SELECT status, ttl, (expires - `+s.now+`) / 60000000000, boot FROM fencepost_lease`).
									Scan(&row.status, &row.ttl, &row.minutesLeft, &row.boot)
								if err != nil {
									t.Fatal(err)
								}
								return row, answer
							}
							row, err := ask(withStatement)
							want, wantErr := ask(byRecord)
							if lease.Refusal(err) != lease.Refusal(wantErr) || (err == nil) != (wantErr == nil) {
								found = append(found, fmt.Sprintf("%s: %v, and by the record: %v", name, err, wantErr))
							} else if !row.near(want) {
								found = append(found, fmt.Sprintf("%s: leaves %+v, and by the record %+v", name, row, want))
							}
							asked++
							if err == nil {
								granted++
							}
						}
					}
				}
			}
		}
	}
	return granted, asked, found
}

// Rows of each kind and renewals of each kind: answered by the statement and by
// the Record, and what is in the row afterwards. A statement that has one condition
// less than it should is told from the Record.
func TestTheStatementRenewsAsTheRecordDoes(t *testing.T) {
	for name, open := range map[string]func(*testing.T) statements{"SQLite": onSQLite, "PostgreSQL": onPostgreSQL} {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			granted, asked, found := s.differences(t, s.dialect)
			for _, f := range found {
				t.Error(f)
			}
			if granted != s.granted || asked != 450*len(s.boots) {
				t.Errorf("%d granted of %d; want %d of %d", granted, asked, s.granted, 450*len(s.boots))
			}
			for what, edit := range s.wrong {
				wrong := leasesql.WithStatement(s.dialect, func(query string) string {
					if strings.Count(query, edit[0]) != 1 {
						t.Fatalf("%q is not once in %s", edit[0], query)
					}
					return strings.Replace(query, edit[0], edit[1], 1)
				})
				if _, _, found := s.differences(t, wrong); len(found) == 0 {
					t.Errorf("wrong, and not told from the record: renewed %s", what)
				}
			}
		})
	}
}

// One statement for many leases says of each what is true of that one, whatever it
// is called, and whether or not it is the same for all.
func TestABatchOfRenewalsAnswersEachByItself(t *testing.T) {
	names := []string{"p", "p ", "P", `q"`, `\`, "<&>", "a\tb\n", "\u2028", "é", "e\u0301", "🎉", "sha256:x", strings.Repeat("long", 200), "'; --", "not text \xff"}
	for name, s := range map[string]server{"SQLite": file(t), "PostgreSQL": postgreSQL(t)} {
		t.Run(name, func(t *testing.T) {
			store, err := leasesql.New(s.created(t), s.dialect, leasesql.Options{})
			if err != nil {
				t.Fatal(err)
			}
			calls := make([]lease.Call, len(names))
			for i, name := range names {
				calls[i] = lease.Call{Resource: name, Request: lease.Request{Op: lease.OpAcquire, Holder: lease.Holder{Node: name, Seq: 1}, TTL: time.Minute}}
			}
			all := func(refused ...int) {
				t.Helper()
				for i, answer := range store.Batch(t.Context(), calls) {
					wrong := answer.Err != nil || answer.Grant != lease.Grant{Resource: names[i], Holder: calls[i].Holder, Token: 1, TTL: calls[i].TTL}
					for _, r := range refused {
						if i == r {
							wrong = !errors.Is(answer.Err, lease.ErrNotHeld)
						}
					}
					if wrong {
						t.Errorf("%v of %q: %+v", calls[i].Op, names[i], answer)
					}
				}
			}
			all()
			for i := range calls {
				calls[i].Op, calls[i].Token = lease.OpRenew, 1
			}
			all()
			if err := store.Release(t.Context(), names[3], calls[3].Holder, 1); err != nil {
				t.Fatal(err)
			}
			all(3)
			calls[5].TTL = time.Hour // and the others a minute
			calls[7].Token = 2
			all(3, 7)
			if o, err := store.Get(t.Context(), names[5]); o.Remaining < 50*time.Minute || err != nil {
				t.Errorf("renewed for an hour: %+v, %v", o, err)
			}
			if o, err := store.Get(t.Context(), names[6]); o.Remaining > time.Minute || err != nil {
				t.Errorf("renewed for a minute: %+v, %v", o, err)
			}
		})
	}
}

// waits tells when somebody sets a timer.
type waits struct {
	*clock.Manual
	set chan struct{}
}

func (w waits) Timer(at time.Duration) clock.Timer {
	t := w.Manual.Timer(at)
	select {
	case w.set <- struct{}{}:
	default:
	}
	return t
}

// A renewal comes in time, waits until the tenure has run out for somebody else's
// transaction, and is judged only then.
func TestTheClockIsReadAfterTheLockOnSQLite(t *testing.T) {
	s := file(t)
	s.dsn = strings.Replace(s.dsn, "busy_timeout(5000)", "busy_timeout(0)", 1)
	db := s.created(t)
	for name, c := range map[string]struct {
		dialect leasesql.Dialect
		early   bool // the clock is read before the lock is taken
		granted bool
	}{
		"the store":                        {dialect: s.dialect},
		"the store, without its statement": {dialect: leasesql.WithoutStatement(s.dialect)},
		"wrong: the clock before the lock": {dialect: s.dialect, early: true, granted: true},
	} {
		t.Run(name, func(t *testing.T) {
			clk := waits{clock.NewManual(time.Hour), make(chan struct{}, 1)}
			opts := leasesql.Options{Clock: clk, Boot: "this"}
			if c.early {
				opts.Clock = stopped{clk}
			}
			store, err := leasesql.New(s.open(t), c.dialect, opts)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := store.Acquire(t.Context(), name, a, time.Second); err != nil {
				t.Fatal(err)
			}
			other, err := db.Conn(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer other.Close()
			if _, err := other.ExecContext(t.Context(), `BEGIN IMMEDIATE`); err != nil {
				t.Fatal(err)
			}
			answered := make(chan error, 1)
			go func() { _, err := store.Renew(t.Context(), name, a, 1, time.Second); answered <- err }()
			<-clk.set // the database is busy
			if _, err := other.ExecContext(t.Context(), `ROLLBACK`); err != nil {
				t.Fatal(err)
			}
			clk.Advance(time.Second)
			if err := <-answered; (err == nil) != c.granted || err != nil && !errors.Is(err, lease.ErrNotHeld) {
				t.Errorf("answered %v after the lapse; granted should be %v", err, c.granted)
			}
		})
	}
}

// stopped reads the same for ever: what it says was true before any lock.
type stopped struct{ waits }

func (stopped) Now() time.Duration { return time.Hour }
