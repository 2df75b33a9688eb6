-- How often each caller asked in the present window of time and in the one before.

CREATE TABLE citu.request_count (
    count_key bytea PRIMARY KEY,  -- of the caller and the limit
    window_number bigint NOT NULL,
    hits integer NOT NULL,
    hits_before integer NOT NULL,
    expires_at timestamptz NOT NULL
) WITH (fillfactor = 70);
CREATE INDEX ON citu.request_count (expires_at);
