-- Sandboxes that ended, so that a caller with the id of one hears why. Like tombstones they are
-- kept for a while, and at most the newest of each session.
CREATE TABLE ended_sandbox (
	id          TEXT NOT NULL PRIMARY KEY,
	tenant      TEXT NOT NULL,
	session     TEXT NOT NULL,
	cause       TEXT,
	cause_text  TEXT,
	cause_actor TEXT,
	cause_at    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX ended_sandbox_session ON ended_sandbox (session, cause_at);
CREATE INDEX ended_sandbox_at ON ended_sandbox (cause_at);
CREATE INDEX session_sandbox ON session (sandbox) WHERE sandbox IS NOT NULL;
