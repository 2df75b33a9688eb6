"""What patterns of figures give: counts, totals, averages, shares."""

import re

from rules.query.query import AGGREGATES, Dimension, Figure, Function
from rules.reading.implied import amount_of, figure_of_rows, is_money, is_number
from rules.reading.parts import Group, Named, Parts
from rules.reading.values import value_or_flag, values
from rules.reading.words import Item, Match, Question, doubts
from rules.words import WORDS

_HOW_MUCH = frozenset((*WORDS.chinese.phrases("questions.how_much"), *WORDS.chinese.phrases("questions.money")))
_ASKS_NUMBER = WORDS.chinese.pattern("questions.asks_number", "^", "$")
_AMOUNTS = WORDS.chinese.phrases("questions.amounts")
_HOW_MUCH_MONEY = frozenset(WORDS.english.get("questions.money"))
_PAYS = re.compile(WORDS.any_of("questions.pays"))
_BEFORE_COUNTED = WORDS.english.phrases("questions.before_counted")
_COUNTS_ROWS = WORDS.both("questions.counts_rows")
_ALL = 100


def count_values(match: Match) -> Parts | None:
    """A count of what has a value or is so, where the question names no table: "how many professors", "… admins"."""
    link = match["vals|flag"].link
    if match.question.display(link):
        return None  # the name of one thing, which there is no use in counting
    figure = figure_of_rows(match.question, link.table, match.start)
    parts = value_or_flag(match)
    return parts + Parts(figures=(figure,)) if parts is not None and figure is not None else None


def count(match: Match) -> Parts | None:
    """A count of a table's rows."""
    word, table = match["count"], match["tab"]
    if _rows_follow(match) or word.arg == "money" or not _counts(match.question, word, table):
        return None
    tables = match.all("tab")
    if len(tables) > 1 and any("mcol" in one.word.senses for one in tables):
        return None  # `车流量和店铺数量`: the other noun is a figure already, which is not counted
    return Parts(figures=tuple(Figure("count", table=one.link.table, position=one.first) for one in tables))


def total_asked(match: Match) -> Parts | None:
    """`店铺一共多少`: how many there are; `缴费总额`: how much."""
    word, table = match["sum"].word.text, match["tab"]
    if _ASKS_NUMBER.match(word):
        return total_rows(match)
    link = amount_of(match.question, table.link.table) if word.endswith(_AMOUNTS) else None
    return Parts(figures=(Figure("sum", link, position=table.first),)) if link is not None else None


def amount(match: Match) -> Parts | None:
    """`缴费一共多少钱`, "how much money": the amount of money of a table, or of those of its rows that have a value."""
    before = match.beside(-1)
    pays = before is not None and before.mark.means("verb") and _PAYS.fullmatch(before.text)
    if match["count"].arg != "money" and not pays:
        return None
    table, value = match.get("tab"), match.get("vals")
    thing = table or match["vals"]
    link = amount_of(match.question, thing.link.table)
    own = values(match) if value is not None else Parts()
    if link is None or own is None:
        return None
    return own + Parts(figures=(Figure("sum", link, position=thing.first),))


def count_rows(match: Match) -> Parts | None:
    """The rows of a table whose name alone would mean a figure: "revenue records", `营收有几条`."""
    thing, word = match["tab|mcol"], match["count"].word.text
    rows = match.get("noise") is not None or any(one in word for one in _COUNTS_ROWS)
    if not rows or (thing.symbol == "mcol" and "tab" in thing.word.senses):
        return None
    return Parts(figures=(Figure("count", table=thing.link.table, position=thing.first),))


def _counts(question: Question, word: Item, table: Item) -> bool:
    """Whether the word counts the table on this side of it: `多少客户`, `客户数`, but not `数客户`."""
    asks = bool(_ASKS_NUMBER.match(word.word.text))
    figure = table.word.senses.get("mcol")
    if figure is not None and figure.link is not None and (figure.cost <= 0 or table.word.names_figure):
        if word.word.text in _HOW_MUCH:
            return False  # `收入多少` asks for the income, although the table of daily incomes has the same name
        if word.word.text.isascii() and (table.word.names_figure or is_number(question, figure.link)):
            return False  # "how many visits" adds up the visits of each day, "how many sales" counts them
    if word.first < table.first:
        return asks or word.word.text.isascii()
    if word.word.text.isascii():
        return not word.word.text.startswith(_BEFORE_COUNTED)
    return True


def count_column(match: Match) -> Parts | None:
    """A count of a column's values: numbers are added up, dates count as events, other values once each."""
    item, question = match["tcol|dcol|mcol"], match.question
    word = match["count"]
    if _rows_follow(match) or word.arg == "money" or question.is_flag(item.link):
        return None
    if not word.word.text.isascii() and word.first < item.first and not _ASKS_NUMBER.match(word.word.text):
        return None
    link = item.link
    function: Function = "count_distinct"
    if match.get("distinct") is None and question.is_measure(link):
        is_amount = word.word.text in _HOW_MUCH or word.word.text.isascii()
        if not is_amount and not question.facts(link.table).is_count(question.column_of(link)):
            return None  # `多少人挂号` is no 挂号费
        if word.word.text.isascii() and is_money(question, link):
            return None
        return Parts(bare=(Figure(None, link, position=item.first),), doubts=doubts(item), flags=("how_much",))
    if match.get("distinct") is None and question.is_date(link):
        function = "count"
    return Parts(figures=(Figure(function, link, position=item.first),), doubts=doubts(item))


def _rows_follow(match: Match) -> bool:
    words = match.question.words
    return match.end < len(words) and words[match.end].mark.arg == "rows"


def measure(match: Match) -> Parts | None:
    """A measure without a function; with a word for "how much" its total."""
    asked, column = match.get("count"), match["mcol"]
    if asked is not None and (_rows_follow(match) or not (asked.word.text in _HOW_MUCH or asked.word.text.isascii())):
        return None
    if asked is not None and asked.word.text.isascii() and is_money(match.question, column.link):
        return None
    flags = ("how_much",) if asked is not None else ()
    return Parts(bare=(Figure(None, column.link, position=column.first),), doubts=doubts(column), flags=flags)


def owned_measure(match: Match) -> Parts | None:
    """A measure after the table that it belongs to: "order amount"."""
    table, column = match["tab"], match["mcol"]
    if column.link.table != table.link.table:
        return None
    named = Named(table.first, table.link, "owner")
    parts = measure(match)
    return parts + Parts(tables=(named,)) if parts is not None else None


def aggregate(match: Match) -> Parts | None:
    """Functions over measures: "max and min price", `平均月租金和面积`; of dates only the first and last."""
    functions = [AGGREGATES[one.symbol] for one in match.all(*AGGREGATES)]
    columns = match.all("mcol", "dcol")
    if any(one.symbol == "dcol" for one in columns) and not {"max", "min"}.issuperset(functions):
        return None
    number = match.get("num")
    percent = number.word.mark.number.value if number is not None and number.word.mark.number is not None else None
    if "percentile" in functions and not (percent is not None and 0 < percent < _ALL):
        return None
    figures = tuple(
        Figure(function, one.link, position=one.first, percent=percent)
        for one in columns
        for function in dict.fromkeys(functions)
    )
    return Parts(figures=figures, doubts=doubts(*columns))


def owned_aggregate(match: Match) -> Parts | None:
    """A function over a measure of the table named beside it: `订单平均金额`, "average order amount"."""
    if match["mcol"].link.table != match["tab"].link.table:
        return None
    return aggregate(match)


def asked_number(match: Match) -> Parts:
    """A word for "how many" or "how much money" without what is counted beside it."""
    money = ("money",) if match["count"].arg == "money" else ()
    return Parts(flags=("how_many", *money))


def asked_total(match: Match) -> Parts:
    """A word for a total, or for "how_much", without a figure beside it."""
    money = ("money",) if match["sum"].word.text in _HOW_MUCH_MONEY else ()
    return Parts(flags=("sum", *money))


def total_rows(match: Match) -> Parts | None:
    """A total of things is their number: "total orders"."""
    table = match["tab"]
    if match["sum"].word.text in _HOW_MUCH_MONEY:
        return None
    return Parts(figures=(Figure("count", table=table.link.table, position=table.first),))


def averaged_per_unit(match: Match) -> Parts:
    """`日均车流量`, "average daily revenue": the average of totals over units of time."""
    word, column = match["avg_per|bucket"], match["mcol"]
    figure = Figure("avg", column.link, position=column.first, per_unit=word.arg)  # type: ignore[arg-type]
    return Parts(figures=(figure,), doubts=doubts(column))


def per_entity(match: Match) -> Parts | None:
    """An average over things: `平均每个服务区有多少店铺`, "average number of orders per customer"."""
    table = match.get("tab")
    parts = Parts(flags=("per_entity",))
    if table is None:
        after = match.question.words[match.end :]
        return None if after and after[0].mark.means("inclusion") else parts  # `平均每单` is over what 单 means
    if table.word.text.isascii():
        return parts + Parts(figures=(Figure("count", table=table.link.table, position=table.first),))
    return parts + Parts(groups=(Group(Dimension(table.link.table), table.first),))


def share(match: Match) -> Parts:
    """A share of something."""
    table, column = match.get("tab"), match.get("mcol")
    parts = Parts(flags=("share",))
    if column is not None:
        parts += Parts(bare=(Figure(None, column.link, position=column.first),), doubts=doubts(column))
    elif table is not None:
        parts += Parts(tables=(Named(table.first, table.link, "shared"),))
    return parts
