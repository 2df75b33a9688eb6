-- Files that runs made: an archive, and a preview of what its files make.

CREATE TABLE citu.artefact (
    run_key bytea PRIMARY KEY,
    user_key bytea NOT NULL,
    conversation_key bytea NOT NULL,
    data bytea NOT NULL,
    preview bytea NOT NULL,
    kept_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL  -- while its conversation is not known yet, or not any more
);
CREATE INDEX ON citu.artefact (user_key, kept_at);
CREATE INDEX ON citu.artefact (conversation_key);
CREATE INDEX ON citu.artefact (expires_at);
