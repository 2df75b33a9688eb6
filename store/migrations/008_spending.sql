-- What models have cost, by day and account.

CREATE TABLE citu.spending (
    spent_on date,
    account_key bytea,
    tokens bigint NOT NULL,
    micros bigint NOT NULL,  -- millionths of the operator's currency
    PRIMARY KEY (spent_on, account_key)
);
