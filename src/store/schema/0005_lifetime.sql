-- The first expiry of a sandbox (lifetime_ms) and the most it can be extended to (max_lifetime_ms)
-- are two times. Existing sessions keep the one they had for both.
ALTER TABLE session ADD COLUMN lifetime_ms INTEGER NOT NULL DEFAULT 0;
UPDATE session SET lifetime_ms = max_lifetime_ms;

-- How long a hibernated session is kept, 0 for ever, and since when it is hibernated (state 4).
ALTER TABLE session ADD COLUMN delete_after_ms INTEGER NOT NULL DEFAULT 0;
ALTER TABLE session ADD COLUMN hibernated_at INTEGER NOT NULL DEFAULT 0;
UPDATE session SET hibernated_at = coalesce(nullif(cause_at, 0), created_at) WHERE state = 4;
