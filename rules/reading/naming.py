"""Makes parts of patterns of names: the tables and columns that a question speaks of."""

from dataclasses import replace

from rules.reading import costs
from rules.reading.parts import Named, Parts
from rules.reading.words import Match, MatchedItem, doubts
from rules.schema.links import Link
from rules.words import WORDS
from rules.words.speech import is_participle

_NAMES = frozenset(WORDS.both("questions.names"))


def role_of(match: Match) -> str:
    """Return `asked` if the match, or the word before it, asks for the named thing; see `Named`."""
    if match.get("which", "list") is not None or match.is_after("which", "list"):
        return "asked"

    return ""


def thing(match: Match) -> Parts:
    """Name a table, with its role."""
    table = match["tab"]
    which = match.get("which")
    named = Named(table.first, table.link, role_of(match))
    is_person = which is not None and which.arg == "person"
    return Parts(tables=(named,), flags=("person",) if is_person else ())


def attribute(match: Match) -> Parts | None:
    """Show a column, of a table if one is named beside it."""
    table = match.get("tab")
    column = match["tcol|dcol|flag"]
    which = match.get("which")
    if which is not None and which.arg == "person":
        return None
    if match.question.is_chinese and _is_of_event(match, column):
        # `用户买过手机`: what was bought is no column of who bought it
        return None

    asks_when = any("which:when" in word.senses for word in match.question.words)
    if table is not None and not asks_when and _is_done(column):
        return None

    named = Named(column.first, column.link, role_of(match))
    shown = Parts(columns=(named,), doubts=doubts(column))
    if table is None:
        return shown
    if column.link.table != table.link.table:
        return None
    if match.question.is_chinese and column.first < table.first:
        # `删除的服务区` are areas
        return None

    return replace(shown, tables=(Named(table.first, table.link, "owner"),))


def _is_done(column: MatchedItem) -> bool:
    """Tell whether a participle behind a thing says what was done: "deliveries delivered"."""
    is_part = column.symbol == "dcol" and column.link.quality < costs.WHOLE_NAME
    return is_part and column.word.text.isascii() and is_participle(column.word.text)


def _is_of_event(match: Match, column: MatchedItem) -> bool:
    """Tell whether the verb before a column names events of another table."""
    before = match.question.nearest(column.first - 1, -1, "noise")
    events = match.question.events_of(before) if before is not None else []
    return bool(events) and column.link.table not in events


def names_of_rows(match: Match) -> Parts | None:
    """Show the display column of a table that is named beside the word "name".

    Examples are `客户名称` and "names of customers".
    """
    column = match["tcol"]
    table = match["tab"]
    facts = match.question.facts(table.link.table)
    if column.word.text not in _NAMES or not facts.display:
        return None

    link = Link("column", table.link.table, facts.display[-1], None, 1.0, "")
    owner = Named(table.first, table.link, "owner")
    return Parts(columns=(Named(column.first, link, role_of(match)),), tables=(owner,))


def shown_too(match: Match) -> Parts | None:
    """Note "… and how many of each" at the end: the figures of groups are shown anyway."""
    after = match.question.word_at(match.end)
    if after is None or after.mark.means("and"):
        return Parts(flags=("shown_too",))

    return None
