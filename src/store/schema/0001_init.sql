-- Times are milliseconds since 1970 and 0 for none. A text that is empty in a record is NULL here.
-- Numbers of states, modes and roles are those of the engine's headers.

CREATE TABLE layer (
	id         TEXT NOT NULL PRIMARY KEY,
	parent     TEXT REFERENCES layer (id),
	template   TEXT NOT NULL,
	bytes      INTEGER NOT NULL,
	created_at INTEGER NOT NULL,
	durable    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX layer_parent ON layer (parent);
CREATE INDEX layer_created ON layer (created_at);
CREATE INDEX layer_unsettled ON layer (id) WHERE durable = 0;

-- Who needs a layer besides the sessions, snapshots and layers that name it.
CREATE TABLE layer_hold (
	layer  TEXT NOT NULL REFERENCES layer (id),
	holder TEXT NOT NULL,
	PRIMARY KEY (layer, holder)
) STRICT, WITHOUT ROWID;

CREATE TABLE session (
	seq              INTEGER PRIMARY KEY AUTOINCREMENT,
	id               TEXT NOT NULL UNIQUE,
	version          INTEGER NOT NULL,
	tenant           TEXT NOT NULL,
	user             TEXT,
	template         TEXT,
	sandbox          TEXT,
	layer            TEXT REFERENCES layer (id),
	snapshot         TEXT,
	project          TEXT,
	fragment         TEXT,
	state            INTEGER NOT NULL,
	runtime          INTEGER NOT NULL,
	on_idle          INTEGER NOT NULL,
	on_expire        INTEGER NOT NULL,
	paused           INTEGER NOT NULL,
	generation       INTEGER NOT NULL,
	incarnation      INTEGER NOT NULL,
	created_at       INTEGER NOT NULL,
	started_at       INTEGER NOT NULL,
	last_activity_at INTEGER NOT NULL,
	idle_timeout_ms  INTEGER NOT NULL,
	max_lifetime_ms  INTEGER NOT NULL,
	hibernate_at     INTEGER NOT NULL,
	expires_at       INTEGER NOT NULL,
	due_at           INTEGER NOT NULL,
	memory_bytes     INTEGER NOT NULL,
	disk_bytes       INTEGER NOT NULL,
	cause            TEXT,
	cause_text       TEXT,
	cause_actor      TEXT,
	cause_at         INTEGER NOT NULL,
	spec             TEXT,
	metadata         TEXT,
	UNIQUE (tenant, id)
) STRICT;
CREATE INDEX session_user ON session (tenant, user);
CREATE INDEX session_layer ON session (layer);
CREATE INDEX session_due ON session (due_at) WHERE due_at > 0;

CREATE TABLE binding (
	tenant  TEXT NOT NULL,
	kind    TEXT NOT NULL,
	key     TEXT NOT NULL,
	session TEXT NOT NULL,
	PRIMARY KEY (tenant, kind, key),
	FOREIGN KEY (tenant, session) REFERENCES session (tenant, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX binding_session ON binding (session);

CREATE TABLE tombstone (
	session     TEXT NOT NULL PRIMARY KEY,
	tenant      TEXT NOT NULL,
	user        TEXT,
	created_at  INTEGER NOT NULL,
	cause       TEXT,
	cause_text  TEXT,
	cause_actor TEXT,
	cause_at    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX tombstone_at ON tombstone (cause_at);

-- The keys that led to it; of several sessions with one key the last.
CREATE TABLE tombstone_key (
	tenant  TEXT NOT NULL,
	kind    TEXT NOT NULL,
	key     TEXT NOT NULL,
	session TEXT NOT NULL REFERENCES tombstone (session) ON DELETE CASCADE,
	PRIMARY KEY (tenant, kind, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX tombstone_key_session ON tombstone_key (session);

-- Outlives its session.
CREATE TABLE snapshot (
	seq        INTEGER PRIMARY KEY AUTOINCREMENT,
	id         TEXT NOT NULL UNIQUE,
	tenant     TEXT NOT NULL,
	session    TEXT,
	name       TEXT,
	layer      TEXT NOT NULL REFERENCES layer (id),
	generation INTEGER NOT NULL,
	bytes      INTEGER NOT NULL,
	created_at INTEGER NOT NULL,
	UNIQUE (session, name)
) STRICT;
CREATE INDEX snapshot_tenant ON snapshot (tenant, session);
CREATE INDEX snapshot_layer ON snapshot (layer);

-- Outlives its session too, until retention ends.
CREATE TABLE exec (
	seq           INTEGER PRIMARY KEY AUTOINCREMENT,
	id            TEXT NOT NULL UNIQUE,
	tenant        TEXT NOT NULL,
	session       TEXT NOT NULL,
	incarnation   INTEGER NOT NULL,
	number        INTEGER NOT NULL,
	state         INTEGER NOT NULL,
	background    INTEGER NOT NULL,
	timed_out     INTEGER NOT NULL,
	oom_killed    INTEGER NOT NULL,
	truncated     INTEGER NOT NULL,
	exit_code     INTEGER NOT NULL,
	signal        INTEGER NOT NULL,
	started_at    INTEGER NOT NULL,
	ended_at      INTEGER NOT NULL,
	stdout_bytes  INTEGER NOT NULL,
	stderr_bytes  INTEGER NOT NULL,
	cpu_ms        INTEGER NOT NULL,
	max_rss_bytes INTEGER NOT NULL,
	command       TEXT
) STRICT;
CREATE INDEX exec_session ON exec (session);
CREATE INDEX exec_ended ON exec (ended_at) WHERE state > 0;

CREATE TABLE once (
	tenant     TEXT NOT NULL,
	scope      TEXT NOT NULL,
	key        TEXT NOT NULL,
	target     TEXT NOT NULL,
	created_at INTEGER NOT NULL,
	PRIMARY KEY (tenant, scope, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX once_created ON once (created_at);

-- AUTOINCREMENT: an id is never given again, also when the newest events were pruned.
CREATE TABLE event (
	id          INTEGER PRIMARY KEY AUTOINCREMENT,
	tenant      TEXT,
	session     TEXT,
	kind        TEXT NOT NULL,
	version     INTEGER NOT NULL,
	cause       TEXT,
	cause_text  TEXT,
	cause_actor TEXT,
	cause_at    INTEGER NOT NULL,
	data        TEXT
) STRICT;
CREATE INDEX event_session ON event (session);
CREATE INDEX event_at ON event (cause_at);

CREATE TABLE project (
	seq        INTEGER PRIMARY KEY AUTOINCREMENT,
	tenant     TEXT NOT NULL,
	id         TEXT NOT NULL,
	name       TEXT,
	owner      TEXT NOT NULL,
	team       TEXT,
	created_at INTEGER NOT NULL,
	UNIQUE (tenant, id)
) STRICT;

CREATE TABLE fragment (
	seq        INTEGER PRIMARY KEY AUTOINCREMENT,
	tenant     TEXT NOT NULL,
	id         TEXT NOT NULL,
	project    TEXT NOT NULL,
	title      TEXT,
	snapshot   TEXT REFERENCES snapshot (id),
	files      INTEGER NOT NULL,
	bytes      INTEGER NOT NULL,
	created_at INTEGER NOT NULL,
	UNIQUE (tenant, id),
	FOREIGN KEY (tenant, project) REFERENCES project (tenant, id) ON DELETE CASCADE
) STRICT;
CREATE INDEX fragment_project ON fragment (tenant, project);
CREATE INDEX fragment_snapshot ON fragment (snapshot);

CREATE TABLE fragment_file (
	fragment INTEGER NOT NULL REFERENCES fragment (seq) ON DELETE CASCADE,
	path     TEXT NOT NULL,
	data     BLOB NOT NULL,
	UNIQUE (fragment, path)
) STRICT;

CREATE TABLE user (
	seq        INTEGER PRIMARY KEY AUTOINCREMENT,
	tenant     TEXT NOT NULL,
	id         TEXT NOT NULL,
	name       TEXT,
	email      TEXT,
	project    TEXT,
	fragment   TEXT,
	created_at INTEGER NOT NULL,
	UNIQUE (tenant, id)
) STRICT;

CREATE TABLE member (
	tenant TEXT NOT NULL,
	team   TEXT NOT NULL,
	user   TEXT NOT NULL,
	role   INTEGER NOT NULL,
	PRIMARY KEY (tenant, team, user)
) STRICT, WITHOUT ROWID;

CREATE TABLE key (
	seq        INTEGER PRIMARY KEY AUTOINCREMENT,
	id         TEXT NOT NULL UNIQUE,
	hash       BLOB NOT NULL UNIQUE,
	tenant     TEXT NOT NULL,
	user       TEXT,
	name       TEXT,
	scopes     TEXT,
	created_at INTEGER NOT NULL,
	expires_at INTEGER NOT NULL
) STRICT;

-- user is '' for the tenant itself, here and below.
CREATE TABLE quota (
	tenant       TEXT NOT NULL,
	user         TEXT NOT NULL,
	sandboxes    INTEGER NOT NULL,
	memory_bytes INTEGER NOT NULL,
	disk_bytes   INTEGER NOT NULL,
	cpu_ms       INTEGER NOT NULL,
	PRIMARY KEY (tenant, user)
) STRICT, WITHOUT ROWID;

CREATE TABLE cpu (
	tenant TEXT NOT NULL,
	user   TEXT NOT NULL,
	ms     INTEGER NOT NULL,
	PRIMARY KEY (tenant, user)
) STRICT, WITHOUT ROWID;
