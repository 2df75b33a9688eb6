"""What patterns of names give: the things and columns that are spoken of."""

from rules.reading.parts import Named, Parts
from rules.reading.words import Item, Match, doubts
from rules.schema.links import Link
from rules.words import WORDS

_NAMES = frozenset(WORDS.both("questions.names"))


def role_of(match: Match) -> str:
    """How the match names a thing; see `Named`."""
    before = match.beside(-1)
    asked = match.get("which", "list") is not None or (before is not None and before.mark.means("which", "list"))
    return "asked" if asked else ""


def thing(match: Match) -> Parts:
    """A table that is named, with its role."""
    table = match["tab"]
    which = match.get("which")
    person = ("person",) if which is not None and which.arg == "person" else ()
    return Parts(tables=(Named(table.first, table.link, role_of(match)),), flags=person)


def attribute(match: Match) -> Parts | None:
    """A column that is shown; of a table named before it."""
    table, column, which = match.get("tab"), match["tcol|dcol|flag"], match.get("which")
    if which is not None and which.arg == "person":
        return None
    if table is not None and column.link.table != table.link.table:
        return None
    if table is not None and match.question.is_chinese and column.first < table.first:
        return None  # `删除的服务区` are areas
    if match.question.is_chinese and _is_of_event(match, column):
        return None  # `用户买过手机`: what was bought is no column of who bought it
    named = Named(column.first, column.link, role_of(match))
    owner = (Named(table.first, table.link, "owner"),) if table is not None else ()
    return Parts(columns=(named,), tables=owner, doubts=doubts(column))


def _is_of_event(match: Match, column: Item) -> bool:
    """Whether the verb before a column names events of another table."""
    before = match.question.nearest(column.first - 1, -1, "noise")
    events = match.question.events_of(before) if before is not None else []
    return bool(events) and column.link.table not in events


def name_of(match: Match) -> Parts | None:
    """`names of customers`, `客户名称`: the names of a table's rows."""
    column, table = match["tcol"], match["tab"]
    facts = match.question.facts(table.link.table)
    if column.word.text not in _NAMES or not facts.display:
        return None
    link = Link("column", table.link.table, facts.display[-1], None, 1.0, "")
    owner = Named(table.first, table.link, "owner")
    return Parts(columns=(Named(column.first, link, role_of(match)),), tables=(owner,))


def shown_too(match: Match) -> Parts | None:
    """ "… and how many of each" at the end: the figures of the groups are shown anyway."""
    words = match.question.words
    return Parts(flags=("shown_too",)) if match.end == len(words) or words[match.end].mark.means("and") else None
