-- What an event is about, so that a reader of events needs no second query. Older events have none.
ALTER TABLE event ADD COLUMN key TEXT;
ALTER TABLE event ADD COLUMN user TEXT;
ALTER TABLE event ADD COLUMN exec TEXT;
CREATE INDEX event_user ON event (user) WHERE user IS NOT NULL;

-- How the last sandbox of the session ended: a JSON object. boot_id is of the host that runs the
-- present one.
ALTER TABLE session ADD COLUMN last_death TEXT;
ALTER TABLE session ADD COLUMN boot_id TEXT;

-- CPU time by the hour in which it was charged, for the last day. user is '' for none.
CREATE TABLE cpu_hour (
	tenant TEXT NOT NULL,
	user   TEXT NOT NULL,
	hour   INTEGER NOT NULL,
	ms     INTEGER NOT NULL,
	PRIMARY KEY (tenant, user, hour)
) STRICT, WITHOUT ROWID;
