"""Did you mean: names that exist, where SQL names a table or column that does not.

The missing name is read from the statement at the position PostgreSQL gives, because its messages
come in the server's language. Most failed queries are wrong names, so the answer is for the user
and for the repair alike.
"""

import re
import unicodedata
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from common.errors import InvalidSql
from common.values import Catalog, Table
from knowledge.index import IndexPart
from knowledge.language.cutting import pieces
from knowledge.language.likeness import LikeNames
from knowledge.language.spelling import likeness
from postgres.identifiers import quoted
from sqltree.references import ColumnReferences, references

UNKNOWN_TABLE, UNKNOWN_COLUMN = "42P01", "42703"
_MOST = 5
_FEW_TABLES = 300  # up to here all tables are compared
_MOST_COLUMNS = 500  # of one name, in as many tables
_LEAST_SCORE = 0.6
_SAID_SCORE = 0.95  # of names that their comment explains by what was written
_PART_SCORE = 0.7  # of names one of which contains the other
_SAME_WORDS = 0.8  # of names whose words are the same, but for their number and order
_LEAST_PART = 3  # characters; shorter parts are shared by chance

_NOWHERE = array("I")

_NAME = r'(?:"(?:[^"]|"")+"|[^\W\d][\w$]*)'
_DOTTED = re.compile(rf"{_NAME}(?:\s*\.\s*{_NAME})*")
_PART = re.compile(_NAME)
_IN_MESSAGE = re.compile(r'["“«「]([^"“”«»「」]+)["”»」]|\b(\w+\.\w+)\b')


def with_suggestions(error: InvalidSql, sql: str, catalog: Catalog) -> InvalidSql:
    """`error` saying which names may have been meant, when it is about an unknown table or column."""
    names = near_names(error, sql, catalog)
    if not names:
        return error
    return InvalidSql(
        error.detail,
        detail_zh=error.detail_zh,
        sqlstate=error.sqlstate,
        position=error.position,
        hint=error.hint,
        suggestions=names,
    )


def near_names(error: InvalidSql, sql: str, catalog: Catalog) -> tuple[str, ...]:
    """Names, spelled as SQL takes them, that resemble the one `error` misses, the nearest first; at
    most five.
    """
    missing = _missing(error, sql)
    if missing is None:
        return ()
    known = references(sql, catalog)
    candidates = (
        _columns(missing, known, catalog) if missing.is_column else _tables(missing, known, catalog)
    )
    scored = sorted(candidates, key=lambda found: -found[0])
    gone = _itself(missing, catalog)
    near = dict.fromkeys(name for score, name in scored if score >= _LEAST_SCORE and name != gone)
    return tuple(near)[:_MOST]


def _itself(missing: "_Missing", catalog: Catalog) -> str:
    """The missing name, spelled as a suggestion: a catalogue that is older than the change may
    still have it.
    """
    table = None
    if missing.owner and not missing.is_column:
        table = catalog.by_key.get((missing.owner, missing.name))
    written = (
        f"{quoted(missing.owner)}.{quoted(missing.name)}" if missing.owner else quoted(missing.name)
    )
    if table:
        return _spelled(table, catalog)
    return written


def near_tables(name: str, catalog: Catalog) -> tuple[str, ...]:
    """Tables, spelled as SQL takes them, whose name or comment resembles `name`, the nearest first;
    at most five.
    """
    likely = KNOWN_NAMES.of(catalog).tables_like(name)
    scored = (
        (_score(name, table.name, table.comment), _spelled(table, catalog)) for table in likely
    )
    near = sorted(
        (found for found in scored if found[0] >= _LEAST_SCORE), key=lambda found: -found[0]
    )
    return tuple(dict.fromkeys(spelled for _, spelled in near))[:_MOST]


@dataclass(frozen=True)
class _Missing:
    """The name that does not exist; `owner` is the table or schema it is qualified with."""

    name: str
    owner: str | None
    is_column: bool
    is_source: bool = False
    """Whether it is an alias that no FROM introduces."""


def _missing(error: InvalidSql, sql: str) -> _Missing | None:
    if error.sqlstate not in (UNKNOWN_TABLE, UNKNOWN_COLUMN):
        return None
    said = _IN_MESSAGE.search(error.detail)
    told = ""
    if said:
        told = said[1] or said[2]
    parts = _parts_at(sql, error.position) or _parts(told)
    if not parts:
        return None
    if error.sqlstate == UNKNOWN_COLUMN:
        return _Missing(parts[-1], parts[-2] if len(parts) > 1 else None, is_column=True)
    # "missing FROM-clause entry" points at `alias.column` and names the alias alone.
    if len(parts) > 1 and told == parts[-2]:
        return _Missing(parts[-2], None, is_column=False, is_source=True)
    return _Missing(parts[-1], parts[-2] if len(parts) > 1 else None, is_column=False)


def _parts_at(sql: str, position: int | None) -> list[str]:
    written = None
    if position:
        written = _DOTTED.match(sql, position - 1)
    if written:
        return _parts(written.group())
    return []


def _parts(dotted: str) -> list[str]:
    return [
        part[1:-1].replace('""', '"') if part[0] == '"' else part.lower()
        for part in _PART.findall(dotted)
    ]


def _tables(
    missing: _Missing, known: ColumnReferences, catalog: Catalog
) -> Iterator[tuple[float, str]]:
    if missing.is_source:
        for alias, table in known.sources.items():
            is_its_table = table is not None and table.name == missing.name
            yield (
                1.0 if is_its_table else max(_LEAST_SCORE, _score(missing.name, alias)),
                quoted(alias),
            )
    for table in KNOWN_NAMES.of(catalog).tables_like(missing.name):
        # The right name in the wrong schema is nearer than any other name.
        yield _score(missing.name, table.name, table.comment), _spelled(table, catalog)


def _columns(
    missing: _Missing, known: ColumnReferences, catalog: Catalog
) -> Iterator[tuple[float, str]]:
    sources = known.sources
    if missing.owner is not None and missing.owner in sources:
        sources = {missing.owner: sources[missing.owner]}
    prefix = ""
    if missing.owner:
        prefix = f"{quoted(missing.owner)}."
    for table in filter(None, sources.values()):
        for column in table.columns:
            yield (
                _score(missing.name, column.name, column.comment),
                f"{prefix}{quoted(column.name)}",
            )
    for label in known.labels - {missing.name}:
        yield _score(missing.name, label), f"{prefix}{quoted(label)}"
    yield from _elsewhere(missing.name, known, catalog)


def _elsewhere(name: str, known: ColumnReferences, catalog: Catalog) -> Iterator[tuple[float, str]]:
    """Columns of that very name in tables the query does not read: a join is missing."""
    read = {table.key for table in known.sources.values() if table}
    for table, column in KNOWN_NAMES.of(catalog).columns_called(name):
        if table.key not in read:
            yield 0.9, f"{_spelled(table, catalog)}.{quoted(column)}"


class KnownNames:
    """The names of one catalogue, to be found among thousands without comparing all."""

    def __init__(self, catalog: Catalog) -> None:
        self._tables = catalog.tables
        names = [" ".join((table.name, *_said(table.comment))) for table in catalog.tables]
        self._like = LikeNames(names, few=_FEW_TABLES)
        self._columns: dict[
            str, array[int]
        ] = {}  # the number of the table, then of the column, of each
        for number, table in enumerate(catalog.tables):
            for place, column in enumerate(table.columns):
                self._columns.setdefault(_folded(column.name), array("I")).extend((number, place))

    def tables_like(self, name: str) -> Iterator[Table]:
        """Tables whose name or comment may resemble `name`; all of them where there are few."""
        return (self._tables[number] for number in self._like.like(name))

    def columns_called(self, name: str) -> Sequence[tuple[Table, str]]:
        """Columns of that name, with their tables, as many as are worth comparing."""
        called = self._columns.get(_folded(name), _NOWHERE)[: 2 * _MOST_COLUMNS]
        tables = (
            (self._tables[number], place)
            for number, place in zip(called[::2], called[1::2], strict=True)
        )
        return [(table, table.columns[place].name) for table, place in tables]


KNOWN_NAMES = IndexPart(lambda index: KnownNames(index.catalog), ignores_row_counts=True)


def _spelled(table: Table, catalog: Catalog) -> str:
    in_path = next((s for s in catalog.search_path if (s, table.name) in catalog.by_key), None)
    if in_path == table.schema:
        return quoted(table.name)
    return f"{quoted(table.schema)}.{quoted(table.name)}"


def _score(wanted: str, name: str, comment: str | None = None) -> float:
    """0 to 1: how likely who wrote `wanted` meant `name`."""
    said = (_likeness(wanted, words) for words in _said(comment))
    return max(_likeness(wanted, name), _SAID_SCORE * max(said, default=0.0))


def _said(comment: str | None) -> Iterable[str]:
    if comment:
        return [re.split(r"[,，:：;；(（\n]", comment, maxsplit=1)[0][:40]]
    return []


def _likeness(wanted: str, name: str) -> float:
    one = _folded(wanted)
    other = _folded(name)
    if one == other:
        return 1.0
    return max(
        likeness(one, other, _LEAST_SCORE),
        _PART_SCORE * _is_part(one, other),
        _SAME_WORDS * _share_words(wanted, name),
    )


def _is_part(one: str, other: str) -> bool:
    shorter, longer = sorted((one, other), key=len)
    return shorter in longer and (
        len(shorter) >= _LEAST_PART or (bool(shorter) and not shorter.isascii())
    )


def _share_words(wanted: str, name: str) -> float:
    """How alike the words are, in whatever order: all of `wanted`'s in `name`."""
    wanted_words = _words(wanted)
    words = _words(name)
    if not wanted_words or not words:
        return 0.0
    return min(max(likeness(word, other, _LEAST_SCORE) for other in words) for word in wanted_words)


def _words(name: str) -> list[str]:
    return [word.casefold() for word in pieces(name) if len(word) >= _LEAST_PART]


@lru_cache(maxsize=16384)
def _folded(name: str) -> str:
    return "".join(filter(str.isalnum, unicodedata.normalize("NFKC", name).casefold()))
