"""Random rows of a small shop, stored in PostgreSQL, where SQL says what they mean."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import psycopg
from hypothesis import strategies as st
from psycopg.rows import dict_row

from common.values import Table
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
def worlds(draw: st.DrawFn) -> Rows:
    """Return rows of the shop; those of tables with a number are numbered from 1."""
    tables = {}
    for name, rows in _ROWS.items():
        drawn = draw(st.lists(rows, max_size=7))
        names = [column.name for column in TABLES[name].columns]
        if names[0] == "id":
            drawn = [(number, *row) for number, row in enumerate(drawn, 1)]
        tables[name] = [dict(zip(names, row, strict=True)) for row in drawn]
    return tables


@contextmanager
def shop_connection(admin_url: str) -> Iterator[psycopg.Connection]:
    """Yield a connection with empty tables of the shop, in a time zone that no intent names."""
    with psycopg.connect(admin_url, autocommit=True) as opened:
        opened.execute("SET TIME ZONE 'Asia/Shanghai'")
        for table in TABLES.values():
            opened.execute(_ddl(table))
        yield opened


def _ddl(table: Table) -> str:
    columns = ", ".join(f"{column.name} {column.type}" for column in table.columns)
    return f"CREATE TEMPORARY TABLE {table.name} ({columns})"


def stored(connection: psycopg.Connection, tables: Rows) -> Rows:
    """Put the rows into the tables, in place of what was there; the rows as they are read."""
    read = {}
    for name, rows in tables.items():
        connection.execute(f"TRUNCATE {name}")
        text = json.dumps(rows, default=str)
        connection.execute(
            f"INSERT INTO {name} SELECT * FROM jsonb_populate_recordset(null::{name}, %s)", [text]
        )
        with connection.cursor(row_factory=dict_row) as cursor:
            read[name] = cursor.execute(f"SELECT * FROM {name}").fetchall()
    return read


def counted(rows: Iterable[Sequence[Any]]) -> Counter[str]:
    """Return rows without their order; numbers are equal whatever zeros are written."""
    return Counter(repr([_plain(value) for value in row]) for row in rows)


def _plain(value: Any) -> Any:
    return Decimal(value).normalize() if isinstance(value, int | Decimal) else value
