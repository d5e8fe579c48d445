-- What sessions are under. limits is a JSON object, or NULL for none.
CREATE TABLE policy (
	seq                 INTEGER PRIMARY KEY AUTOINCREMENT,
	tenant              TEXT NOT NULL,
	name                TEXT NOT NULL,
	max_active_per_user INTEGER NOT NULL,
	on_exceed           INTEGER NOT NULL,
	idle_timeout_ms     INTEGER NOT NULL,
	max_lifetime_ms     INTEGER NOT NULL,
	network             TEXT,
	limits              TEXT,
	created_at          INTEGER NOT NULL,
	UNIQUE (tenant, name)
) STRICT;

-- Which limits a command ran into: bits as lodge-init tells them.
ALTER TABLE exec ADD COLUMN hits INTEGER NOT NULL DEFAULT 0;

ALTER TABLE session ADD COLUMN policy TEXT;
CREATE INDEX session_policy ON session (tenant, policy) WHERE policy IS NOT NULL;
CREATE INDEX session_template ON session (template);
