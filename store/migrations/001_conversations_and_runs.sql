-- Conversations with their turns, runs with their frames, and Idempotency-Keys.
--
-- Keys are digests (`record_json.key`). `conversation_id`, `title`, `head`, `run_id`, `fingerprint`
-- and turns are JSON, which holds any text. A conversation's turns are numbered; those up to
-- `forgotten` count as gone even while their rows exist. So do rows past `expires_at`, until they
-- are removed.

CREATE TABLE citu.conversation (
    conversation_key bytea PRIMARY KEY,  -- of user and conversation
    user_key bytea NOT NULL,
    conversation_id text NOT NULL,
    title text NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    last_turn bigint NOT NULL,
    forgotten bigint NOT NULL,
    expires_at timestamptz NOT NULL
);
CREATE INDEX ON citu.conversation (user_key, updated_at, conversation_key);
CREATE INDEX ON citu.conversation (expires_at);

CREATE TABLE citu.turn (
    conversation_key bytea NOT NULL REFERENCES citu.conversation ON DELETE CASCADE,
    number bigint NOT NULL,
    data text NOT NULL,
    PRIMARY KEY (conversation_key, number)
);

-- No index holds what every write changes, so that rows are updated in place.
CREATE TABLE citu.run (
    run_key bytea PRIMARY KEY,
    user_key bytea NOT NULL,
    worker_key bytea NOT NULL,
    head text NOT NULL,
    state text NOT NULL,
    last_seq integer NOT NULL,
    is_cancelling boolean NOT NULL DEFAULT false,
    is_taken boolean NOT NULL DEFAULT false,  -- ended by another than its worker
    lease_until timestamptz NOT NULL,
    expires_at timestamptz NOT NULL
) WITH (fillfactor = 70);
CREATE INDEX ON citu.run (run_key) WHERE state = 'running';

CREATE TABLE citu.frame (
    run_key bytea NOT NULL,
    seq integer NOT NULL,
    data bytea NOT NULL,
    PRIMARY KEY (run_key, seq)
);

CREATE TABLE citu.claim (
    claim_key bytea PRIMARY KEY,  -- of user and Idempotency-Key
    run_id text NOT NULL,
    fingerprint text NOT NULL,
    expires_at timestamptz NOT NULL
);
CREATE INDEX ON citu.claim (expires_at);
