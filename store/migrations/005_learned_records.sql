-- Learned records, their positions in record sets (`shelf`), and the revisions of these sets.

CREATE TABLE citu.learned (
    record_key bytea PRIMARY KEY,
    data text NOT NULL,
    uses bigint NOT NULL DEFAULT 0
);

CREATE TABLE citu.place (
    record_key bytea NOT NULL REFERENCES citu.learned ON DELETE CASCADE,
    shelf bytea NOT NULL,
    position bigint NOT NULL,
    PRIMARY KEY (record_key, shelf)
);
CREATE INDEX ON citu.place (shelf, position, record_key);

CREATE TABLE citu.shelf (
    shelf bytea PRIMARY KEY,
    revision bigint NOT NULL
);

-- Does the work of `RecordRepository.apply`. The arrays are columns: of changes, of positions, of
-- the two kinds of limits. Changes are made one after the other: they are rare, and what one checks
-- must not change before it is done. The plans must use indexes, because new tables have no
-- statistics yet that would choose them. `shelf.revision` is the time, so that it also differs
-- after the tables were dropped and made again.
CREATE FUNCTION citu.learn(
    keys bytea[], befores text[], afters text[],
    placed_keys bytea[], placed_shelves bytea[], placed_positions bigint[],
    most_shelves bytea[], mosts integer[], latest_shelves bytea[], latests integer[]
) RETURNS text LANGUAGE plpgsql
    SET plan_cache_mode = force_generic_plan
    SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
#variable_conflict use_column
DECLARE
    touched bytea[];
BEGIN
PERFORM pg_advisory_xact_lock(1130984567);
IF EXISTS (
    SELECT FROM unnest(keys, befores) AS new (record_key, before)
    LEFT JOIN citu.learned USING (record_key)
    WHERE learned.data IS DISTINCT FROM new.before
) THEN
    RETURN 'changed';
END IF;
IF EXISTS (
    SELECT FROM unnest(most_shelves, mosts) AS room (shelf, most),
        LATERAL (
            SELECT count(*) FROM unnest(placed_shelves) AS put WHERE put = room.shelf
        ) AS new (count),
        LATERAL (
            SELECT count(*) FROM citu.place
            WHERE place.shelf = room.shelf AND record_key = ANY (keys)
        ) AS old (count)
    WHERE new.count > old.count
        AND (SELECT count(*) FROM citu.place WHERE place.shelf = room.shelf)
            + new.count - old.count > most
) THEN
    RETURN 'full';
END IF;
touched := ARRAY(
    SELECT shelf FROM citu.place WHERE record_key = ANY (keys)
    UNION SELECT put FROM unnest(placed_shelves) AS put
);
DELETE FROM citu.place WHERE record_key = ANY (keys);
DELETE FROM citu.learned USING unnest(keys, afters) AS new (record_key, after)
WHERE learned.record_key = new.record_key AND after IS NULL;
INSERT INTO citu.learned (record_key, data)
SELECT record_key, after FROM unnest(keys, afters) AS new (record_key, after)
WHERE after IS NOT NULL
ON CONFLICT (record_key) DO UPDATE SET data = excluded.data;
INSERT INTO citu.place (record_key, shelf, position)
SELECT * FROM unnest(placed_keys, placed_shelves, placed_positions);
DELETE FROM citu.learned WHERE record_key IN (
    SELECT gone.record_key FROM unnest(latest_shelves, latests) AS room (shelf, latest), LATERAL (
        SELECT record_key FROM citu.place WHERE place.shelf = room.shelf
        ORDER BY position DESC, record_key DESC OFFSET latest
    ) AS gone
);
INSERT INTO citu.shelf AS old (shelf, revision)
SELECT shelf, extract(epoch FROM clock_timestamp()) * 1000000
FROM unnest(touched) AS touched (shelf)
ON CONFLICT (shelf) DO UPDATE SET revision = greatest(excluded.revision, old.revision + 1);
RETURN 'done';
END $$;
