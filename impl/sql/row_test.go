package leasesql

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"fencepost/impl/lease"
)

func TestKeysAreTextAndTellNamesApart(t *testing.T) {
	long := strings.Repeat("x", longest)
	names := []string{"", "p", "P", "p ", "p\x00", "p\x00q", "\xff", "\xfe", long, long + "x", long + "y"}
	names = append(names, Key("\xff"), Key(Key("\xff"))) // a name that looks like a hash
	seen := map[string]string{}
	for _, name := range names {
		key := Key(name)
		if other, ok := seen[key]; ok {
			t.Errorf("%q and %q have one key, %q", name, other, key)
		}
		seen[key] = name
		if !isText(key) || len(key) > longest {
			t.Errorf("the key of %.20q is %q", name, key)
		}
	}
	if Key("billing/worker") != "billing/worker" {
		t.Error("an ordinary name is not its own key")
	}
}

func TestHoldersAreTextAndAreReadBack(t *testing.T) {
	for _, node := range []string{"a", "ä", `"quoted"`, "a\x00b", "\xff", "a b", "it's"} {
		h := lease.Holder{Node: node, Seq: 3, Nonce: 1<<64 - 1}
		text := formatHolder(h)
		back, err := parseHolder(text)
		if back != h || err != nil || !isText(text) {
			t.Errorf("%#v is %q, and that is %#v, %v", h, text, back, err)
		}
	}
	for _, text := range []string{"by hand", `"a#1.0`, "#1.0"} {
		if _, err := parseHolder(text); !errors.Is(err, lease.ErrHolder) {
			t.Errorf("%q is read: %v", text, err)
		}
	}
}

type withState string

func (e withState) Error() string    { return string(e) }
func (e withState) SQLState() string { return string(e) }

type withCode int

func (e withCode) Error() string { return fmt.Sprint(int(e)) }
func (e withCode) Code() int     { return int(e) }

// Only what was certainly not done may be tried again.
func TestWhichErrorsMeanThatNothingWasDone(t *testing.T) {
	for _, c := range []struct {
		d    Dialect
		err  error
		want bool
	}{
		{PostgreSQL(), withState("40001"), true},  // could not serialize
		{PostgreSQL(), withState("40P01"), true},  // deadlock
		{PostgreSQL(), withState("40003"), false}, // completion unknown
		{PostgreSQL(), withState("57014"), false}, // canceled
		{PostgreSQL(), errors.New("40001"), false},
		{SQLite(), withCode(5), true},           // SQLITE_BUSY
		{SQLite(), withCode(5 | 2<<8), true},    // SQLITE_BUSY_SNAPSHOT
		{SQLite(), withCode(10 | 16<<8), false}, // SQLITE_IOERR
		{SQLite(), errors.New("database is locked"), true},
		{MariaDB(), errors.New("Error 1213 (40001): Deadlock found"), true},
		{MariaDB(), errors.New("Error 1205 (HY000): Lock wait timeout exceeded"), true},
		{MariaDB(), errors.New("Error 12130"), false},
	} {
		if got := c.d.transient(fmt.Errorf("wrapped: %w", c.err)); got != c.want {
			t.Errorf("%v: %v: %v, want %v", c.d, c.err, got, c.want)
		}
		if c.d.transient(nil) {
			t.Errorf("%v: no error is tried again", c.d)
		}
	}
}
