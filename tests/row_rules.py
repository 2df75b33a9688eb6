"""Statements under row rules, and what PostgreSQL's own policies make of them: the standard that rewriting is held to."""

import asyncio
from collections import Counter
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import psycopg2
from psycopg2.extensions import connection as Connection  # noqa: N812 - psycopg2 names its class in lower case

from common.actor import Actor
from common.errors import StatementRejected
from common.postgres.connection import Limits, connect
from databases.catalog import Knowledge, read_knowledge
from databases.row_rules import ActorRows, RowRules

FOLDER = Path(__file__).parent / "fixtures" / "row_rules"
ANN = Actor("ann", ("clerks", "seers", "a", "x"))
CANARIES = ("SECRET", "7700")
_STANDARD = "citu_row_standard"

# The predicates of the rules for Ann, as policies say them.
_MEMBER = "EXISTS (SELECT FROM membership m WHERE m.tenant = {}.tenant AND m.user_id = 'ann')"
_OWN = "tenant IN ('a', 'x')"
_POLICIES = {
    "public.orders": _MEMBER.format("orders"),
    "public.line": f"order_id IN (SELECT o.id FROM orders o WHERE o.{_OWN})",
    "public.customer": f"tenant = 'a' OR {_OWN}",
    "archive.orders": _OWN,
    **dict.fromkeys(("public.event", "public.event_2023", "public.event_2024", "public.animal", "public.dog"), _OWN),
    'public."Mixed Case"': _OWN,
}


def statements(name: str) -> list[str]:
    """The statements of a file, one a line."""
    lines = (FOLDER / name).read_text("utf-8").splitlines()
    return [line.removesuffix(";") for line in lines if line and not line.startswith("--")]


class Outcome(NamedTuple):
    """What a statement gives: columns and rows, or an error."""

    columns: tuple[str, ...] = ()
    rows: tuple[str, ...] = ()
    error: str | None = None

    @property
    def seen(self) -> tuple[tuple[str, ...], Counter[str]]:
        """The columns and rows in any order."""
        return self.columns, Counter(self.rows)


@dataclass(frozen=True)
class Bench:
    """One database with rules and policies of the same predicates."""

    connection: Connection
    known: Knowledge
    rows: ActorRows

    def standard(self, sql: str) -> Outcome:
        """What the policies make of the statement."""
        return self._run(f"SET LOCAL ROLE {_STANDARD}", sql)

    def ruled(self, sql: str) -> Outcome:
        """What the rules make of it, for a role that no policy keeps from anything."""
        try:
            rewritten = self.rows.rewritten(sql, self.known)
        except StatementRejected as error:
            return Outcome(error=str(error))
        return self._run("", rewritten)

    def _run(self, before: str, sql: str) -> Outcome:
        with self.connection.cursor() as cursor:
            try:
                cursor.execute(f"BEGIN READ ONLY; SET LOCAL statement_timeout = 5000; {before}")
                cursor.execute(sql)
                columns = tuple(str(column.name) for column in cursor.description or ())
                return Outcome(columns, tuple(map(repr, cursor.fetchall())))
            except psycopg2.Error as error:
                return Outcome(error=str(error))
            finally:
                cursor.execute("ROLLBACK")


def prepare(admin_url: str) -> None:
    """Gives the database a role that policies hold for; other roles that are no owners keep seeing all rows."""
    with closing(psycopg2.connect(admin_url)) as connection, connection.cursor() as cursor:
        connection.autocommit = True
        cursor.execute("SELECT FROM pg_roles WHERE rolname = %s", [_STANDARD])
        if cursor.fetchone() is None:
            cursor.execute(f"CREATE ROLE {_STANDARD} NOLOGIN")
        cursor.execute(f"GRANT USAGE ON SCHEMA public, archive TO {_STANDARD}")
        cursor.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA public, archive TO {_STANDARD}")
        for table, predicate in _POLICIES.items():
            cursor.execute(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
            cursor.execute(f"CREATE POLICY ruled ON {table} TO {_STANDARD} USING ({predicate})")
            cursor.execute(f"CREATE POLICY all_rows ON {table} USING (current_user <> '{_STANDARD}')")


def known_of(url: str) -> Knowledge:
    """What Citu reads of a database, for nobody in particular."""

    async def read() -> Knowledge:
        with closing(await connect(lambda: url, Limits())) as connection:
            return await read_knowledge(connection, show=lambda catalog, _: catalog)

    return asyncio.run(read())


def bench(connection: Connection, known: Knowledge) -> Bench:
    """The database with the rules of this folder, for Ann."""
    return Bench(connection, known, RowRules.load(FOLDER / "rules.yaml").of(ANN))
