package leasesql

import (
	_ "embed"
	"strconv"
	"strings"
)

// Dialect is what one kind of database wants said differently: the texts of the
// statements, and which of its errors mean that nothing was done. It holds no
// rule of a lease, but for renewAll and renewAt. The zero Dialect is none.
type Dialect struct {
	name   string
	schema string
	begin  string // begins a transaction that may lock rows

	// A row is resource, token, holder, ttl, status, expires, boot and the
	// clock's reading, taken once the row is locked. clock is the statement
	// that says it where that of the row cannot; it is empty too where the
	// database has no clock of its own.
	lookOne, lookAll string
	lockOne, lockAll string
	clock            string
	hasClock         bool
	ofOtherBoots     string // where it has none: the rows by another clock than this

	insert    string // token, resources: leases nobody ever held, but for those with a row
	update    string // token, holder, ttl, status, expires, boot, resource
	updateAll string // the same of many; empty: one at a time
	hint      string // as update, and tells who watches; empty: nobody can
	hintAll   string // the same of many
	renewAll  string // renewals that are granted; empty: there is no such statement
	renewAt   string // those within a transaction, by a time that is given; empty likewise

	guard     guardTexts
	transient func(error) bool // nothing was done, and it may be tried again
}

// String names the database.
func (d Dialect) String() string { return d.name }

//go:embed schema/postgres.sql
var postgresSchema string

//go:embed schema/sqlite.sql
var sqliteSchema string

//go:embed schema/mariadb.sql
var mariadbSchema string

// Schema is the tables of this package as statements that do nothing where the
// tables are there: for a migration of one's own. [Store.Create] runs them.
func Schema(d Dialect) string { return d.schema }

// statements are those of a schema, for drivers that take one at a time.
func statements(schema string) (list []string) {
	var text strings.Builder
	for line := range strings.Lines(schema) {
		line, _, _ = strings.Cut(line, "--")
		text.WriteString(strings.TrimRight(line, "\n") + "\n")
	}
	for s := range strings.SplitSeq(text.String(), ";\n") {
		if s = strings.TrimSpace(s); s != "" {
			list = append(list, s)
		}
	}
	return list
}

const columns = `resource, token, holder, ttl, status, expires, boot`

// SQLite is a library in the process: it has no clock, and the store's is that
// of the machine. A write transaction locks the whole database, from its
// beginning: a lock that is taken only at the first write can find that what was
// read is out of date.
func SQLite() Dialect {
	const from = `SELECT ` + columns + `, 0 FROM fencepost_lease WHERE resource `
	const one, all = from + `= ?`, from + `IN (SELECT value FROM json_each(?))`
	return Dialect{
		name:    "SQLite",
		schema:  sqliteSchema,
		begin:   `BEGIN IMMEDIATE`,
		lookOne: one, lookAll: all,
		lockOne: one, lockAll: all,
		ofOtherBoots: `SELECT ` + columns + `, 0 FROM fencepost_lease WHERE boot <> ? AND status <> 0`,
		insert:       `INSERT INTO fencepost_lease (` + columns + `) SELECT value, ?, '', 0, 0, 0, '' FROM json_each(?) WHERE true ON CONFLICT DO NOTHING`,
		update:       update,
		renewAt:      sqliteRenewAt,
		guard:        sqliteGuard(),
		transient:    sqliteTransient,
	}
}

// sqliteRenewAt is [lease.Record.Renew] where that grants, for any number of leases
// and one TTL: ttl, the end of a tenure that begins now, what is asked for by
// resource, boot, now. Token and holder are one text, so that the list has no
// lists in it, which would be read again for each of their parts. A row of another
// boot is for the Record. TestTheStatementRenewsAsTheRecordDoes holds the two together.
const sqliteRenewAt = `
UPDATE fencepost_lease SET ttl = max(ttl, ?), expires = max(expires, ?)
FROM json_each(?) a
WHERE resource = a.key AND token || ' ' || holder = a.value AND status = 1 AND boot = ? AND expires > ?`

const update = `UPDATE fencepost_lease SET token = ?, holder = ?, ttl = ?, status = ?, expires = ?, boot = ? WHERE resource = ?`

// postgresNow is clock_timestamp(), and not now(): that is the start of the
// transaction, and stands still while it waits for a lock. Microseconds are all
// the server has.
const postgresNow = `(extract(epoch FROM clock_timestamp()) * 1000000)::bigint * 1000`

// Channel is the PostgreSQL channel on which changes are told, with the
// resource as payload.
const Channel = "fencepost_lease"

// PostgreSQL keeps time itself. Rows are locked in a part of the statement that
// ends before the clock is read. In one part, the reading would come before the
// wait for the lock, and be taken again only if the row has changed in the
// meantime.
func PostgreSQL() Dialect {
	const from = ` FROM fencepost_lease WHERE resource `
	const one, all = `= ?`, `= ANY (SELECT json_array_elements_text(?::json))`
	lock := func(which string) string {
		return numbered(`WITH l AS MATERIALIZED (SELECT ` + columns + from + which + ` ORDER BY resource FOR NO KEY UPDATE) SELECT l.*, ` + postgresNow + ` FROM l`)
	}
	look := func(which string) string {
		return numbered(`SELECT ` + columns + `, ` + postgresNow + from + which)
	}
	return Dialect{
		name:    "PostgreSQL",
		schema:  postgresSchema,
		begin:   `BEGIN ISOLATION LEVEL READ COMMITTED`,
		lookOne: look(one), lookAll: look(all),
		lockOne: lock(one), lockAll: lock(all),
		hasClock:  true,
		insert:    numbered(`INSERT INTO fencepost_lease (` + columns + `) SELECT r, ?::bigint, '', 0, 0, 0, '' FROM json_array_elements_text(?::json) r ON CONFLICT DO NOTHING`),
		update:    numbered(update),
		updateAll: postgresUpdateAll,
		hint:      numbered(postgresHint(update + ` RETURNING resource`)),
		hintAll:   postgresHint(postgresUpdateAll + ` RETURNING l.resource`),
		renewAll:  postgresRenewAll,
		guard:     postgresGuard(),
		transient: sqlStateTransient,
	}
}

const postgresUpdateAll = `UPDATE fencepost_lease l SET token = v.token, holder = v.holder, ttl = v.ttl, status = v.status, expires = v.expires, boot = v.boot
	FROM json_to_recordset($1::json) AS v (resource text, token bigint, holder text, ttl bigint, status smallint, expires bigint, boot text)
	WHERE l.resource = v.resource`

func postgresHint(update string) string {
	return `WITH w AS (` + update + `) SELECT pg_notify('` + Channel + `', resource) FROM w`
}

// postgresRenewAll is [lease.Record.Renew] where that grants, for any number of
// leases in one round trip: whoever holds a lease asks for little else. What it
// does not grant it leaves as it is, for the Record to judge.
// TestTheStatementRenewsAsTheRecordDoes holds the two together.
const postgresRenewAll = `
WITH l AS MATERIALIZED (
	SELECT f.resource, f.expires, a.ttl AS asked
	FROM json_to_recordset($1::json) AS a (resource text, holder text, token bigint, ttl bigint)
	JOIN fencepost_lease f ON f.resource = a.resource AND f.holder = a.holder AND f.token = a.token
	WHERE f.status = 1
	ORDER BY f.resource FOR NO KEY UPDATE OF f
), n AS MATERIALIZED (
	SELECT l.*, ` + postgresNow + ` AS now FROM l
)
UPDATE fencepost_lease f
SET ttl = greatest(f.ttl, n.asked),
	expires = greatest(f.expires, n.now + least(n.asked, 9223372036854775807 - n.now))
FROM n WHERE f.resource = n.resource AND n.now < n.expires
RETURNING f.resource`

// MariaDB keeps time itself, in InnoDB tables. The clock is asked in a statement
// of its own, once the row is locked: the time of a statement is that of its
// beginning, and SYSDATE, which is not, is in the time zone of the session and
// can be made an alias of NOW.
func MariaDB() Dialect {
	const from = `SELECT ` + columns + `, 0 FROM fencepost_lease WHERE resource `
	const one = from + `= ?`
	const list = `CAST(j.r AS BINARY)`
	const ofList = ` FROM JSON_TABLE(?, '$[*]' COLUMNS (r VARCHAR(600) CHARACTER SET utf8mb4 PATH '$')) AS j`
	const all = from + `IN (SELECT ` + list + ofList + `)`
	const lock = ` FOR UPDATE`
	return Dialect{
		name:    "MariaDB",
		schema:  mariadbSchema,
		begin:   `START TRANSACTION`,
		lookOne: one, lookAll: all,
		lockOne: one + lock, lockAll: all + ` ORDER BY resource` + lock,
		clock:     `SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) * 1000`,
		hasClock:  true,
		insert:    `INSERT IGNORE INTO fencepost_lease (` + columns + `) SELECT ` + list + `, ?, '', 0, 0, 0, ''` + ofList,
		update:    update,
		guard:     mariadbGuard(),
		transient: mariadbTransient,
	}
}

// numbered has $1, $2 and so on for question marks.
func numbered(query string) string {
	var b strings.Builder
	n := 0
	for _, r := range query {
		if r != '?' {
			b.WriteRune(r)
			continue
		}
		n++
		b.WriteString("$" + strconv.Itoa(n))
	}
	return b.String()
}
