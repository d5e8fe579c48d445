-- Which programs the sessions under a policy may start: a JSON object, or NULL for any.
ALTER TABLE policy ADD COLUMN commands TEXT;
