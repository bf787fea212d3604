package leasesql

import (
	"strings"
)

// TokenColumn is the name of the column that [Protect] adds.
const TokenColumn = "fencepost_token"

// staleText is what the triggers of [Protect] raise.
const staleText = "fencepost: stale token"

// Protect is statements, to be run one after the other, that make a table refuse
// writes which a deposed leader sends, where those are single statements and know
// no transaction to call [Fence] in. The table gets a column [TokenColumn], in
// which each write says under which token it is made:
//
//	UPDATE job SET state = 'done', fencepost_token = $1 WHERE id = $2
//
// A trigger compares it with the highest token that the data of resource have
// seen, as a whole and not for this row alone, and raises an error for which
// [IsStale] is true. It does not raise the highest itself: the new leader does,
// with [Fence] or [KV.Fence], before it reads or writes anything, and until it
// has, writes under the old token still land. A write that does not set the
// column is made under the token of the row, and so is refused once a new leader
// has fenced. Deletions are not looked at: mark rows instead.
//
// table is pasted into the statements, and has to be an identifier as SQL has it.
func Protect(d Dialect, table, resource string) []string {
	replace := strings.NewReplacer("TABLE_NAME", table, "TRIGGER_NAME", "fencepost_"+strings.Trim(strings.ReplaceAll(table, ".", "_"), "\"`"),
		"RESOURCE", strings.ReplaceAll(Key(resource), "'", "''"))
	list := make([]string, len(d.guard.protect))
	for i, statement := range d.guard.protect {
		list[i] = replace.Replace(statement)
	}
	return list
}

// IsStale is true for an error that a trigger of [Protect] raised.
func IsStale(err error) bool { return err != nil && strings.Contains(err.Error(), staleText) }

const addColumn = `ALTER TABLE TABLE_NAME ADD COLUMN fencepost_token BIGINT NOT NULL DEFAULT 0`

func sqliteProtect() []string {
	const body = ` BEGIN
	SELECT RAISE(ABORT, '` + staleText + `') FROM fencepost_fence WHERE resource = 'RESOURCE' AND highest > NEW.fencepost_token;
END`
	return []string{
		addColumn,
		`CREATE TRIGGER TRIGGER_NAME_insert BEFORE INSERT ON TABLE_NAME` + body,
		`CREATE TRIGGER TRIGGER_NAME_update BEFORE UPDATE ON TABLE_NAME` + body,
	}
}

// The row of the highest token stays locked until the write is committed, or a
// new leader could fence and read in between.
func postgresProtect() []string {
	return []string{
		addColumn,
		`CREATE FUNCTION TRIGGER_NAME_check() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF (SELECT highest FROM fencepost_fence WHERE resource = 'RESOURCE' FOR SHARE) > NEW.fencepost_token THEN
		RAISE EXCEPTION '` + staleText + `';
	END IF;
	RETURN NEW;
END $$`,
		`CREATE TRIGGER TRIGGER_NAME BEFORE INSERT OR UPDATE ON TABLE_NAME FOR EACH ROW EXECUTE FUNCTION TRIGGER_NAME_check()`,
	}
}

func mariadbProtect() []string {
	const body = ` FOR EACH ROW BEGIN
	IF (SELECT highest FROM fencepost_fence WHERE resource = 'RESOURCE' LOCK IN SHARE MODE) > NEW.fencepost_token THEN
		SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = '` + staleText + `';
	END IF;
END`
	return []string{
		addColumn,
		`CREATE TRIGGER TRIGGER_NAME_insert BEFORE INSERT ON TABLE_NAME` + body,
		`CREATE TRIGGER TRIGGER_NAME_update BEFORE UPDATE ON TABLE_NAME` + body,
	}
}
