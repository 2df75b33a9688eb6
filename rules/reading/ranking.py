"""What patterns of rankings give: superlatives, first ones, orders."""

from dataclasses import replace

from rules.query.query import AGGREGATES, Figure
from rules.reading.implied import figure_of_rows, is_money, time_dimension
from rules.reading.naming import role_of
from rules.reading.parts import Group, Named, Parts, Ranking
from rules.reading.values import values
from rules.reading.words import Item, Match, doubts
from rules.words import WORDS

_NUMBERS_OF = WORDS.both("questions.numbers_of")
_NUMBER, _NUMBER_EN = (words.text("questions.number") for words in (WORDS.chinese, WORDS.english))
_FIRST_EN, _FIRST_ZH = WORDS.english.one_of("questions.first"), WORDS.chinese.phrases("questions.first")
_LAST = WORDS.english.text("questions.last")
_OF_DATES = ("date", "recent", "age")
_RECENT = 10  # rows shown for "recent orders", which names no number
_MOST_LIMIT, _SORTS = 10_000, ("sort", "order")


def ranking(match: Match) -> Parts | None:
    """A superlative with its figure and number: `订单最多的3个`, "the highest rent", "top 5 by revenue"."""
    word = match["super|max|min|top|rank"]
    said = next((one.arg for one in (word, *match.all("rank")) if one.arg), "")
    arg = said or ("-" if word.symbol == "min" else "+")
    descending = not arg.startswith("-") and arg != "asc"
    hint = arg[1:] if arg[:1] in "+-" and len(arg) > 1 else ""
    limit = limit_of(match)
    if limit is None and match.get("num") is not None:
        return None
    is_first = word.word.text in _FIRST_EN or any(one in word.word.text for one in _FIRST_ZH)
    if word.symbol == "top" and limit is None and not (is_first and not _number_follows(match)):
        return None
    counts = any(one in word.word.text for one in _NUMBERS_OF)
    figure = _figure(match, word, counts=counts)
    if figure is None and match.get("mcol", "dcol", "vals", "tab") is not None:
        return None
    is_order = word.symbol == "rank" and limit is None
    is_open = word.symbol in ("rank", "top") and not arg.startswith(("-", "asc", "desc"))
    if is_order and is_open and figure is not None and word.word.text.startswith(_SORTS):
        descending = figure.function is not None  # "sorted by price" begins with the lowest, "ranked by" with the best
    units = ((time_dimension(item), item.first) for item in match.items)
    ranked = tuple(Group(unit, at, is_ranked=True) for unit, at in units if unit is not None)
    few, hint = _RECENT if hint == "recent" else 1, "" if figure else hint
    found = Ranking(descending, word.first, figure, hint, limit, is_order, counts, is_open, few)
    parts = Parts(rankings=(found,), groups=ranked, doubts=doubts(*match.all("mcol", "dcol")))
    own = values(match) if match.get("vals") is not None else Parts()
    return parts + own if own is not None else None


def by_date(match: Match) -> Parts | None:
    """ "who was hired first": the one with the earliest date."""
    column, last = match["dcol"], match.items[-1]
    if column.word.noun is not None and column.word.noun.is_table:
        return None
    descending = last.word.text == _LAST
    return Parts(rankings=(Ranking(descending, last.first, Figure(None, column.link, position=column.first)),))


def ordered(match: Match) -> Parts | None:
    """ "earliest first", "most expensive supplier first": an order of everything."""
    table = match.get("tab")
    parts = ranking(replace(match, items=tuple(one for one in match.items if one.symbol in ("super", "mcol"))))
    if parts is None:
        return None
    (found,) = parts.rankings
    named = (Named(table.first, table.link),) if table is not None else ()
    return replace(parts, rankings=(replace(found, is_order=True, limit=None),), tables=named)


def ordering(match: Match) -> Parts | None:
    """ "by price", "by number of orders": the figure of a ranking, or an order by itself."""
    figure = _figure(match, match["by"], counts=False)
    if figure is None:
        return None
    found = Ranking(True, match.start, figure, is_order=True, is_open=True)
    return Parts(rankings=(found,), doubts=doubts(*match.all("mcol", "dcol")))


def _number_follows(match: Match) -> bool:
    words = match.question.words
    return match.end < len(words) and words[match.end].mark.number is not None


def limit_of(match: Match) -> int | None:
    """How many the number of the match says; None where it has none, or one that counts nothing."""
    number = match.get("num")
    said = number.word.mark.number if number is not None else None
    if said is None or said.is_percent or said.value != int(said.value):
        return None
    return int(said.value) if 0 < said.value <= _MOST_LIMIT else None


def _figure(match: Match, word: Item, *, counts: bool) -> Figure | None:
    """The figure that a ranking names; None if what it names can't be one."""
    function = next((AGGREGATES[one.symbol] for one in match.all(*AGGREGATES) if one is not word), None)
    hint = word.arg[1:] if word.symbol == "super" else ""
    column = match.get("mcol", "dcol")
    counted = match.get("count") is not None or word.word.text.startswith(_NUMBER)
    if column is not None and _is_counted_money(match, word, column):
        return None
    if column is None:
        return _counted(match, word, counts=counts, counted=counted) if not hint else None
    if column.symbol == "mcol":
        return None if hint in _OF_DATES else Figure(function, column.link, position=column.first)
    if column.word.noun is not None and column.word.noun.is_table and not counted:
        return None  # "recent orders"
    if not (hint in _OF_DATES or (counted and not hint) or word.symbol in ("rank", "by")):
        return None
    return Figure("count" if counted else function, column.link, position=column.first)


def _is_counted_money(match: Match, word: Item, column: Item) -> bool:
    """Whether a word that names money as well is counted: "the highest number of sales"."""
    count = match.get("count")
    counted = count is not None and count.word.text.isascii() or _NUMBER_EN in word.word.text.split()
    return counted and column.symbol == "mcol" and is_money(match.question, column.link)


def _counted(match: Match, word: Item, *, counts: bool, counted: bool) -> Figure | None:
    """A number of rows that a ranking is by: `订单最多`, "the most trucks"."""
    value, table = match.get("vals"), match.get("tab")
    if value is not None:
        says_number = counts and word.symbol == "super" and not match.question.display(value.link)
        return figure_of_rows(match.question, value.link.table, match.start) if says_number else None
    if table is None or not (counted or counts):
        return None
    if table.word.names_figure:
        return None  # "the most tickets", where a column holds their number
    if match.question.is_chinese and not counted and table.first > word.first:
        return None  # `最多的客户` asks for customers
    return Figure("count", table=table.link.table, position=table.first)


def limited(match: Match) -> Parts | None:
    """A number of rows: "list 10 customers"."""
    limit, table = limit_of(match), match["tab"]
    return None if limit is None else Parts(limits=(limit,), tables=(Named(table.first, table.link, role_of(match)),))
