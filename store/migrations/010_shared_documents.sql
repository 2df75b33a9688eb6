-- Small documents that all hosts share, such as API keys.

CREATE TABLE citu.shared_document (
    name text PRIMARY KEY,
    revision bigint NOT NULL,
    data text NOT NULL
);
