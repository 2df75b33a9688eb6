"""What models have cost, in Redis."""

from collections.abc import Sequence
from datetime import date

from store import redis_keys
from store.redis_access import RedisAccess, Script
from store.spending import KEPT_DAYS, Expense

_KEPT_S = KEPT_DAYS * 86_400
_ADD = Script("""
local tokens, micros, ttl = unpack(ARGV)
local sums = {}
for _, key in ipairs(KEYS) do
    sums[#sums + 1] = redis.call('HINCRBY', key, 'tokens', tokens)
    sums[#sums + 1] = redis.call('HINCRBY', key, 'micros', micros)
    redis.call('EXPIRE', key, ttl)
end
return sums
""")
_SUMS = Script("""
local sums = {}
for _, key in ipairs(KEYS) do
    sums[#sums + 1] = redis.call('HGET', key, 'tokens') or 0
    sums[#sums + 1] = redis.call('HGET', key, 'micros') or 0
end
return sums
""")


class RedisSpending:
    """Implements `store.spending.Spending` in Redis."""

    def __init__(self, access: RedisAccess) -> None:
        self._access = access

    async def add(self, day: date, accounts: Sequence[str], spent: Expense) -> Sequence[Expense]:
        command = _ADD.command(_keys(day, accounts), spent.tokens, spent.micros, _KEPT_S)
        return _pairs(await self._access.reply(command))

    async def sums(self, day: date, accounts: Sequence[str]) -> Sequence[Expense]:
        return _pairs(await self._access.reply(_SUMS.command(_keys(day, accounts))))


def _keys(day: date, accounts: Sequence[str]) -> list[str]:
    return [redis_keys.spending(day.isoformat(), account) for account in accounts]


def _pairs(sums: Sequence[int | bytes]) -> Sequence[Expense]:
    """Return the sums of tokens and micros, which come one after the other."""
    numbers = [int(one) for one in sums]
    return [Expense(*pair) for pair in zip(numbers[::2], numbers[1::2], strict=True)]
