-- One row a resource. Nobody deletes one: token is the counter, and whoever
-- loses it hands out tokens twice. Binary columns, because a collation may take
-- two names for one.
CREATE TABLE IF NOT EXISTS fencepost_lease (
	resource VARBINARY(600) PRIMARY KEY,
	token    BIGINT   NOT NULL, -- of the latest tenure
	holder   BLOB     NOT NULL, -- of the latest tenure: node#seq.nonce
	ttl      BIGINT   NOT NULL, -- ns, the longest granted in the latest tenure
	status   TINYINT  NOT NULL, -- 0 free, 1 running, 2 lapsed and somebody was told so
	expires  BIGINT   NOT NULL, -- ns since 1970 by this server's clock
	boot     VARBINARY(64) NOT NULL -- the clock that expires is an instant of; '' is this server's
) ENGINE=InnoDB;
-- The highest token that each fenced set of data has seen.
CREATE TABLE IF NOT EXISTS fencepost_fence (
	resource VARBINARY(600) PRIMARY KEY,
	highest  BIGINT NOT NULL
) ENGINE=InnoDB;
-- What KV keeps.
CREATE TABLE IF NOT EXISTS fencepost_item (
	resource VARBINARY(600) NOT NULL,
	name     VARBINARY(2000) NOT NULL,
	value    LONGBLOB NOT NULL,
	token    BIGINT   NOT NULL, -- under which it was written
	PRIMARY KEY (resource, name)
) ENGINE=InnoDB;
