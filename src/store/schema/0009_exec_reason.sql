-- Why a command ended that did not end by itself, and whether its caller got an error instead of a
-- result, which a repeated request with its idempotency key gets too.
ALTER TABLE exec ADD COLUMN reason TEXT;
ALTER TABLE exec ADD COLUMN start_failed INTEGER NOT NULL DEFAULT 0;
