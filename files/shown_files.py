"""Files and drafts as answers show them."""

from collections.abc import Mapping, Sequence
from datetime import UTC
from typing import Any

from common import timestamps
from common.text import Lang, Text
from files.drafts import DraftColumn, DraftTable
from files.file_index import FileRecord
from postgres.identifiers import quoted


def shown_record(record: FileRecord, *, is_own: bool) -> dict[str, Any]:
    """Return a file whose tables are loaded."""
    return {
        "id": record.id,
        "status": "ready",
        "name": record.name,
        "is_own": is_own,
        "groups": list(record.groups) if is_own else [],
        "created_at": timestamps.utc_text(record.created_at.astimezone(UTC)),
        "changed_at": timestamps.utc_text(record.changed_at.astimezone(UTC)),
        "tables": [_loaded_table(table) for table in record.tables],
    }


def _loaded_table(table: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "name": table["name"],
        "title": table["title"],
        "sql_name": quoted(table["name"]),
        "rows": table["rows"],
        "bytes": table["bytes"],
        "columns": table["columns"],
        "key": table.get("key"),
        "references": table.get("references", []),
    }


def shown_draft(
    draft: Mapping[str, Any],
    tables: Sequence[DraftTable],
    compared: Sequence[Mapping[str, Any] | None],
    lang: Lang,
) -> dict[str, Any]:
    """Return a draft, with the reasons of what was guessed.

    Args:
        compared: how each table differs from the one that it goes into.
    """
    return {
        "id": draft["id"],
        "status": "draft",
        "name": draft["name"],
        "is_own": True,
        "way": draft["way"],
        "changes": draft["target"],
        "created_at": draft["created_at"],
        "tables": [
            _draft_table(table, differs, lang)
            for table, differs in zip(tables, compared, strict=True)
        ],
    }


def _draft_table(
    table: DraftTable, differs: Mapping[str, Any] | None, lang: Lang
) -> dict[str, Any]:
    read = table.read
    return {
        "sheet": read["sheet"],
        "title": read["title"],
        "name": table.name,
        "include": table.is_included,
        "rows": read["rows"],
        "encoding": _guess(read["encoding"], lang),
        "delimiter": _guess(read["delimiter"], lang),
        "header_row": read["header_row"],
        "header_rows": read["header_rows"],
        "header_reason": Text(*read["header_reason"]).to(lang),
        "first_row": read["first_row"],
        "titles": read["titles"],
        "keeps_totals": read["keeps_totals"],
        "columns": [_draft_column(column, lang) for column in table.columns],
        "key": table.key,
        "references": [
            {"column": reference.column, "table": reference.table, "key": reference.key}
            for reference in table.references
        ],
        "problems": _problems(read["problems"], lang),
        "differences": differs,
    }


def _draft_column(column: DraftColumn, lang: Lang) -> dict[str, Any]:
    read = column.read
    return {
        "place": column.place,
        "title": read["title"],
        "name": column.name,
        "type": column.type,
        "include": column.is_included,
        "reason": Text(*read["reason"]).to(lang),
        "examples": read["examples"],
        "empty": read["empty"],
        "is_unique": read["is_unique"],
        "problems": _problems(read["problems"], lang),
    }


def _guess(read: Sequence[Any] | None, lang: Lang) -> dict[str, str] | None:
    if read is None:
        return None

    value, reason = read
    return {"value": value, "reason": Text(*reason).to(lang)}


def _problems(read: Sequence[Mapping[str, Any]], lang: Lang) -> list[dict[str, Any]]:
    return [
        {"text": Text(*one["text"]).to(lang), "count": one["count"], "rows": one["rows"]}
        for one in read
    ]
