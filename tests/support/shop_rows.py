"""The shop's tables in a database of their own, filled with random rows."""

import json
from typing import Any

import psycopg
from psycopg.rows import dict_row

from tests.support.bound_intents import TABLES
from tests.support.shop_worlds import Rows, counted
from tests.support.shop_worlds import worlds as shop_rows

__all__ = ["Rows", "counted", "fill_shop", "shop_ddl", "shop_rows"]


def shop_ddl() -> str:
    """Return what makes the shop's tables."""
    statements = []
    for table in TABLES.values():
        columns = ", ".join(f"{column.name} {column.type}" for column in table.columns)
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
