-- `citu.write` keeps nothing of a run that lacks the page before the new one.

DROP FUNCTION citu.write;

CREATE FUNCTION citu.write(
    lease_s float8, run_ttl_s float8, conversation_ttl_s float8, max_turns integer,
    run_keys bytea[], run_user_keys bytea[], worker_keys bytea[],
    heads text[], states text[], last_seqs integer[],
    page_run_keys bytea[], first_seqs integer[], last_page_seqs integer[], pages bytea[],
    turn_run_keys bytea[], turn_user_keys bytea[], conversation_keys bytea[],
    conversation_ids text[], titles text[], turns text[]
) RETURNS TABLE (unkept bytea, is_lost boolean) LANGUAGE plpgsql
    SET plan_cache_mode = force_generic_plan
    SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
#variable_conflict use_column
DECLARE
    lost bytea[];
BEGIN
lost := ARRAY(
    SELECT run_key FROM unnest(page_run_keys, first_seqs) AS new (run_key, first_seq)
    WHERE first_seq > 1 AND NOT EXISTS (
        SELECT FROM citu.page
        WHERE page.run_key = new.run_key
            AND page.first_seq < new.first_seq AND page.last_seq >= new.first_seq - 1
    )
);
WITH kept AS (
    INSERT INTO citu.run AS run (
        run_key, user_key, worker_key, head, state, last_seq, lease_until, expires_at
    )
    SELECT new.*, now() + lease_s * interval '1 second', now() + run_ttl_s * interval '1 second'
    FROM unnest(run_keys, run_user_keys, worker_keys, heads, states, last_seqs)
        AS new (run_key, user_key, worker_key, head, state, last_seq)
    WHERE run_key <> ALL (lost)
    ORDER BY run_key
    ON CONFLICT (run_key) DO UPDATE SET
        state = excluded.state, last_seq = greatest(run.last_seq, excluded.last_seq),
        lease_until = excluded.lease_until, expires_at = excluded.expires_at
    WHERE run.state = 'running'
    RETURNING run_key
), paged AS (
    INSERT INTO citu.page AS old (run_key, first_seq, last_seq, data)
    SELECT new.*
    FROM unnest(page_run_keys, first_seqs, last_page_seqs, pages)
        AS new (run_key, first_seq, last_seq, data)
    JOIN kept USING (run_key)
    ON CONFLICT (run_key, first_seq) DO UPDATE SET
        last_seq = excluded.last_seq, data = excluded.data
    WHERE excluded.last_seq > old.last_seq
), said AS (
    SELECT new.*, row_number() OVER (PARTITION BY conversation_key ORDER BY n) AS position,
        count(*) OVER (PARTITION BY conversation_key) AS added
    FROM unnest(turn_run_keys, turn_user_keys, conversation_keys, conversation_ids, titles, turns)
        WITH ORDINALITY
        AS new (run_key, user_key, conversation_key, conversation_id, title, data, n)
    JOIN kept USING (run_key)
), continued AS (
    INSERT INTO citu.conversation AS old (
        conversation_key, user_key, conversation_id, title, created_at, updated_at,
        last_turn, forgotten, expires_at
    )
    SELECT conversation_key, user_key, conversation_id, title, now(), now(),
        added, greatest(0, added - max_turns), now() + conversation_ttl_s * interval '1 second'
    FROM said WHERE position = 1 ORDER BY conversation_key
    ON CONFLICT (conversation_key) DO UPDATE SET
        title = CASE WHEN old.expires_at > now() THEN old.title ELSE excluded.title END,
        created_at = CASE
            WHEN old.expires_at > now() THEN old.created_at ELSE excluded.created_at
        END,
        updated_at = greatest(old.updated_at, excluded.updated_at),
        last_turn = old.last_turn + excluded.last_turn,
        forgotten = greatest(
            CASE WHEN old.expires_at > now() THEN old.forgotten ELSE old.last_turn END,
            old.last_turn + excluded.last_turn - max_turns
        ),
        expires_at = greatest(old.expires_at, excluded.expires_at)
    RETURNING conversation_key, last_turn, forgotten
), gone AS (
    DELETE FROM citu.turn USING continued
    WHERE turn.conversation_key = continued.conversation_key AND number <= forgotten
)
INSERT INTO citu.turn (conversation_key, number, data)
SELECT conversation_key, last_turn - added + position, data
FROM said JOIN continued USING (conversation_key)
WHERE last_turn - added + position > forgotten;
RETURN QUERY
    SELECT run_key, false FROM citu.run
    WHERE run_key = ANY (run_keys) AND run_key <> ALL (lost) AND is_taken
    UNION ALL SELECT key, true FROM unnest(lost) AS key;
END $$;
