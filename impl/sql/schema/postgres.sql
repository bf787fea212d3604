-- One row a resource. Nobody deletes one: token is the counter, and whoever
-- loses it hands out tokens twice.
CREATE TABLE IF NOT EXISTS fencepost_lease (
	resource text     COLLATE "C" PRIMARY KEY,
	token    bigint   NOT NULL, -- of the latest tenure
	holder   text     NOT NULL, -- of the latest tenure: node#seq.nonce
	ttl      bigint   NOT NULL, -- ns, the longest granted in the latest tenure
	status   smallint NOT NULL, -- 0 free, 1 running, 2 lapsed and somebody was told so
	expires  bigint   NOT NULL, -- ns since 1970 by this server's clock
	boot     text     NOT NULL  -- the clock that expires is an instant of; '' is this server's
);
-- The highest token that each fenced set of data has seen.
CREATE TABLE IF NOT EXISTS fencepost_fence (
	resource text   COLLATE "C" PRIMARY KEY,
	highest  bigint NOT NULL
);
-- What KV keeps.
CREATE TABLE IF NOT EXISTS fencepost_item (
	resource text  COLLATE "C" NOT NULL,
	name     bytea NOT NULL,
	value    bytea NOT NULL,
	token    bigint NOT NULL, -- under which it was written
	PRIMARY KEY (resource, name)
);
