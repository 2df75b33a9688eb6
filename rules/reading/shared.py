"""x"""

from common.meanings import TableKey
from rules.query.query import ColumnRef
from rules.reading.matching import Match
from rules.schema.links import Link


def ref(link: Link) -> ColumnRef:
    """The column a link means."""
    assert link.column is not None
    return ColumnRef(link.table, link.column, is_age=link.derived == "age")


def is_negated(match: Match) -> bool:
    """Whether the match has a word for "not"."""
    return len(match.all("not", "except_end")) > 0


def table_of(match: Match) -> TableKey:
    """The table that the match names."""
    return match["tab"].link.table
