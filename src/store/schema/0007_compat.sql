-- How the last sandbox of a session ended: 0 while one runs or there was none, 1 by a call for the
-- session, 2 by anything else. Of older sessions the cause says it.
ALTER TABLE session ADD COLUMN ended INTEGER NOT NULL DEFAULT 0;
UPDATE session SET ended = CASE WHEN cause = 'asked' THEN 1 ELSE 2 END
	WHERE started_at > 0 AND runtime <> 2;
