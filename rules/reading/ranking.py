"""Makes parts of patterns of rankings: superlatives, first ones, orders."""

from dataclasses import dataclass, replace

from rules.query.query import AGGREGATES, Figure, Function
from rules.reading.implied import figure_of_rows, is_money, time_dimension
from rules.reading.naming import role_of
from rules.reading.parts import GroupBy, Named, Parts, Ranking
from rules.reading.value_conditions import values
from rules.reading.words import Match, MatchedItem, doubts
from rules.words import WORDS

_NUMBERS_OF = WORDS.both("questions.numbers_of")
_NUMBER = WORDS.chinese.text("questions.number")
_NUMBER_EN = WORDS.english.text("questions.number")
_FIRST_EN = WORDS.english.one_of("questions.first")
_FIRST_ZH = WORDS.chinese.phrases("questions.first")
_LAST = WORDS.english.text("questions.last")
_HOW_MANY = WORDS.english.pattern("questions.how_many")
_OF_DATES = ("date", "recent", "age")
_RECENT = 10  # rows shown for "recent orders", which names no number
_BY = f" {WORDS.english.text('questions.agent')}"
_MOST_LIMIT, _SORTS = 10_000, ("sort", "order")


def ranking(match: Match) -> Parts | None:
    """Rank by a superlative with its figure and number: `订单最多的3个`, "top 5 by revenue"."""
    word = match["super|max|min|top|rank"]
    limit = limit_of(match)
    if limit is None and (_lacks_number(match, word) or _is_agent(match, word)):
        return None

    if _is_done(match, word):
        return None

    counts = _ranks_by_number(word)
    figure = _figure(match, word, counts=counts)
    names_something = match.get("mcol", "dcol", "vals", "tab") is not None
    if figure is None and names_something:
        return None

    own = values(match) if match.get("vals") is not None else Parts()
    if own is None:
        return None

    end = _end_of_order(match, word)
    is_order = word.symbol == "rank" and limit is None
    descending = end.descending
    if is_order and end.is_open:
        descending = _is_best_first(word, figure)

    found = Ranking(
        descending,
        word.first,
        figure,
        hint=end.hint if figure is None else "",
        limit=limit,
        is_order=is_order,
        counts=counts,
        is_open=end.is_open,
        few=_RECENT if end.hint == "recent" else 1,
    )
    ranked = Parts(
        rankings=(found,),
        groups=_ranked_dates(match),
        doubts=doubts(*match.all("mcol", "dcol")),
    )
    return ranked + own


def _is_agent(match: Match, word: MatchedItem) -> bool:
    """Tell whether "by" stands before who did it: "quantity ordered by customer Ann Lee"."""
    question = match.question
    if not word.word.text.endswith(_BY) or word.last + 1 != match.end:
        return False

    thing, name = question.word_at(match.end), question.word_at(match.end + 1)
    if thing is None or "tab" not in thing.senses:
        return thing is not None and "val" in thing.senses

    return name is not None and "val" in name.senses


def _is_done(match: Match, word: MatchedItem) -> bool:
    """Tell whether a word says what was done, and no order: "how many seats were ordered"."""
    asked = match.get("count")
    if asked is None or word.symbol != "rank":
        return False

    is_behind = word.first > asked.last
    return is_behind and _HOW_MANY.fullmatch(asked.word.text) is not None


def _ranks_by_number(word: MatchedItem) -> bool:
    return any(one in word.word.text for one in _NUMBERS_OF)


def _is_best_first(word: MatchedItem, figure: Figure | None) -> bool:
    """Tell whether an order of everything begins with the greatest.

    "ranked by price" does, but "sorted by price" begins with the lowest.
    """
    if figure is None or not word.word.text.startswith(_SORTS):
        return True

    return figure.function is not None


@dataclass(frozen=True)
class _EndOfOrder:
    """The end of the order that a word asks for.

    Attributes:
        hint: concept of the figure that an adjective implies, such as `price`.
        is_open: the word doesn't say which end.
    """

    descending: bool
    hint: str
    is_open: bool


def _end_of_order(match: Match, word: MatchedItem) -> _EndOfOrder:
    """Return which end of an order a superlative means; a sign before its word's hint decides."""
    default = "-" if word.symbol == "min" else "+"
    arg = next((one.arg for one in (word, *match.all("rank")) if one.arg), default)
    has_sign = arg.startswith(("+", "-"))
    is_said = arg.startswith(("-", "asc", "desc"))
    return _EndOfOrder(
        descending=arg != "asc" and not arg.startswith("-"),
        hint=arg[1:] if has_sign else "",
        is_open=word.symbol in ("rank", "top") and not is_said,
    )


def _lacks_number(match: Match, word: MatchedItem) -> bool:
    """Tell whether a ranking lacks the number that it needs; "first" alone means one."""
    if match.get("num") is not None:
        return True
    if word.symbol != "top":
        return False

    text = word.word.text
    is_first = text in _FIRST_EN or any(one in text for one in _FIRST_ZH)
    return not is_first or _number_follows(match)


def _ranked_dates(match: Match) -> tuple[GroupBy, ...]:
    groups = []
    for item in match.items:
        unit = time_dimension(item)
        if unit is not None:
            groups.append(GroupBy(unit, item.first, is_ranked=True))

    return tuple(groups)


def by_date(match: Match) -> Parts | None:
    """Rank by the date of a verb: "who was hired first"."""
    column = match["dcol"]
    last = match.items[-1]
    if column.word.noun is not None and column.word.noun.is_table:
        return None

    figure = Figure(None, column.link, position=column.first)
    found = Ranking(last.word.text == _LAST, last.first, figure)
    return Parts(rankings=(found,))


def ordered(match: Match) -> Parts | None:
    """Put everything in an order: "earliest first", "most expensive supplier first"."""
    table = match.get("tab")
    ranked = tuple(item for item in match.items if item.symbol in ("super", "mcol"))
    parts = ranking(replace(match, items=ranked))
    if parts is None:
        return None

    (found,) = parts.rankings
    order = replace(found, is_order=True, limit=None)
    named = (Named(table.first, table.link),) if table is not None else ()
    return replace(parts, rankings=(order,), tables=named)


def ordering(match: Match) -> Parts | None:
    """Order by a figure, alone or in another ranking: "by price", "by number of orders"."""
    figure = _figure(match, match["by"], counts=False)
    if figure is None:
        return None

    found = Ranking(True, match.start, figure, is_order=True, is_open=True)
    return Parts(rankings=(found,), doubts=doubts(*match.all("mcol", "dcol")))


def _number_follows(match: Match) -> bool:
    after = match.question.word_at(match.end)
    return after is not None and after.mark.number is not None


def limit_of(match: Match) -> int | None:
    """Return the number of rows that the match says; None without one that can be a number."""
    number = match.get("num")
    numeral = number.word.mark.number if number is not None else None
    if numeral is None or numeral.is_percent:
        return None

    limit = int(numeral.value)
    if limit == numeral.value and 0 < limit <= _MOST_LIMIT:
        return limit

    return None


def _figure(match: Match, word: MatchedItem, *, counts: bool) -> Figure | None:
    """Return the figure that a ranking names; None if it names none, or what can't be one.

    Args:
        counts: whether the word ranks by a number of things.
    """
    column = match.get("mcol", "dcol")
    hint = word.arg[1:] if word.symbol == "super" else ""
    is_counted = match.get("count") is not None or word.word.text.startswith(_NUMBER)
    if column is None:
        if not hint:
            return _counted(match, word, counts=counts, is_counted=is_counted)

        return None

    function = _said_function(match, word)
    if column.symbol == "mcol":
        ranks_dates = hint in _OF_DATES
        if ranks_dates or _is_counted_money(match, word, column):
            return None

        return Figure(function, column.link, position=column.first)

    if not _ranks_date(column, word, hint, is_counted=is_counted):
        return None

    return Figure("count" if is_counted else function, column.link, position=column.first)


def _said_function(match: Match, word: MatchedItem) -> Function | None:
    """Return the function that stands beside the word that ranks."""
    for item in match.all(*AGGREGATES):
        if item is not word:
            return AGGREGATES[item.symbol]

    return None


def _ranks_date(column: MatchedItem, word: MatchedItem, hint: str, *, is_counted: bool) -> bool:
    """Tell whether a date is ranked, by an adjective of dates, or is counted."""
    noun = column.word.noun
    names_table = noun is not None and noun.is_table
    if names_table and not is_counted:
        # "recent orders"
        return False
    if is_counted and not hint:
        return True

    return hint in _OF_DATES or word.symbol in ("rank", "by")


def _is_counted_money(match: Match, word: MatchedItem, column: MatchedItem) -> bool:
    """Tell whether a word that names money as well is counted: "the highest number of sales"."""
    if not is_money(match.question, column.link):
        return False

    count = match.get("count")
    has_count = count is not None and count.word.text.isascii()
    return has_count or _NUMBER_EN in word.word.text.split()


def _counted(match: Match, word: MatchedItem, *, counts: bool, is_counted: bool) -> Figure | None:
    """Return the number of rows by which is ranked: `订单最多`, "the most trucks"."""
    value = match.get("vals")
    table = match.get("tab")
    question = match.question
    if value is not None:
        may_count = counts and word.symbol == "super"
        if not may_count or question.display(value.link):
            return None

        return figure_of_rows(question, value.link.table, match.start)

    if table is None or table.word.names_figure:
        # "the most tickets", where a column holds their number
        return None

    # `最多的客户` asks for customers
    is_asked_for = question.is_chinese and table.first >= word.first
    may_count = counts and not is_asked_for
    if not is_counted and not may_count:
        return None

    return Figure("count", table=table.link.table, position=table.first)


def limited(match: Match) -> Parts | None:
    """List a number of rows: "list 10 customers"."""
    limit = limit_of(match)
    table = match["tab"]
    if limit is None:
        return None

    named = Named(table.first, table.link, role_of(match))
    return Parts(limits=(limit,), tables=(named,))
