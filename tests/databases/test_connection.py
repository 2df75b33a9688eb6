"""What every connection to the datasource is given, whatever the role's defaults are."""

import asyncio

from postgres.connecting import PostgresLimits, connect

_SHOW = """
SELECT name, setting FROM pg_settings WHERE name IN (
    'default_transaction_read_only', 'work_mem', 'statement_timeout', 'lock_timeout',
    'idle_in_transaction_session_timeout', 'client_connection_check_interval')
"""


def test_every_connection_has_its_limits(demo_url: str) -> None:
    async def settings() -> dict[str | None, str | None]:
        connection = await connect(lambda: demo_url, PostgresLimits(statement_s=7.0))
        try:
            rows = (await connection.query(_SHOW)).rows
            return {row[0]: row[1] for row in rows}
        finally:
            connection.close()

    assert asyncio.run(settings()) == {
        "default_transaction_read_only": "on",
        "work_mem": "16384",
        "statement_timeout": "7000",
        "lock_timeout": "5000",
        "idle_in_transaction_session_timeout": "17000",
        "client_connection_check_interval": "1000",
    }
