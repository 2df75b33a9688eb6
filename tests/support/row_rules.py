"""Statements under row rules, and what PostgreSQL's own policies make of them: the standard for the
rewriting.
"""

import asyncio
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import psycopg2
from psycopg2.extensions import connection as Connection  # noqa: N812 - psycopg2 names its class in lower case

from common.actor import Actor
from common.errors import StatementRejected
from databases.catalog.catalog import Knowledge, read_knowledge
from guard.row_rules import ActorRows, RowRules
from postgres.connecting import PostgresLimits, connect

FOLDER = Path(__file__).parents[1] / "fixtures" / "row_rules"
ANN = Actor("ann", ("clerks", "seers", "a", "x"))
KINDS = (
    *(
        "plain",
        "joins",
        "subqueries",
        "ctes",
        "aggregates",
        "rows",
        "names",
        "syntax",
        "raising",
        "relatives",
    ),
    "ordered",
)
"""The files of statements that policies are the standard for."""
_CANARY = re.compile(r"SECRET-\d+|7700\d\d")  # only hidden rows have such values
_STANDARD = "citu_test_row_standard"

# The predicates of the rules for Ann, as policies say them.
_MEMBER = "EXISTS (SELECT FROM membership m WHERE m.tenant = orders.tenant AND m.user_id = 'ann')"
_OWN = "tenant IN ('a', 'x')"
_POLICIES = {
    "public.orders": _MEMBER,
    "public.line": f"order_id IN (SELECT o.id FROM orders o WHERE o.{_OWN})",
    "public.customer": f"tenant = 'a' OR {_OWN}",
    "archive.orders": _OWN,
    **dict.fromkeys(
        ("public.event", "public.event_2023", "public.event_2024", "public.animal", "public.dog"),
        _OWN,
    ),
    'public."Mixed Case"': _OWN,
}


def statements(name: str) -> list[str]:
    """Return the statements of a file, one a line."""
    lines = (FOLDER / f"{name}.sql").read_text("utf-8").splitlines()
    return [line.removesuffix(";") for line in lines if line and not line.startswith("--")]


class Outcome(NamedTuple):
    """The result of a statement: columns and rows, or an error."""

    columns: tuple[str, ...] = ()
    rows: tuple[str, ...] = ()
    error: str | None = None

    @property
    def in_any_order(self) -> tuple[tuple[str, ...], Counter[str]]:
        """Return the columns and rows, whatever the rows' order."""
        return self.columns, Counter(self.rows)

    def canaries(self, sql: str) -> set[str]:
        """Return values of hidden rows anywhere in it, but those that the statement names
        itself.
        """
        return set(_CANARY.findall(repr(self))) - set(_CANARY.findall(sql))


@dataclass(frozen=True)
class Bench:
    """One database with rules and policies of the same predicates.

    Attributes:
        plain: a connection that no policy keeps from anything.
        policed: one that the policies hold for.
        known: what Citu knows of the database.
        rows: what the rules leave the actor.
    """

    plain: Connection
    policed: Connection
    known: Knowledge
    rows: ActorRows

    def of(self, rules: RowRules, actor: Actor = ANN) -> "Bench":
        """Return the same database under other rules."""
        return replace(self, rows=rules.of(actor))

    def standard(self, sql: str) -> Outcome:
        """Return what the policies make of the statement."""
        return _outcome(self.policed, sql)

    def ruled(self, sql: str) -> Outcome:
        """Return what the rules make of it."""
        try:
            return _outcome(self.plain, self.rows.rewritten(sql, self.known))
        except StatementRejected as error:
            return Outcome(error=str(error))


def _outcome(connection: Connection, sql: str) -> Outcome:
    with connection.cursor() as cursor:
        try:
            cursor.execute(sql)
            columns = tuple(str(column.name) for column in cursor.description or ())
            return Outcome(columns, tuple(map(repr, cursor.fetchall())))
        except psycopg2.Error as error:
            return Outcome(error=str(error))


def prepare(admin_url: str) -> None:
    """Make a role that policies hold for; others see all rows of the same tables."""
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
            cursor.execute(
                f"CREATE POLICY all_rows ON {table} USING (current_user <> '{_STANDARD}')"
            )


def known_of(url: str) -> Knowledge:
    """Return what Citu reads of a database, for nobody in particular."""

    async def read() -> Knowledge:
        with closing(await connect(lambda: url, PostgresLimits())) as connection:
            return await read_knowledge(connection, show=lambda catalog, _: catalog)

    return asyncio.run(read())


@contextmanager
def open_bench(url: str, admin_url: str) -> Iterator[Bench]:
    """Yield the database at `url`, and for a superuser at `admin_url`, with the rules of this
    folder for
    Ann.
    """
    settings = "-c default_transaction_read_only=on -c statement_timeout=5000 -c jit=off"
    with (
        closing(psycopg2.connect(admin_url, options=settings)) as plain,
        closing(psycopg2.connect(admin_url, options=f"{settings} -c role={_STANDARD}")) as policed,
    ):
        plain.autocommit = policed.autocommit = True
        yield Bench(plain, policed, known_of(url), RowRules.load(FOLDER / "rules.yaml").of(ANN))
