"""Drafts: what was read of an upload, with what its user said of it, as tables to be confirmed."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any

from common.errors import InvalidRequest
from common.text import Text
from files.file_index import FileRecord
from files.loading.load_plan import LoadMode, PlannedColumn, PlannedReference, PlannedTable
from files.reading.sql_names import is_sql_name, sql_name, untaken
from files.reading.value_forms import WIDER, ColumnType, readers

Correction = Mapping[str, Any]
_ID_WORDS = ("id", "no", "code", "key", "编号", "编码", "号码", "代码", "序号", "工号", "学号")
_KEY_TYPES = ("integer", "text")
_READING = ("encoding", "delimiter", "header_row", "header_rows", "keeps_totals")


@dataclass(frozen=True)
class DraftColumn:
    """A column of a draft.

    Attributes:
        place: where its values stand in the sheet, from 0.
        read: what the worker said of it.
        before: the column of the table that it goes into, if there is one.
    """

    place: int
    name: str
    type: ColumnType
    is_included: bool
    read: Mapping[str, Any]
    before: Mapping[str, Any] | None = None

    @property
    def title(self) -> str:
        """Return its name as written, or in SQL where nothing is written."""
        return self.read["title"] or self.name

    @property
    def forms(self) -> tuple[str, ...]:
        """Return the forms by which its values become its type."""
        if self.type == "text":
            return ()

        return tuple(form.name for form in readers(self.type, self.read["forms"]))


@dataclass(frozen=True)
class DraftTable:
    """A table of a draft.

    Attributes:
        into: the table that it replaces or is appended to.
    """

    name: str
    is_included: bool
    columns: tuple[DraftColumn, ...]
    key: str | None
    references: tuple[PlannedReference, ...]
    read: Mapping[str, Any]
    into: Mapping[str, Any] | None = None

    @property
    def included(self) -> tuple[DraftColumn, ...]:
        """Return the columns that are to be loaded."""
        return tuple(column for column in self.columns if column.is_included)


def reading_options(corrections: Mapping[str, Correction]) -> dict[str, dict[str, Any]]:
    """Return the users' corrections as the worker takes them, by the sheets' keys."""
    options = {}
    for sheet, correction in corrections.items():
        given_options = {
            name: correction[name] for name in _READING if correction.get(name) is not None
        }
        types = {}
        for place, column in correction.get("columns", {}).items():
            if column.get("type"):
                types[place] = column["type"]

        options[sheet] = {**given_options, "types": types}

    return options


def merged(
    before: Mapping[str, Correction], corrections: Iterable[Correction]
) -> dict[str, dict[str, Any]]:
    """Return the corrections by sheet, with further ones added."""
    merged_corrections = {sheet: dict(correction) for sheet, correction in before.items()}
    for correction in corrections:
        of_sheet = merged_corrections.setdefault(correction["sheet"], {})
        columns = _merged_columns(of_sheet.get("columns", {}), correction.get("columns") or ())
        of_sheet.update(_filled_fields(correction))
        of_sheet["columns"] = columns

    return merged_corrections


def _merged_columns(
    before: Mapping[str, Correction], corrections: Iterable[Correction]
) -> dict[str, Correction]:
    """Return what was said of columns by their places, with further corrections."""
    columns = {place: dict(column) for place, column in before.items()}
    for column in corrections:
        said_of_column = columns.setdefault(str(column["place"]), {})
        said_of_column.update(_filled_fields(column))

    return dict(columns)


def _filled_fields(correction: Correction) -> dict[str, Any]:
    """Return the fields that the user filled in."""
    return {name: value for name, value in correction.items() if value is not None}


def assembled(
    read: Sequence[Mapping[str, Any]],
    corrections: Mapping[str, Correction],
    existing: Sequence[FileRecord],
    target: FileRecord | None,
    way: LoadMode,
) -> tuple[DraftTable, ...]:
    """Return the tables of a draft.

    Args:
        read: what the worker said of each sheet.
        existing: the owner's files.
        target: the one that is replaced or appended to.

    Raises:
        InvalidRequest: what was said can't be: a name that is taken, a column that there is not.
    """
    unknown = set(corrections) - {sheet["sheet"] for sheet in read}
    if unknown:
        raise _wrong("sheet", f"没有这张表：{sorted(unknown)[0]}", "there is no such sheet")

    taken_names = {table["name"] for record in existing for table in record.tables}
    tables: list[DraftTable] = []
    for sheet in read:
        into = _into(sheet, read, target)
        table = _table(sheet, corrections.get(sheet["sheet"], {}), taken_names, into, way)
        taken_names.add(table.name)
        tables.append(table)

    keys = list(_keys(tables, existing))
    return tuple(_with_references(table, corrections, keys) for table in tables)


def _table(
    read: Mapping[str, Any],
    correction: Correction,
    taken_names: Collection[str],
    into: Mapping[str, Any] | None,
    way: LoadMode,
) -> DraftTable:
    if into is not None:
        name = into["name"]
    elif correction.get("name"):
        name = _checked_name(correction["name"], taken_names)
    else:
        name = untaken(sql_name(read["title"], "table"), taken_names)

    column_corrections = correction.get("columns", {})
    columns = tuple(_columns(read, column_corrections, into, way))
    _check_columns(columns, column_corrections)
    is_included = correction.get("include", True)
    if is_included and not any(column.is_included for column in columns):
        raise _wrong(
            "columns",
            "至少要留下一列，或者不导入这张表",
            "leave at least one column in, or leave the table out",
        )

    table = DraftTable(name, is_included, columns, None, (), read, into)
    return replace(table, key=_key(table, correction))


def _columns(
    read: Mapping[str, Any],
    corrections: Mapping[str, Correction],
    into: Mapping[str, Any] | None,
    way: LoadMode,
) -> Iterator[DraftColumn]:
    before = _columns_before(into)
    for place, read_column in enumerate(read["columns"]):
        correction = corrections.get(str(place), {})
        existing = before.get(_same(read_column["title"])) or before.get(_same(read_column["name"]))
        named = existing or read_column
        name = correction.get("name") or named["name"]
        type_ = correction.get("type") or _type_of(read_column, existing, way)
        has_content = read_column["title"] or read_column["examples"]
        is_included = correction.get("include", bool(has_content))
        yield DraftColumn(place, name, type_, is_included, read_column, existing)


def _type_of(
    read: Mapping[str, Any], existing: Mapping[str, Any] | None, way: LoadMode
) -> ColumnType:
    """Return the type that was read, or one that holds the rows from before as well."""
    type_: ColumnType = read["type"]
    if existing is None or way != "append":
        return type_

    return widest(existing["type"], type_, is_empty=not read["examples"])


def _columns_before(into: Mapping[str, Any] | None) -> dict[str, Mapping[str, Any]]:
    if into is None:
        return {}

    by_name = {_same(column["name"]): column for column in into["columns"]}
    by_title = {_same(column["title"]): column for column in into["columns"]}
    return {**by_name, **by_title}


def _same(title: str) -> str:
    return " ".join(title.casefold().split())


def widest(before: ColumnType, new: ColumnType, *, is_empty: bool = False) -> ColumnType:
    """Return the narrowest type that holds the values of both."""
    if is_empty:
        return before
    if before in (new, *WIDER[new]):
        return before
    if new in WIDER[before]:
        return new

    common = [wider for wider in WIDER[before] if wider in WIDER[new]]
    return common[0]  # a text at the latest, which holds everything


def _into(
    read: Mapping[str, Any], all_read: Sequence[Mapping[str, Any]], target: FileRecord | None
) -> Mapping[str, Any] | None:
    """Return the table of a file that a sheet goes into: of the same title, or the only one."""
    if target is None:
        return None
    if len(target.tables) == 1 and len(all_read) == 1:
        return target.tables[0]

    for table in target.tables:
        if _same(table["title"]) == _same(read["title"]):
            return table

    return None


def _checked_name(name: str, taken_names: Collection[str]) -> str:
    if not is_sql_name(name):
        better = sql_name(name, "table")
        raise _wrong("name", f"表名可以是 {better}", f"a table's name may be {better}")

    if name in taken_names:
        raise _wrong("name", f"已有名为 {name} 的表", f"there is a table named {name} already")

    return name


def _check_columns(columns: Sequence[DraftColumn], corrections: Mapping[str, Correction]) -> None:
    places = {str(column.place) for column in columns}
    if not places.issuperset(corrections):
        raise _wrong("place", "没有这一列", "there is no such column")

    names: set[str] = set()
    for column in columns:
        if not column.is_included:
            continue
        if not is_sql_name(column.name):
            better = sql_name(column.name, "column")
            raise _wrong("columns.name", f"列名可以是 {better}", f"a name may be {better}")

        if column.name in names:
            text = f"two columns are named {column.name}"
            raise _wrong("columns.name", f"有两列都叫 {column.name}", text)

        names.add(column.name)


def _key(table: DraftTable, correction: Correction) -> str | None:
    """Return the column that is to be the key: as said, as before, or by its name."""
    names = {column.name for column in table.included}
    if "key" in correction:
        return _checked_key(correction["key"], names)
    if table.into is not None:
        before = table.into.get("key")
        return before if before in names else None

    keys = filter(_may_be_key, table.included)
    return next((column.name for column in keys), None)


def _checked_key(key: str | None, names: Collection[str]) -> str | None:
    if not key:
        return None
    if key not in names:
        raise _wrong("key", "必须是其中一列", "it must be one of the columns")

    return key


def _may_be_key(column: DraftColumn) -> bool:
    if not column.read["is_unique"]:
        return False
    if column.type not in _KEY_TYPES:
        return False

    words = column.name.split("_")
    is_called_id = column.name.endswith(_ID_WORDS)
    return is_called_id or not set(words).isdisjoint(_ID_WORDS)


@dataclass(frozen=True)
class _Key:
    """The key of a table that others may refer to.

    Attributes:
        values: all of them, where they are few and known.
    """

    table: str
    column: str
    type: ColumnType
    values: Collection[str] | None


def _keys(tables: Sequence[DraftTable], existing: Sequence[FileRecord]) -> Iterator[_Key]:
    drafted = {table.name for table in tables}
    for table in tables:
        if table.is_included:
            yield from _own_key(table)

    for record in existing:
        for before in record.tables:
            key = before.get("key")
            if not key or before["name"] in drafted:
                continue

            types = {column["name"]: column["type"] for column in before["columns"]}
            yield _Key(before["name"], key, types[key], None)


def _own_key(table: DraftTable) -> Iterator[_Key]:
    for column in table.included:
        if column.name == table.key:
            yield _Key(table.name, column.name, column.type, column.read["distinct"])


def _with_references(
    table: DraftTable, corrections: Mapping[str, Correction], keys: Sequence[_Key]
) -> DraftTable:
    user_references = corrections.get(table.read["sheet"], {}).get("references")
    if user_references is None:
        references = _likely_references(table, keys)
    else:
        references = _user_references(table, user_references, keys)

    return replace(table, references=tuple(references))


def _likely_references(table: DraftTable, keys: Sequence[_Key]) -> Iterator[PlannedReference]:
    """Yield the first key of another table that each column is called like."""
    others = [key for key in keys if key.table != table.name]
    for column in table.included:
        if column.name == table.key or column.type not in _KEY_TYPES:
            continue

        fitting = filter(partial(_may_refer, column), others)
        for key in islice(fitting, 1):
            yield PlannedReference(column.name, key.table, key.column)


def _user_references(
    table: DraftTable, user_references: Iterable[Correction], keys: Sequence[_Key]
) -> Iterator[PlannedReference]:
    names = {column.name for column in table.included}
    possible_targets = [(key.table, key.column) for key in keys]
    for reference in user_references:
        is_known = (reference["table"], reference["key"]) in possible_targets
        if reference["column"] not in names or not is_known:
            raise _wrong(
                "references",
                "column 是本表的列，table 和 key 是另一张表和它的主键",
                "column is one of this table's, table and key are another table and its key",
            )

        yield PlannedReference(reference["column"], reference["table"], reference["key"])


def _may_refer(column: DraftColumn, key: _Key) -> bool:
    """Tell whether a column is called like a key, and its values don't speak against it."""
    if column.type != key.type:
        return False

    singular = key.table.removesuffix("s")
    names = (
        key.column,
        f"{key.table}_{key.column}",
        f"{key.table}{key.column}",
        f"{singular}_{key.column}",
    )
    if column.name not in names:
        return False

    values = column.read["distinct"]
    if values is None or key.values is None:
        return True

    return set(values) <= set(key.values)


def planned(tables: Sequence[DraftTable], way: LoadMode) -> Iterator[PlannedTable]:
    """Yield the tables that are to be loaded."""
    for table in tables:
        if not table.is_included:
            continue

        own_way: LoadMode = "new" if table.into is None else way
        yield _plan_table(table, own_way)


def _plan_table(table: DraftTable, way: LoadMode) -> PlannedTable:
    columns = [_planned_column(column) for column in table.included]
    changes = False
    if way == "append" and table.into is not None:
        named = {column.name: column for column in columns}
        columns, changes = _appended(table.into, named)

    titled = table.into or table.read
    comment = titled["title"]
    return PlannedTable(
        table.name,
        comment,
        way,
        table.read["sheet"],
        table.read["first_row"],
        table.read["keeps_totals"],
        tuple(columns),
        table.key,
        table.references,
        changes,
    )


def _planned_column(column: DraftColumn) -> PlannedColumn:
    title = column.title
    if column.before is not None:
        title = column.before["title"]

    return PlannedColumn(column.name, column.type, title, column.place, column.forms)


def _appended(
    into: Mapping[str, Any], new: Mapping[str, PlannedColumn]
) -> tuple[list[PlannedColumn], bool]:
    """Return the columns of a table with further rows, and whether they differ from before."""
    columns = []
    changes = False
    for before in into["columns"]:
        column = new.get(before["name"])
        if column is None:
            planned_column = PlannedColumn(
                before["name"], before["type"], before["title"], is_kept=True
            )
        else:
            planned_column = replace(column, is_kept=True)
            changes = changes or column.type != before["type"]

        columns.append(planned_column)

    column_names = {column.name for column in columns}
    added = [column for column in new.values() if column.name not in column_names]
    return [*columns, *added], changes or bool(added)


def differences(table: DraftTable, way: LoadMode) -> dict[str, Any] | None:
    """Return how a table would differ from the one that it goes into, before anything happens."""
    if table.into is None:
        return None

    before = {column["name"]: column for column in table.into["columns"]}
    new = {column.name: column for column in table.included}
    rows = table.read["rows"]
    rows_before = table.into["rows"]
    return {
        "table": table.into["name"],
        "rows_before": rows_before,
        "rows_after": rows + rows_before if way == "append" else rows,
        "new_columns": [name for name in new if name not in before],
        "missing_columns": [name for name in before if name not in new],
        "changed_types": _changed_types(before, new),
    }


def _changed_types(
    before: Mapping[str, Mapping[str, Any]], new: Mapping[str, DraftColumn]
) -> list[dict[str, str]]:
    changed = []
    for name, column in new.items():
        if name not in before:
            continue

        type_before = before[name]["type"]
        if type_before != column.type:
            changed.append({"column": name, "before": type_before, "after": column.type})

    return changed


def _wrong(field: str, zh: str, en: str) -> InvalidRequest:
    return InvalidRequest(
        Text(f"{field} 无效：{zh}。", f"{field} is not valid: {en}."), field=field
    )
