"""Describes the datasource as an actor may see it.

Tables for a question, all tables by pages, one table whole.
"""

import asyncio
from base64 import urlsafe_b64decode, urlsafe_b64encode
from bisect import bisect_right
from collections.abc import Awaitable, Callable, Sequence
from itertools import islice
from typing import Any

from common.actor import Actor
from common.errors import InvalidRequest, NotFound
from common.learning import Example
from common.meanings import TableKey
from common.ports import Database
from common.text import Text
from common.values import Catalog, Column, Table
from knowledge.language.safe_text import one_line
from knowledge.tables.name_suggestions import suggested_tables
from knowledge.tables.schema_meanings import column_meaning, metric, table_meaning
from knowledge.tables.schema_search import (
    RANKING,
    RANKING_WITHOUT_VALUES,
    LinkReason,
    SchemaSearch,
    TableMatch,
    WordReason,
)
from knowledge.tables.table_vectors import Nearest
from knowledge.values.personal_data import Privacy, open_values, privacy_of
from postgres.identifiers import quoted

_NAMED = 5  # tables that the message about an ambiguous name lists
_MOST_NAME = 200  # characters of a name that is not found
_CURSOR = Text(
    "cursor 无效：必须是上一页返回的 next_cursor。",
    "cursor is not valid: it must be the next_cursor of the page before.",
)


ExamplesFor = Callable[[str, Actor], Awaitable[Sequence[Example]]]
"""Gives the examples of questions like this one, as the actor may see them."""


class SchemaService:
    """Answers with bodies as JSON holds them. What grows with the catalogue is done in a thread.

    Args:
        opened: gives the datasource as an actor may see it.
        samples: whether stored values are shown and searched, those of personal columns never.
        nearest: the tables that mean what a question means, as far as that is known; None: words
            alone rank tables.
        examples: gives what answered similar questions, as an actor may see it.

    All methods raise `DatabaseUnavailable` and `QueryTimeout`.
    """

    def __init__(
        self,
        opened: Callable[[Actor], Database],
        *,
        samples: bool,
        nearest: Nearest | None = None,
        examples: ExamplesFor | None = None,
    ) -> None:
        self._opened = opened
        self._samples = samples
        self._nearest = nearest
        self._examples = examples
        self._ranking = RANKING if samples else RANKING_WITHOUT_VALUES

    async def search(self, question: str, limit: int, actor: Actor) -> dict[str, Any]:
        """Return tables for `question`, at most `limit`, the best first, and of how many."""
        catalog = await self._opened(actor).catalog()
        search = SchemaSearch(await self._ranking.ready(catalog))
        near: Sequence[TableKey] = ()
        if self._nearest is not None:
            near = await self._nearest(catalog, question)

        examples: Sequence[Example] = ()
        if self._examples is not None:
            examples = await self._examples(question, actor)

        matches = await asyncio.to_thread(search.matches, question, limit, near, examples)
        return {
            "tables": [_match_json(match, catalog) for match in matches],
            "table_count": len(catalog.tables),
        }

    async def tables(self, limit: int, cursor: str | None, actor: Actor) -> dict[str, Any]:
        """Return one page of the tables by schema and name.

        Raises:
            InvalidRequest: the cursor is none of ours.
        """
        after = None
        if cursor is not None:
            after = _place_after(cursor)

        catalog = await self._opened(actor).catalog()
        return await asyncio.to_thread(_page, catalog, limit, after)

    async def table(self, name: str, actor: Actor) -> dict[str, Any]:
        """Return the table called `name`, as `schema.table` or `table`, in any case and quoted or
        not.

        Raises:
            NotFound: there is none; names similar ones.
            InvalidRequest: several are called so; names them.
        """
        catalog = await self._opened(actor).catalog()
        return await asyncio.to_thread(self._table_json, name, catalog)

    def _table_json(self, name: str, catalog: Catalog) -> dict[str, Any]:
        table = table_named(name, catalog)
        return {
            **_summary_json(table),
            "columns": [self._column(table, column) for column in table.columns],
            "primary_key": list(table.primary_key),
            "unique_keys": [list(key) for key in table.unique_keys],
            "foreign_keys": [
                {
                    "columns": list(key.columns),
                    **_place_json(*key.target),
                    "target_columns": list(key.target_columns),
                }
                for key in table.foreign_keys
                if key.target in catalog.by_key
            ],
            "referenced_by": [
                {
                    **_place_json(*other.key),
                    "columns": list(key.columns),
                    "target_columns": list(key.target_columns),
                }
                for other in catalog.tables
                for key in other.foreign_keys
                if key.target == table.key
            ],
            "metrics": [metric(one) for one in catalog.metrics if one.table == table.key],
        }

    def _column(self, table: Table, column: Column) -> dict[str, Any]:
        privacy = privacy_of(table, column)
        is_shown = self._samples and privacy is Privacy.OPEN
        values = open_values(table, column) if is_shown else ()
        return {
            "name": column.name,
            "type": column.type,
            "nullable": column.nullable,
            "comment": column.comment,
            "is_personal": privacy is not Privacy.OPEN,
            "allowed": []
            if column.meaning and column.meaning.is_sensitive
            else list(column.allowed),
            "values": list(values),
            "values_are_all": column.is_complete
            and bool(values)
            and len(values) == len(column.values),
            "period": list(column.period) if is_shown and column.period else None,
            "meaning": column_meaning(column.meaning),
        }


# ------------------------------------------------------------------------------
# shapes


def _place_json(schema: str, name: str) -> dict[str, Any]:
    return {"schema": schema, "table": name}


def _summary_json(table: Table) -> dict[str, Any]:
    return {
        "schema": table.schema,
        "name": table.name,
        "kind": table.kind,
        "comment": table.comment,
        "row_estimate": table.row_estimate if table.row_estimate >= 0 else None,
        "column_count": len(table.columns),
        "meaning": table_meaning(table.meaning),
    }


def _match_json(match: TableMatch, catalog: Catalog) -> dict[str, Any]:
    # The ranking's table may have an earlier estimate of the rows.
    table = catalog.by_key[match.table.key]
    near = [{"kind": "similar"}] if match.is_near else []
    examples = [{"kind": "example", "text": example.question} for example in match.examples]
    reasons = [
        *map(_word_reason_json, match.words),
        *examples,
        *near,
        *map(_link_reason_json, match.links),
    ]
    return _ranked_json(table, match.score, reasons=reasons)


def _ranked_json(table: Table, score: float, reasons: list[dict[str, Any]]) -> dict[str, Any]:
    return {**_summary_json(table), "score": round(score, 4), "reasons": reasons}


def _word_reason_json(reason: WordReason) -> dict[str, Any]:
    return {
        "kind": reason.kind,
        "words": list(reason.words),
        "text": reason.text,
        "column": reason.column,
        "is_literal": reason.is_literal,
    }


def _link_reason_json(reason: LinkReason) -> dict[str, Any]:
    direction = "referred_to_by"
    if reason.points_to_it:
        direction = "refers_to"

    return {"kind": direction, **_place_json(*reason.table.key), "is_declared": reason.is_declared}


# ------------------------------------------------------------------------------
# pages


def _page(catalog: Catalog, limit: int, after: tuple[str, str] | None) -> dict[str, Any]:
    keys = sorted(catalog.by_key)
    start = 0
    if after:
        start = bisect_right(keys, after)

    shown = list(islice(keys, start, start + limit))
    is_more = start + limit < len(keys)
    return {
        "tables": [_summary_json(catalog.by_key[key]) for key in shown],
        "table_count": len(keys),
        "next_cursor": _cursor(shown[-1]) if is_more else None,
    }


def _cursor(key: tuple[str, str]) -> str:
    # No name in PostgreSQL holds a NUL.
    return urlsafe_b64encode("\0".join(key).encode()).decode().rstrip("=")


def _place_after(cursor: str) -> tuple[str, str]:
    try:
        schema, name = urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode().split("\0")
    except ValueError as exc:
        raise InvalidRequest(_CURSOR, field="cursor") from exc

    if _cursor((schema, name)) != cursor:
        raise InvalidRequest(_CURSOR, field="cursor")

    return schema, name


# ------------------------------------------------------------------------------
# names


def table_named(name: str, catalog: Catalog) -> Table:
    """Return the table called `name`, as `schema.table` or `table`, in any case and quoted or not.

    Raises:
        NotFound: there is none; names similar ones.
        InvalidRequest: several are called so; names them.
    """
    tables = _called(name, catalog)
    if len(tables) == 1:
        return tables[0]
    if tables:
        raise _ambiguous(name, tables)

    own_name = name.replace('"', "").rpartition(".")[2] or name
    near = suggested_tables(own_name, catalog)
    shown = one_line(name, _MOST_NAME)
    message = Text(f"没有名为 {shown} 的表。", f"There is no table named {shown}.")
    if not near:
        raise NotFound(message)

    hint = Text(f"您是不是要找：{'、'.join(near)}？", f" Did you mean: {', '.join(near)}?")
    raise NotFound(Text(message.zh + hint.zh, message.en + hint.en), suggestions=near)


def _called(name: str, catalog: Catalog) -> Sequence[Table]:
    """Return the tables of that name; those in another case only when none is written so."""
    for spell in (str, str.casefold, _without_case_and_quotes):
        wanted = spell(name)
        tables = []
        for table in catalog.tables:
            names = (spell(table.name), spell(f"{table.schema}.{table.name}"))
            if wanted in names:
                tables.append(table)

        if tables:
            return tables

    return ()


def _without_case_and_quotes(text: str) -> str:
    return text.casefold().replace('"', "")


def _ambiguous(name: str, tables: Sequence[Table]) -> InvalidRequest:
    names = [f"{quoted(table.schema)}.{quoted(table.name)}" for table in tables[:_NAMED]]
    more = ""
    if len(tables) > _NAMED:
        more = " …"

    return InvalidRequest(
        Text(
            f"有多个名为 {name} 的表，请写明模式：{'、'.join(names)}{more}。",
            f"Several tables are named {name}; name the schema as well: {', '.join(names)}{more}.",
        ),
        field="name",
    )
