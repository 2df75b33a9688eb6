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
_MOST_NAMES = 5
_FEW_TABLES = 300  # up to here all tables are compared
_MOST_COLUMNS = 500  # of one name, in as many tables
_LEAST_SCORE = 0.6
_SAID_SCORE = 0.95  # of names that their comment explains by what was written
_PART_SCORE = 0.7  # of names one of which contains the other
_ELSEWHERE_SCORE = 0.9  # of columns of that very name in other tables
_SAME_WORDS = 0.8  # of names whose words are the same, but for their number and order
_LEAST_PART = 3  # characters; shorter parts are shared by chance

_NOWHERE = array("I")

_NAME_END = re.compile(r"[,，:：;；(（\n]")
_LONGEST_NAME = 40  # characters of a comment's name
_NAME = r'(?:"(?:[^"]|"")+"|[^\W\d][\w$]*)'
_DOTTED = re.compile(rf"{_NAME}(?:\s*\.\s*{_NAME})*")
_PART = re.compile(_NAME)
_IN_MESSAGE = re.compile(r'["“«「]([^"“”«»「」]+)["”»」]|\b(\w+\.\w+)\b')


def with_suggestions(error: InvalidSql, sql: str, catalog: Catalog) -> InvalidSql:
    """Say in `error` which names may have been meant, if it is about an unknown table or column."""
    names = suggested_names(error, sql, catalog)
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


def suggested_names(error: InvalidSql, sql: str, catalog: Catalog) -> tuple[str, ...]:
    """Return names that resemble the one `error` misses, as SQL takes them, the nearest first.

    There are five at most.
    """
    missing = _missing(error, sql)
    if missing is None:
        return ()

    references_read = references(sql, catalog)
    find = _columns if missing.is_column else _tables
    near = _nearest(find(missing, references_read, catalog))
    gone = _itself(missing, catalog)
    names = [name for name in near if name != gone]
    return tuple(names[:_MOST_NAMES])


def _nearest(scored: Iterable[tuple[float, str]]) -> list[str]:
    """Return the names with a good score, each once, the best first."""
    near = [(score, name) for score, name in scored if score >= _LEAST_SCORE]
    near.sort(key=lambda scored_name: -scored_name[0])
    return list(dict.fromkeys(name for _, name in near))


def _itself(missing: "_Missing", catalog: Catalog) -> str:
    """Spell the missing name as a suggestion.

    A catalogue that is older than the change may still have it.
    """
    if missing.owner is None:
        return quoted(missing.name)

    table = catalog.by_key.get((missing.owner, missing.name))
    if table is not None and not missing.is_column:
        return _name_in_sql(table, catalog)

    return f"{quoted(missing.owner)}.{quoted(missing.name)}"


def suggested_tables(name: str, catalog: Catalog) -> tuple[str, ...]:
    """Return tables whose name or comment resembles `name`, as SQL takes them, the nearest first.

    There are five at most.
    """
    scored = []
    for table in KNOWN_NAMES.of(catalog).tables_like(name):
        score = _score(name, table.name, table.comment)
        scored.append((score, _name_in_sql(table, catalog)))

    return tuple(_nearest(scored)[:_MOST_NAMES])


@dataclass(frozen=True)
class _Missing:
    """The name that does not exist.

    Attributes:
        owner: the table or schema it is qualified with.
        is_source: it is an alias that no FROM introduces.
    """

    name: str
    owner: str | None
    is_column: bool
    is_source: bool = False


def _missing(error: InvalidSql, sql: str) -> _Missing | None:
    if error.sqlstate not in (UNKNOWN_TABLE, UNKNOWN_COLUMN):
        return None

    name_in_message = _quoted_name(error.detail)
    parts = _parts_at(sql, error.position) or _parts(name_in_message)
    if not parts:
        return None

    name = parts[-1]
    owner = None
    if len(parts) > 1:
        owner = parts[-2]
    if error.sqlstate == UNKNOWN_COLUMN:
        return _Missing(name, owner, is_column=True)
    # "missing FROM-clause entry" points at `alias.column` and names the alias alone.
    if owner is not None and name_in_message == owner:
        return _Missing(owner, None, is_column=False, is_source=True)

    return _Missing(name, owner, is_column=False)


def _quoted_name(message: str) -> str:
    """Return the name that a message of PostgreSQL's quotes; empty when it quotes none."""
    match = _IN_MESSAGE.search(message)
    if match is None:
        return ""

    return match[1] or match[2]


def _parts_at(sql: str, position: int | None) -> list[str]:
    if not position:
        return []

    written = _DOTTED.match(sql, position - 1)
    if written is None:
        return []

    return _parts(written.group())


def _parts(dotted: str) -> list[str]:
    parts = []
    for written in _PART.findall(dotted):
        part = written.lower()
        if written.startswith('"'):
            part = written[1:-1].replace('""', '"')

        parts.append(part)

    return parts


def _tables(
    missing: _Missing, references_read: ColumnReferences, catalog: Catalog
) -> Iterator[tuple[float, str]]:
    if missing.is_source:
        for alias, table in references_read.sources.items():
            score = max(_LEAST_SCORE, _score(missing.name, alias))
            is_its_table = table is not None and table.name == missing.name
            if is_its_table:
                score = 1.0

            yield score, quoted(alias)

    for table in KNOWN_NAMES.of(catalog).tables_like(missing.name):
        # The right name in the wrong schema is nearer than any other name.
        yield _score(missing.name, table.name, table.comment), _name_in_sql(table, catalog)


def _columns(
    missing: _Missing, references_read: ColumnReferences, catalog: Catalog
) -> Iterator[tuple[float, str]]:
    sources = references_read.sources
    if missing.owner is not None and missing.owner in sources:
        sources = {missing.owner: sources[missing.owner]}

    prefix = ""
    if missing.owner:
        prefix = f"{quoted(missing.owner)}."

    for table in filter(None, sources.values()):
        for column in table.columns:
            score = _score(missing.name, column.name, column.comment)
            yield score, f"{prefix}{quoted(column.name)}"

    for label in references_read.labels - {missing.name}:
        yield _score(missing.name, label), f"{prefix}{quoted(label)}"

    yield from _elsewhere(missing.name, references_read, catalog)


def _elsewhere(
    name: str, references_read: ColumnReferences, catalog: Catalog
) -> Iterator[tuple[float, str]]:
    """Yield columns of that very name in tables the query does not read: a join is missing."""
    read = {table.key for table in references_read.sources.values() if table}
    for table, column in KNOWN_NAMES.of(catalog).columns_called(name):
        if table.key in read:
            continue

        owner = _name_in_sql(table, catalog)
        yield _ELSEWHERE_SCORE, f"{owner}.{quoted(column)}"


class KnownNames:
    """The names of one catalogue, to be found among thousands without comparing all."""

    def __init__(self, catalog: Catalog) -> None:
        self._tables = catalog.tables
        names = [" ".join((table.name, *_said(table.comment))) for table in catalog.tables]
        self._like = LikeNames(names, few=_FEW_TABLES)
        # The number of the table, then of the column, of each.
        self._columns: dict[str, array[int]] = {}
        for number, table in enumerate(catalog.tables):
            for place, column in enumerate(table.columns):
                places = self._columns.setdefault(_folded(column.name), array("I"))
                places.extend((number, place))

    def tables_like(self, name: str) -> Iterator[Table]:
        """Yield tables whose name or comment may resemble `name`; all, where there are few."""
        for number in self._like.like(name):
            yield self._tables[number]

    def columns_called(self, name: str) -> Sequence[tuple[Table, str]]:
        """Return columns of that name, with their tables, as many as are worth comparing."""
        called = self._columns.get(_folded(name), _NOWHERE)[: 2 * _MOST_COLUMNS]
        columns = []
        for number, place in zip(called[::2], called[1::2], strict=True):
            table = self._tables[number]
            columns.append((table, table.columns[place].name))

        return columns


KNOWN_NAMES = IndexPart(
    lambda index: KnownNames(index.catalog),
    ignores_row_counts=True,
    address="knowledge.tables.name_suggestions:KNOWN_NAMES",
)


def _name_in_sql(table: Table, catalog: Catalog) -> str:
    in_path = next((s for s in catalog.search_path if (s, table.name) in catalog.by_key), None)
    if in_path == table.schema:
        return quoted(table.name)

    return f"{quoted(table.schema)}.{quoted(table.name)}"


def _score(wanted: str, name: str, comment: str | None = None) -> float:
    """Rate how likely who wrote `wanted` meant `name`, 0 to 1."""
    scores = [_likeness(wanted, words) for words in _said(comment)]
    best_of_comment = max(scores, default=0.0)
    return max(_likeness(wanted, name), _SAID_SCORE * best_of_comment)


def _said(comment: str | None) -> Iterable[str]:
    """Return what a comment calls its thing, if there is one."""
    if not comment:
        return []

    name = _NAME_END.split(comment, maxsplit=1)[0]
    return [name[:_LONGEST_NAME]]


def _likeness(wanted: str, name: str) -> float:
    wanted_folded = _folded(wanted)
    name_folded = _folded(name)
    if wanted_folded == name_folded:
        return 1.0

    return max(
        likeness(wanted_folded, name_folded, _LEAST_SCORE),
        _PART_SCORE * _is_part(wanted_folded, name_folded),
        _SAME_WORDS * _share_words(wanted, name),
    )


def _is_part(one: str, other: str) -> bool:
    """Tell whether one name is within the other, and long enough to mean something."""
    shorter, longer = sorted((one, other), key=len)
    if shorter not in longer:
        return False
    if len(shorter) >= _LEAST_PART:
        return True

    return not shorter.isascii()


def _share_words(wanted: str, name: str) -> float:
    """Rate how alike the words are, in whatever order: all of `wanted`'s in `name`."""
    wanted_words = _words(wanted)
    words = _words(name)
    if not wanted_words or not words:
        return 0.0

    scores = []
    for word in wanted_words:
        best = max(likeness(word, candidate, _LEAST_SCORE) for candidate in words)
        scores.append(best)

    return min(scores)


def _words(name: str) -> list[str]:
    return [word.casefold() for word in pieces(name) if len(word) >= _LEAST_PART]


@lru_cache(maxsize=16384)
def _folded(name: str) -> str:
    return "".join(filter(str.isalnum, unicodedata.normalize("NFKC", name).casefold()))
