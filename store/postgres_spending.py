"""What models have cost, in PostgreSQL."""

from collections.abc import Sequence
from datetime import date

from postgres.connection import Row
from store.postgres_access import PostgresAccess
from store.record_json import key
from store.spending import KEPT_DAYS, Expense

# Accounts come sorted, so that two writers never wait for each other.
_ADD = f"""
DELETE FROM citu.spending WHERE spent_on < %s::date - {KEPT_DAYS};
INSERT INTO citu.spending AS old (spent_on, account_key, tokens, micros)
SELECT %s::date, account_key, %s, %s
FROM unnest(%s) WITH ORDINALITY AS account (account_key, position) ORDER BY position
ON CONFLICT (spent_on, account_key) DO UPDATE
SET tokens = old.tokens + excluded.tokens, micros = old.micros + excluded.micros
RETURNING encode(account_key, 'hex'), tokens, micros
"""
_SUMS = """
SELECT encode(account_key, 'hex'), tokens, micros FROM citu.spending
WHERE spent_on = %s::date AND account_key = ANY (%s)
"""


class PostgresSpending:
    """Implements `store.spending.Spending` in PostgreSQL."""

    def __init__(self, access: PostgresAccess) -> None:
        self._access = access

    async def add(self, day: date, accounts: Sequence[str], spent: Expense) -> Sequence[Expense]:
        keys = [key(account) for account in accounts]
        today = day.isoformat()
        rows = await self._access.rows(
            _ADD, (today, today, spent.tokens, spent.micros, sorted(keys))
        )
        return _in_order(keys, rows)

    async def sums(self, day: date, accounts: Sequence[str]) -> Sequence[Expense]:
        keys = [key(account) for account in accounts]
        rows = await self._access.rows(_SUMS, (day.isoformat(), keys))
        return _in_order(keys, rows)


def _in_order(keys: Sequence[bytes], rows: Sequence[Row]) -> Sequence[Expense]:
    expense_by_name = {name: Expense(int(tokens), int(micros)) for name, tokens, micros in rows}
    return [expense_by_name.get(one.hex(), Expense()) for one in keys]
