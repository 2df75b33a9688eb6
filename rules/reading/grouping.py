"""What patterns of groups give: by tables, columns, kinds and units of time."""

from common.meanings import TableKey
from rules.query.query import Dimension, Figure
from rules.reading.implied import column_dimension, time_dimension
from rules.reading.parts import NO_TABLE, Group, Named, Parts
from rules.reading.words import Match, Question, doubts
from rules.schema.links import Link
from rules.words import WORDS

_WHO = WORDS.english.text("questions.who")
_KINDS = WORDS.both("questions.kinds")
_DISTRIBUTION = WORDS.chinese.one_of("questions.distribution")
_LEAST_KIND = 0.6


def groups(match: Match) -> Parts | None:
    """Groups by tables, columns and units of time: `各公司和各省份`, "by region and status"."""
    found: list[Group] = []
    question = match.question
    kind = any(one.arg in ("kind", "sort") for one in match.items)
    if kind and any("tab" in one.word.senses for one in match.items):
        return None
    by = match.get("by") is not None and match.get("each") is None
    if by and match["by"].word.text == "by" and _is_agent(match):
        table = match.get("tab")
        return Parts(tables=(Named(table.first, table.link),)) if table is not None else None
    for item in match.items:
        dimension = Dimension(item.link.table) if item.symbol == "tab" else time_dimension(item)
        if item.symbol in ("tcol", "flag", "dcol"):
            dimension = column_dimension(question, item.link)
        if dimension is not None:
            found.append(Group(dimension, item.first, by=by))
    return Parts(groups=tuple(found), doubts=doubts(*match.all("tcol", "flag", "dcol")))


def _is_agent(match: Match) -> bool:
    """Whether "by" names who did something instead of a group: `orders placed by customers from Japan`."""
    before = match.question.words[match.start - 1] if match.start else None
    after = match.beside(1)
    said = after is not None and ("val" in after.senses or after.mark.means("with", "from") or after.text == _WHO)
    return before is not None and before.mark.means("verb") and match.get("tab", "tcol") is not None and said


def dated_group(match: Match) -> Parts | None:
    """Units of time of a date that is named: `每年入住的业主数`."""
    link = match["dcol"].link
    if match.question.kind(link) not in ("date", "timestamp"):
        return None
    unit = match["bucket"].arg
    return Parts(groups=(Group(Dimension(link.table, link.column, unit), match.start),))  # type: ignore[arg-type]


def asked_date(match: Match) -> Parts | None:
    """`哪年成立`: when something happened, and not the year of a figure."""
    column = match["dcol"]
    if match.question.has("super", "top", "count", "sum", "avg", "max", "min"):
        return None
    return Parts(columns=(Named(column.first, column.link, "asked"),), doubts=doubts(column))


def compared_dates(match: Match) -> Parts:
    """Units of time whose figures are compared: "how many days had revenue over 10 million"."""
    dates = match["date_part"]
    found = Group(Dimension(NO_TABLE, None, dates.arg), dates.first)  # type: ignore[arg-type]
    return Parts(groups=(found,), flags=("how_many", "periods") if match.get("count") else ("periods",))


def growth(match: Match) -> Parts:
    """How figures change: `同比`, "month over month growth"."""
    args = [one.arg for one in match.all("growth") if one.arg]
    return Parts(flags=("growth", *(f"growth:{arg}" for arg in args)))


def distribution(match: Match) -> Parts | None:
    """`工单状态分布`: groups by the column, and counts rows if no other figure is asked for."""
    column = match["tcol|flag"]
    if match["by_end"].word.text not in _DISTRIBUTION:
        return groups(match)
    found = Group(column_dimension(match.question, column.link), column.first)
    return Parts(groups=(found,), flags=("distribution",), doubts=doubts(column))


def kinds(match: Match) -> Parts | None:
    """Groups by the column that says of which kind a thing is: `每类店铺`, "which kind of shop"."""
    table = match["tab"]
    word = match["each|which|by"]
    links = _kind_columns(match.question, table.link.table)
    if not links or (word.arg == "sort" and len(table.word.text) < 2):
        return None
    rivals = tuple(link for link in links if link.quality >= links[0].quality - 0.1)
    unclear = ((word.word.mark.text, rivals),) if len(rivals) > 1 else ()
    named = Named(table.first, table.link, "owner")
    figures = (Figure("count", table=table.link.table, position=table.first),) if match.get("count") else ()
    dimension = column_dimension(match.question, links[0])
    group = Group(dimension, match.start, is_kind=True, by=match.get("by") is not None)
    return Parts(groups=(group,), doubts=unclear, tables=(named,), figures=figures)


def _kind_columns(question: Question, table: TableKey) -> list[Link]:
    found: dict[str | None, Link] = {}
    for link in (link for name in _KINDS for link in question.lexicon.find(name)):
        suits = link.kind == "column" and link.table == table and link.quality >= _LEAST_KIND
        if suits and not question.is_measure(link) and link.quality > getattr(found.get(link.column), "quality", 0):
            found[link.column] = link
    return sorted(found.values(), key=lambda link: -link.quality)
