-- A worker that was slow to notice that it lost its run must not write checkpoints of it.

-- Refuses, with SQLSTATE CT001, unless the worker may write checkpoints of the run in this
-- transaction: it holds the running run, or the store does not know the run. Whoever deletes them
-- may also find that the run has ended. The run's row is locked, so that no other worker gets the
-- run before the transaction ends.
CREATE FUNCTION citu.require_lease(run_key bytea, worker_key bytea, is_deletion boolean)
RETURNS void LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    is_held boolean;
    is_over boolean;
BEGIN
SELECT state = 'running' AND run.worker_key = require_lease.worker_key,
    state NOT IN ('running', 'waiting')
INTO is_held, is_over
FROM citu.run WHERE run.run_key = require_lease.run_key FOR SHARE;
IF FOUND AND NOT is_held AND NOT (is_deletion AND is_over) THEN
    RAISE EXCEPTION 'the run is another worker''s' USING ERRCODE = 'CT001';
END IF;
END $$;
