-- One row a resource. Nobody deletes one: token is the counter, and whoever
-- loses it hands out tokens twice.
CREATE TABLE IF NOT EXISTS fencepost_lease (
	resource TEXT    PRIMARY KEY,
	token    INTEGER NOT NULL, -- of the latest tenure
	holder   TEXT    NOT NULL, -- of the latest tenure: node#seq.nonce
	ttl      INTEGER NOT NULL, -- ns, the longest granted in the latest tenure
	status   INTEGER NOT NULL, -- 0 free, 1 running, 2 lapsed and somebody was told so
	expires  INTEGER NOT NULL, -- ns by the clock of the machine's boot
	boot     TEXT    NOT NULL  -- which boot that is
) WITHOUT ROWID;
-- The highest token that each fenced set of data has seen.
CREATE TABLE IF NOT EXISTS fencepost_fence (
	resource TEXT    PRIMARY KEY,
	highest  INTEGER NOT NULL
) WITHOUT ROWID;
-- What KV keeps.
CREATE TABLE IF NOT EXISTS fencepost_item (
	resource TEXT    NOT NULL,
	name     BLOB    NOT NULL,
	value    BLOB    NOT NULL,
	token    INTEGER NOT NULL, -- under which it was written
	PRIMARY KEY (resource, name)
) WITHOUT ROWID;
