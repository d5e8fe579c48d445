-- What was found inside a sandbox of a template: one row each. data is a JSON object.
CREATE TABLE environment (
	template    TEXT PRIMARY KEY,
	version     TEXT NOT NULL,
	captured_at INTEGER NOT NULL,
	data        TEXT NOT NULL
) STRICT, WITHOUT ROWID;
