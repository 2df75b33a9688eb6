"""Makes parts of patterns of groups: by tables, columns, kinds and units of time."""

from rules.query.query import Dimension, Figure
from rules.reading.implied import column_dimension, kind_columns, time_dimension
from rules.reading.parts import NO_TABLE, Flag, GroupBy, Named, Parts
from rules.reading.words import Match, MatchedItem, QuestionWords, doubts
from rules.words import WORDS

_THEIRS = frozenset(WORDS.both("questions.theirs"))
_WHO = WORDS.english.text("questions.who")
_DISTRIBUTION = WORDS.chinese.one_of("questions.distribution")
_AS_GOOD = 0.1  # by which the quality of another such column may be lower


def groups(match: Match) -> Parts | None:
    """Group by tables, columns and units of time: `各公司和各省份`, "by region and status"."""
    if _asks_for_kind_of_table(match) or _is_of_theirs(match):
        return None

    by = match.get("by")
    if match.get("each") is not None:
        by = None
    if by is not None and by.word.text == "by" and _is_agent(match):
        table = match.get("tab")
        if table is not None:
            return Parts(tables=(Named(table.first, table.link),))

        return None

    group_parts: list[GroupBy] = []
    for item in match.items:
        dimension = _dimension(match.question, item)
        if dimension is not None:
            group_parts.append(GroupBy(dimension, item.first, by=by is not None))

    return Parts(groups=tuple(group_parts), doubts=doubts(*match.all("tcol", "flag", "dcol")))


def _asks_for_kind_of_table(match: Match) -> bool:
    """Tell whether kinds of things are asked for, which `kinds` groups by."""
    has_table = any("tab" in item.word.senses for item in match.items)
    if not has_table:
        return False

    return any(item.arg in ("kind", "sort") for item in match.items)


def _is_of_theirs(match: Match) -> bool:
    """Tell whether what is joined belongs to the first group: "per grade and their sailings"."""
    words = match.question.words[match.start : match.end]
    return any(word.text in _THEIRS for word in words)


def _dimension(question: QuestionWords, item: MatchedItem) -> Dimension | None:
    if item.symbol == "tab":
        return Dimension(item.link.table)
    if item.symbol in ("tcol", "flag", "dcol"):
        return column_dimension(question, item.link)

    return time_dimension(item)


def _is_agent(match: Match) -> bool:
    """Tell whether "by" names an agent, no group: `orders placed by customers from Japan`."""
    if not match.question.means(match.start - 1, "verb"):
        return False

    after = match.beside(1)
    if after is None or match.get("tab", "tcol") is None:
        return False
    if "val" in after.senses or after.text == _WHO:
        return True

    return after.mark.means("with", "from")


def dated_group(match: Match) -> Parts | None:
    """Group by units of a date that is named: `每年入住的业主数`."""
    link = match["dcol"].link
    if match.question.kind(link) not in ("date", "timestamp"):
        return None

    dimension = Dimension(link.table, link.column, match["bucket"].arg)  # type: ignore[arg-type]
    return Parts(groups=(GroupBy(dimension, match.start),))


def asked_date(match: Match) -> Parts | None:
    """Ask when something happened, not for a figure by years: `哪年成立`."""
    column = match["dcol"]
    if match.question.has("super", "top", "count", "sum", "avg", "max", "min"):
        return None

    return Parts(columns=(Named(column.first, column.link, "asked"),), doubts=doubts(column))


def compared_dates(match: Match) -> Parts:
    """Group by units of time whose figures are compared: "days with revenue over 10 million"."""
    dates = match["date_part"]
    dimension = Dimension(NO_TABLE, None, dates.arg)  # type: ignore[arg-type]
    flags: tuple[Flag, ...] = ("periods",)
    if match.get("count") is not None:
        flags = ("how_many", "periods")

    return Parts(groups=(GroupBy(dimension, dates.first),), flags=flags)


def growth(match: Match) -> Parts:
    """Ask how figures change: `同比`, "month over month growth"."""
    flags = ["growth"]
    for item in match.all("growth"):
        if item.arg:
            flags.append(f"growth:{item.arg}")

    return Parts(flags=tuple(flags))


def distribution(match: Match) -> Parts | None:
    """Group by a column, and count rows if no other figure is asked for: `工单状态分布`."""
    column = match["tcol|flag"]
    if match["by_end"].word.text not in _DISTRIBUTION:
        return groups(match)

    group = GroupBy(column_dimension(match.question, column.link), column.first)
    return Parts(groups=(group,), flags=("distribution",), doubts=doubts(column))


def kinds(match: Match) -> Parts | None:
    """Group by the column that says of which kind a thing is: `每类店铺`, "which kind of shop"."""
    table = match["tab"]
    word = match["each|which|by"]
    if word.arg == "sort" and len(table.word.text) < 2:
        return None

    links = kind_columns(match.question, table.link.table)
    if not links:
        return None

    best = links[0]
    rivals = tuple(link for link in links if link.quality >= best.quality - _AS_GOOD)
    unclear = ((word.word.mark.text, rivals),) if len(rivals) > 1 else ()
    count = Figure("count", table=table.link.table, position=table.first)
    group = GroupBy(
        column_dimension(match.question, best),
        match.start,
        is_kind=True,
        by=match.get("by") is not None,
    )
    return Parts(
        groups=(group,),
        doubts=unclear,
        tables=(Named(table.first, table.link, "owner"),),
        figures=(count,) if match.get("count") is not None else (),
    )
