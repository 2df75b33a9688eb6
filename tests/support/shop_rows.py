"""Random rows of the shop that bound intents are made over, and how they get into a database."""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import psycopg
from hypothesis import strategies as st
from psycopg.rows import dict_row

from tests.support.bound_intents import TABLES

Rows = dict[str, list[dict[str, Any]]]
_KEYS = st.none() | st.integers(1, 4)
_AMOUNTS = st.none() | st.decimals(-3, 9, places=2)
_START = datetime(2024, 2, 28, tzinfo=UTC)
# Around the ends of months, and where New York's clocks are put forward
_MOMENTS = st.none() | st.sampled_from(
    [_START + timedelta(hours=hours) for hours in (0, 28, 29, 52, 53, 270, 271, 800, 1700)]
)
_DAYS = st.none() | st.dates(date(2024, 1, 28), date(2024, 2, 6))
_CODES = st.none() | st.sampled_from(["EUR", "USD"])
_ROWS = {
    "orders": st.tuples(
        *(_KEYS, st.none() | st.sampled_from(["paid", "void"]), _AMOUNTS, _CODES, _DAYS, _MOMENTS)
    ),
    "items": st.tuples(
        *(_KEYS, st.none() | st.sampled_from(["pen", "ink"]), st.none() | st.integers(0, 3)),
        _AMOUNTS,
    ),
    "users": st.tuples(st.none() | st.sampled_from(["Ulm", "Bonn"]), st.none() | st.booleans()),
    "rates": st.tuples(_CODES, _DAYS, st.none() | st.decimals("0.1", 2, places=4)),
}


@st.composite
def shop_rows(draw: st.DrawFn) -> Rows:
    """Rows of the shop; those of tables with a number are numbered from 1."""
    tables = {}
    for name, rows in _ROWS.items():
        drawn: list[tuple[Any, ...]] = draw(st.lists(rows, max_size=7))
        names = [one.name for one in TABLES[name].columns]
        if names[0] == "id":
            drawn = [(number, *row) for number, row in enumerate(drawn, 1)]
        tables[name] = [dict(zip(names, row, strict=True)) for row in drawn]
    return tables


def shop_ddl() -> str:
    """What makes the shop's tables."""
    statements = []
    for table in TABLES.values():
        columns = ", ".join(f"{one.name} {one.type}" for one in table.columns)
        statements.append(f"CREATE TABLE {table.schema}.{table.name} ({columns});")
    return "".join(statements)


def fill_shop(connection: psycopg.Connection[Any], tables: Rows) -> Rows:
    """Put these rows and no others into the tables; the rows as they are stored."""
    stored = {}
    for name, rows in tables.items():
        key = f"public.{name}"
        connection.execute(f"TRUNCATE {key}")
        connection.execute(
            f"INSERT INTO {key} SELECT * FROM jsonb_populate_recordset(null::{key}, %s)",
            [json.dumps(rows, default=str)],
        )
        with connection.cursor(row_factory=dict_row) as cursor:
            stored[name] = cursor.execute(f"SELECT * FROM {key}").fetchall()
    return stored


def counted(rows: Iterable[Sequence[Any]]) -> Counter[str]:
    """Rows in any order, for comparing; numbers without the zeros behind them."""
    return Counter(repr([_plain(value) for value in row]) for row in rows)


def _plain(value: Any) -> Any:
    is_number = isinstance(value, int | Decimal) and not isinstance(value, bool)
    return Decimal(value).normalize() + 0 if is_number else value
