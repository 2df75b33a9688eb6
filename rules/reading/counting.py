"""Makes parts of patterns of figures: counts, totals, averages, shares."""

import re
from decimal import Decimal

from rules.query.query import AGGREGATES, Dimension, Figure, Function
from rules.reading.implied import amount_of, figure_of_rows, is_counted_by_word, is_number
from rules.reading.parts import Flag, GroupBy, Named, Parts
from rules.reading.value_conditions import value_or_flag, values
from rules.reading.words import Match, MatchedItem, QuestionWords, doubts
from rules.schema.links import column_link
from rules.words import WORDS

_HOW_MUCH = frozenset(
    (*WORDS.chinese.phrases("questions.how_much"), *WORDS.chinese.phrases("questions.money"))
)
_ASKS_NUMBER = WORDS.chinese.pattern("questions.asks_number", "^", "$")
_AMOUNTS = WORDS.chinese.phrases("questions.amounts")
_HOW_MUCH_MONEY = frozenset(WORDS.english.get("questions.money"))
_PAYS = re.compile(WORDS.any_of("questions.pays"))
_BEFORE_COUNTED = WORDS.english.phrases("questions.before_counted")
_COUNTS_ROWS = WORDS.both("questions.counts_rows")
_ALL = 100  # percent


def count_values(match: Match) -> Parts | None:
    """Count the rows that have a value or a flag, where no table is named: "how many professors".

    None for a value that is the name of one row, which nobody counts.
    """
    link = match["vals|flag"].link
    if match.question.display(link):
        return None

    figure = figure_of_rows(match.question, link.table, match.start)
    parts = value_or_flag(match)
    if figure is None or parts is None:
        return None

    return parts + Parts(figures=(figure,))


def count(match: Match) -> Parts | None:
    """Count the rows of tables."""
    word = match["count"]
    tables = match.all("tab")
    if word.arg == "money" or _rows_follow(match):
        return None
    if not _counts(match.question, word, tables[0]):
        return None
    if len(tables) > 1 and any("mcol" in table.word.senses for table in tables):
        # `车流量和店铺数量`: the other noun is a figure already, which is not counted
        return None

    figures = [_number_of(match.question, table) for table in tables]
    return Parts(figures=tuple(figures))


def _count_of(table: MatchedItem) -> Figure:
    return Figure("count", table=table.link.table, position=table.first)


def _number_of(question: QuestionWords, table: MatchedItem) -> Figure:
    """Return how many there are of a table's thing: its rows, or what they say they stand for."""
    quantity = question.facts(table.link.table).own_quantity
    if quantity is None:
        return _count_of(table)

    return Figure("sum", column_link(table.link.table, quantity.name), position=table.first)


def total_asked(match: Match) -> Parts | None:
    """Count rows (`店铺一共多少`) or add up an amount of money (`缴费总额`)."""
    word = match["sum"].word.text
    table = match["tab"]
    if _ASKS_NUMBER.match(word):
        return total_rows(match)
    if not word.endswith(_AMOUNTS):
        return None

    link = amount_of(match.question, table.link.table)
    if link is not None:
        return Parts(figures=(Figure("sum", link, position=table.first),))

    return None


def amount(match: Match) -> Parts | None:
    """Add up the money of a table, or of its rows with a value: `缴费一共多少钱`."""
    if match["count"].arg != "money" and not _is_after_paying(match):
        return None

    value = match.get("vals")
    thing = match.get("tab") or match["vals"]
    link = amount_of(match.question, thing.link.table)
    own = values(match) if value is not None else Parts()
    if link is None or own is None:
        return None

    return own + Parts(figures=(Figure("sum", link, position=thing.first),))


def _is_after_paying(match: Match) -> bool:
    before = match.beside(-1)
    if before is None or not before.mark.means("verb"):
        return False

    return _PAYS.fullmatch(before.text) is not None


def count_rows(match: Match) -> Parts | None:
    """Count rows of a table whose name alone would mean a figure: "revenue records"."""
    thing = match["tab|mcol"]
    word = match["count"].word.text
    says_rows = match.get("noise") is not None or any(
        counts_row in word for counts_row in _COUNTS_ROWS
    )
    if not says_rows:
        return None
    if thing.symbol == "mcol" and "tab" in thing.word.senses:
        return None

    return Parts(figures=(_count_of(thing),))


def _counts(question: QuestionWords, word: MatchedItem, table: MatchedItem) -> bool:
    """Tell whether the word counts the table, or asks for the figure that the table's name means.

    It also has to stand on the side that it counts: `多少客户` and `客户数`, but not `数客户`.
    """
    text = word.word.text
    if _asks_for_figure(question, text, table):
        return False
    if word.first < table.first:
        return text.isascii() or _ASKS_NUMBER.match(text) is not None

    return not (text.isascii() and text.startswith(_BEFORE_COUNTED))


def _asks_for_figure(question: QuestionWords, text: str, table: MatchedItem) -> bool:
    figure = table.word.senses.get("mcol")
    if figure is None or figure.link is None:
        return False
    if figure.cost > 0 and not table.word.names_figure:
        return False
    if text in _HOW_MUCH:
        # `收入多少` asks for the income, although the table of daily incomes has the same name
        return True

    # "how many visits" adds up the visits of each day, "how many sales" counts them
    return text.isascii() and (table.word.names_figure or is_number(question, figure.link))


def count_column(match: Match) -> Parts | None:
    """Count the values of a column.

    Numbers are added up, dates are counted as events, other values are counted once each.
    """
    item = match["tcol|dcol|mcol"]
    word = match["count"]
    question = match.question
    link = item.link
    text = word.word.text
    if word.arg == "money" or _rows_follow(match) or question.is_flag(link):
        return None

    if _is_label(match, item):
        return None

    is_before = word.first < item.first
    if is_before and not text.isascii() and not _ASKS_NUMBER.match(text):
        return None
    if match.get("distinct") is not None:
        return _counted_column("count_distinct", item)
    if question.is_measure(link):
        return _added_up(question, text, item)
    if question.is_date(link):
        between = question.words[word.last + 1 : item.first]
        if any(one.mark.means("verb") for one in between):  # "how many places are left"
            return None

        return _counted_column("count", item)

    return _counted_column("count_distinct", item)


def _is_label(match: Match, column: MatchedItem) -> bool:
    """Tell whether a column only labels its value: "how many high severity incidents"."""
    named = column.link.table, column.link.column
    return any((one.link.table, one.link.column) == named for one in match.inner)


def _counted_column(function: Function, item: MatchedItem) -> Parts:
    return Parts(figures=(Figure(function, item.link, position=item.first),), doubts=doubts(item))


def _added_up(question: QuestionWords, text: str, item: MatchedItem) -> Parts | None:
    """Ask for a measure by a word for "how many" or "how much"."""
    link = item.link
    if text.isascii():
        is_asked = is_counted_by_word(question, link)
    elif text in _HOW_MUCH:
        is_asked = True
    else:  # `多少人挂号` is no 挂号费
        is_asked = question.facts(link.table).is_count(question.column_of(link))

    if is_asked:
        return _plain_measure(item, flags=("how_much",))

    return None


def _rows_follow(match: Match) -> bool:
    after = match.question.word_at(match.end)
    return after is not None and after.mark.arg == "rows"


def measure(match: Match) -> Parts | None:
    """Ask for a measure without a function; with a word for "how much" for its total."""
    asked = match.get("count")
    column = match["mcol"]
    if asked is None:
        return _plain_measure(column)

    text = asked.word.text
    if _rows_follow(match) or not (text.isascii() or text in _HOW_MUCH):
        return None
    if text.isascii() and not is_counted_by_word(match.question, column.link):
        return None

    return _plain_measure(column, flags=("how_much",))


def _plain_measure(column: MatchedItem, flags: tuple[Flag, ...] = ()) -> Parts:
    figure = Figure(None, column.link, position=column.first)
    return Parts(bare=(figure,), doubts=doubts(column), flags=flags)


def owned_measure(match: Match) -> Parts | None:
    """Ask for a measure after the table that it belongs to: "order amount"."""
    table = match["tab"]
    column = match["mcol"]
    if column.link.table != table.link.table:
        return None

    parts = measure(match)
    if parts is None:
        return None

    return parts + Parts(tables=(Named(table.first, table.link, "owner"),))


def aggregate(match: Match) -> Parts | None:
    """Ask for functions over measures: "max and min price"; of dates only the first and last."""
    functions = list(dict.fromkeys(AGGREGATES[one.symbol] for one in match.all(*AGGREGATES)))
    columns = match.all("mcol", "dcol")
    has_dates = any(one.symbol == "dcol" for one in columns)
    if has_dates and not {"max", "min"}.issuperset(functions):
        return None

    percent = _percent_of(match)
    if "percentile" in functions and (percent is None or not 0 < percent < _ALL):
        return None

    figures = []
    for column in columns:
        for function in functions:
            figures.append(Figure(function, column.link, position=column.first, percent=percent))

    return Parts(figures=tuple(figures), doubts=doubts(*columns))


def _percent_of(match: Match) -> Decimal | None:
    item = match.get("num")
    number = item.word.mark.number if item is not None else None
    return number.value if number is not None else None


def owned_aggregate(match: Match) -> Parts | None:
    """Ask for a function over a measure of the table that is named: "average order amount"."""
    if match["mcol"].link.table != match["tab"].link.table:
        return None

    return aggregate(match)


def asked_number(match: Match) -> Parts:
    """Note a word for "how many" or "how much money" without anything counted beside it."""
    money = ("money",) if match["count"].arg == "money" else ()
    return Parts(flags=("how_many", *money))


def asked_total(match: Match) -> Parts:
    """Note a word for a total or for "how much" without a figure beside it."""
    money = ("money",) if match["sum"].word.text in _HOW_MUCH_MONEY else ()
    return Parts(flags=("sum", *money))


def total_rows(match: Match) -> Parts | None:
    """Count rows, of which a total is the number: "total orders"."""
    if match["sum"].word.text in _HOW_MUCH_MONEY:
        return None

    return Parts(figures=(_count_of(match["tab"]),))


def averaged_per_unit(match: Match) -> Parts:
    """Average totals over units of time: `日均车流量`, "average daily revenue"."""
    word = match["avg_per|bucket"]
    column = match["mcol"]
    figure = Figure(
        "avg",
        column.link,
        position=column.first,
        per_unit=word.arg,  # type: ignore[arg-type]
    )
    return Parts(figures=(figure,), doubts=doubts(column))


def per_entity(match: Match) -> Parts | None:
    """Average over things: `平均每个服务区有多少店铺`, "average number of orders per customer"."""
    table = match.get("tab")
    parts = Parts(flags=("per_entity",))
    if table is None:
        # `平均每单` is over what 单 means
        is_over_next = match.question.means(match.end, "inclusion")
        return None if is_over_next else parts

    if table.word.text.isascii():
        return parts + Parts(figures=(_count_of(table),))

    group = GroupBy(Dimension(table.link.table), table.first)
    return parts + Parts(groups=(group,))


def share(match: Match) -> Parts:
    """Ask for a share, of the measure or table that is named beside it."""
    table = match.get("tab")
    column = match.get("mcol")
    parts = Parts(flags=("share",))
    if column is not None:
        return parts + _plain_measure(column)
    if table is not None:
        return parts + Parts(tables=(Named(table.first, table.link, "shared"),))

    return parts
