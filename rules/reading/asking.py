"""What patterns of wishes give: figures, groups, rankings, and the things that are named."""

from dataclasses import replace

from rules.query.query import Dimension, Function
from rules.query.wishes import AGGREGATES, Figure
from rules.reading import costs, restricting
from rules.reading.matching import Item, Match
from rules.reading.parts import NO_TABLE, Group, Named, Parts, Ranking
from rules.reading.words import Question
from rules.schema.links import Link, column_link
from rules.schema.schema import TableKey
from rules.words import WORDS

_NUMBERS_OF = WORDS.both("questions.numbers_of")
_KINDS = WORDS.both("questions.kinds")
_HOW_MUCH = WORDS.chinese.one_of("questions.how_much") | {"多少钱"}
_DISTRIBUTION = WORDS.chinese.one_of("questions.distribution")
_ASKS_NUMBER = WORDS.chinese.pattern("questions.asks_number", "^", "$")
_COUNTS_ROWS = WORDS.both("questions.counts_rows")
_RECENT = 10  # rows shown for "recent orders", which names no number
_MOST_LIMIT, _ALL = 10_000, 100
_LEAST_KIND = 0.6
_AGGREGATING = tuple(AGGREGATES)


def doubts(*items: Item | None) -> tuple[tuple[str, tuple[Link, ...]], ...]:
    """The words that may name several columns equally well."""
    return tuple((one.word.mark.text, (one.link, *one.rivals)) for one in items if one is not None and one.rivals)


# ------------------------------------------------------------------------------------------------------------- figures


def count(match: Match) -> Parts | None:
    """A count of a table's rows."""
    word, table = match["count"], match["tab"]
    if _rows_follow(match) or not _counts(match, word, table):
        return None
    tables = match.all("tab")
    return Parts(figures=tuple(Figure("count", table=one.link.table, position=one.first) for one in tables))


def total_asked(match: Match) -> Parts | None:
    """`店铺一共多少`: how many there are."""
    return total_rows(match) if _ASKS_NUMBER.match(match["sum"].word.text) else None


def count_rows(match: Match) -> Parts | None:
    """The rows of a table whose name alone would mean a figure: "revenue records", `营收有几条`."""
    thing, word = match["tab|mcol"], match["count"].word.text
    rows = match.get("noise") is not None or any(one in word for one in _COUNTS_ROWS)
    if not rows or (thing.symbol == "mcol" and "tab" in thing.word.senses):
        return None
    return Parts(figures=(Figure("count", table=thing.link.table, position=thing.first),))


def _counts(match: Match, word: Item, table: Item) -> bool:
    """Whether the word counts the table on this side of it: `多少客户`, `客户数`, but not `数客户` or "customers how many"."""
    asks = bool(_ASKS_NUMBER.match(word.word.text))
    figure = table.word.senses.get("mcol")
    is_amount = word.word.text in _HOW_MUCH or word.word.text.isascii()
    if figure is not None and figure.cost <= 0 and is_amount:
        return False  # `收入多少` asks for the income, although the table of daily incomes has the same name
    if word.first < table.first:
        return asks or word.word.text.isascii()
    if word.word.text.isascii():
        return not word.word.text.startswith(("how", "number", "the", "no", "total number"))
    return True


def count_values(match: Match) -> Parts | None:
    """A count of what has a value, where the question names no table: "how many professors"."""
    link = match["vals"].link
    if match.question.display(link):
        return None  # the name of one thing, which there is no use in counting
    figure = figure_of_rows(match.question, link.table, match.start)
    parts = restricting.values(match)
    return parts + Parts(figures=(figure,)) if parts is not None and figure is not None else None


def count_flag(match: Match) -> Parts | None:
    """A count of what is so: "how many admins"."""
    parts = restricting.flag(match)
    figure = Figure("count", table=match["flag"].link.table, position=match.start)
    return parts + Parts(figures=(figure,)) if parts is not None else None


def figure_of_rows(question: Question, table: TableKey, at: int) -> Figure | None:
    """A count of rows; for a table of reports, the sum of what its rows count (`多少辆货车`).

    None where the rows of reports count several things.
    """
    facts = question.facts(table)
    if not facts.is_report:
        return Figure("count", table=table, position=at)
    if len(facts.measures) != 1 or facts.is_averaged(facts.measures[0]):
        return None
    return Figure("sum", column_link(table, facts.measures[0].name), position=at)


def count_column(match: Match) -> Parts | None:
    """A count of a column's values: numbers are added up, dates count as events, other values once each."""
    item, question = match["tcol|dcol|mcol"], match.question
    word = match["count"]
    if _rows_follow(match):
        return None
    if not word.word.text.isascii() and word.first < item.first and not _ASKS_NUMBER.match(word.word.text):
        return None
    link = item.link
    function: Function = "count_distinct"
    if match.get("distinct") is None:
        function = "sum" if question.is_measure(link) else "count" if question.is_date(link) else "count_distinct"
    return Parts(figures=(Figure(function, link, position=item.first),), doubts=doubts(item))


def aggregate(match: Match) -> Parts | None:
    """Functions over measures: "max and min price", `平均月租金和面积`; of dates only the first and last."""
    functions = [AGGREGATES[one.symbol] for one in match.all(*_AGGREGATING)]
    columns = match.all("mcol", "dcol")
    if any(one.symbol == "dcol" and function in ("sum", "avg") for one in columns for function in functions):
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


def total_rows(match: Match) -> Parts | None:
    """A total of things is their number: "total orders"."""
    table = match["tab"]
    return Parts(figures=(Figure("count", table=table.link.table, position=table.first),))


def averaged_per_unit(match: Match) -> Parts:
    """`日均车流量`, "average daily revenue": the average of totals over units of time."""
    word, column = match["avg_per|bucket"], match["mcol"]
    figure = Figure("avg", column.link, position=column.first, per_unit=word.arg)  # type: ignore[arg-type]
    return Parts(figures=(figure,), doubts=doubts(column))


def per_entity(match: Match) -> Parts:
    """An average over things: `平均每个服务区有多少店铺`, "average number of orders per customer"."""
    table = match.get("tab")
    parts = Parts(flags=("per entity",))
    if table is None:
        return parts
    if table.word.text.isascii():
        return parts + Parts(figures=(Figure("count", table=table.link.table, position=table.first),))
    return parts + Parts(groups=(Group(Dimension(table.link.table), table.first),))


def _rows_follow(match: Match) -> bool:
    words = match.question.words
    return match.end < len(words) and words[match.end].mark.arg == "rows"


def measure(match: Match) -> Parts | None:
    """A measure without a function; with a word for "how much" its total."""
    asked = match.get("count")
    if asked is not None and (_rows_follow(match) or not (asked.word.text in _HOW_MUCH or asked.word.text.isascii())):
        return None
    column = match["mcol"]
    flags = ("how much",) if asked is not None else ()
    return Parts(bare=(Figure(None, column.link, position=column.first),), doubts=doubts(column), flags=flags)


def owned_measure(match: Match) -> Parts | None:
    """A measure after the table that it belongs to: "order amount"."""
    table, column = match["tab"], match["mcol"]
    if column.link.table != table.link.table:
        return None
    named = Named(table.first, table.link, "owner")
    parts = measure(match)
    return parts + Parts(tables=(named,)) if parts is not None else None


def share(match: Match) -> Parts:
    """A share of something."""
    table, column = match.get("tab"), match.get("mcol")
    parts = Parts(flags=("share",))
    if column is not None:
        parts += Parts(bare=(Figure(None, column.link, position=column.first),), doubts=doubts(column))
    elif table is not None:
        parts += Parts(tables=(Named(table.first, table.link, "shared"),))
    return parts


# -------------------------------------------------------------------------------------------------------------- groups


def column_dimension(question: Question, link: Link) -> Dimension:
    """The group that a column stands for: a reference its table, a name its own table, a time its day."""
    facts = question.facts(link.table)
    assert link.column is not None
    for edge in facts.edges:
        if edge.columns == (link.column,):
            return Dimension(edge.parent, via=link.column if edge.child != edge.parent else None)
    if link.column in facts.display and facts.key:
        return Dimension(link.table)
    if question.kind(link) == "timestamp":
        return Dimension(link.table, link.column, "day")
    return Dimension(link.table, link.column)


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
        if item.symbol == "tab":
            found.append(Group(Dimension(item.link.table), item.first, by=by))
        elif item.symbol in ("tcol", "flag", "dcol"):
            found.append(Group(column_dimension(question, item.link), item.first, by=by))
        elif item.symbol == "calendar_part":
            found.append(Group(Dimension(NO_TABLE, None, part=item.arg), item.first, by=by))  # type: ignore[arg-type]
        elif item.symbol in ("bucket", "date_part", "date_which"):
            found.append(Group(Dimension(NO_TABLE, None, item.arg), item.first, by=by))  # type: ignore[arg-type]
    return Parts(groups=tuple(found), doubts=doubts(*match.all("tcol", "flag", "dcol")))


def _is_agent(match: Match) -> bool:
    """Whether "by" names who did something instead of a group: `orders placed by customers from Japan`."""
    before = match.question.words[match.start - 1] if match.start else None
    after = match.beside(1)
    said = after is not None and ("val" in after.senses or after.mark.means("with", "from") or after.text == "who")
    return before is not None and before.mark.means("verb") and match.get("tab", "tcol") is not None and said


def owned_group(match: Match) -> Parts | None:
    """`each customer's city`, `按客户城市`: a column of the table before it."""
    table, column = match["tab"], match["tcol"]
    via = None
    if column.link.table != table.link.table:
        return None
    return Parts(groups=(Group(replace(column_dimension(match.question, column.link), via=via), column.first),))


def role_group(match: Match) -> Parts | None:
    """The column of the table that a reference right before it points to: `by destination city`."""
    role, column = match.items[1], match.items[2]
    for edge in match.question.facts(role.link.table).edges:
        if edge.columns == (role.link.column,) and edge.parent == column.link.table:
            return Parts(groups=(Group(Dimension(edge.parent, column.link.column, via=edge.columns[0]), role.first),))
    return None


def dated_group(match: Match) -> Parts | None:
    """Units of time of a date that is named: `每年入住的业主数`."""
    link = match["dcol"].link
    if match.question.kind(link) not in ("date", "timestamp"):
        return None
    unit = match["bucket"].arg
    return Parts(groups=(Group(Dimension(link.table, link.column, unit), match.start),))  # type: ignore[arg-type]


def growth(match: Match) -> Parts:
    """How figures change: `同比`, "month over month growth"."""
    args = [one.arg for one in match.all("growth") if one.arg]
    return Parts(flags=("growth", *(f"growth:{arg}" for arg in args)))


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
    return Parts(groups=(found,), flags=("how many", "periods") if match.get("count") else ("periods",))


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
    dimension = column_dimension(match.question, links[0])
    unclear = ((word.word.mark.text, rivals),) if len(rivals) > 1 else ()
    named = Named(table.first, table.link, "owner")
    counted = match.get("count")
    figures = (Figure("count", table=table.link.table, position=table.first),) if counted is not None else ()
    group = Group(dimension, match.start, is_kind=True, by=match.get("by") is not None)
    return Parts(groups=(group,), doubts=unclear, tables=(named,), figures=figures)


def _kind_columns(question: Question, table: TableKey) -> list[Link]:
    found: dict[str | None, Link] = {}
    for link in (link for name in _KINDS for link in question.lexicon.find(name)):
        suits = link.kind == "column" and link.table == table and link.quality >= _LEAST_KIND
        if suits and not question.is_measure(link) and link.quality > getattr(found.get(link.column), "quality", 0):
            found[link.column] = link
    return sorted(found.values(), key=lambda link: -link.quality)


# ------------------------------------------------------------------------------------------------------------ rankings


def ranking(match: Match) -> Parts | None:
    """A superlative with its figure and number: `订单最多的3个`, "the highest rent", "top 5 by revenue"."""
    word = match["super|max|min|top|rank"]
    arg = word.arg or ("+" if word.symbol != "min" else "-")
    if word.symbol == "max":
        arg = "+"
    descending = not arg.startswith("-") and arg != "asc"
    hint = arg[1:] if arg[:1] in "+-" and len(arg) > 1 else ""
    limit = _limit(match)
    if word.symbol == "top" and limit is None and not (_says_first(word) and not _number_follows(match)):
        return None
    if hint == "recent":
        hint, limit = "date", limit or _RECENT
    counts = any(one in word.word.text for one in _NUMBERS_OF)
    figure = _figure(match, word, counts)
    if figure is False:
        return None
    is_order = word.symbol == "rank" and limit is None
    is_open = word.symbol in ("rank", "top") and not arg.startswith(("-", "asc", "desc"))
    dates = match.get("date_part", "bucket")
    ranked = (Group(Dimension(NO_TABLE, None, dates.arg), dates.first, is_ranked=True),) if dates else ()  # type: ignore[arg-type]
    found = Ranking(
        descending,
        word.first,
        figure or None,
        "" if figure else hint,
        limit,
        is_order=is_order,
        counts=counts,
        is_open=is_open,
    )
    parts = Parts(rankings=(found,), groups=ranked, doubts=doubts(*match.all("mcol", "dcol")))
    own = restricting.values(match) if match.get("vals") is not None else Parts()
    return parts + own if own is not None else None


def ordering(match: Match) -> Parts | None:
    """ "by price", "by number of orders": the figure of a ranking, or an order by itself."""
    figure = _figure(match, match["by"], counts=False)
    if not isinstance(figure, Figure):
        return None
    found = Ranking(True, match.start, figure, is_order=True, is_open=True)
    return Parts(rankings=(found,), doubts=doubts(*match.all("mcol", "dcol")))


def _number_follows(match: Match) -> bool:
    words = match.question.words
    return match.end < len(words) and words[match.end].mark.number is not None


def _says_first(word: Item) -> bool:
    return "第一" in word.word.text or word.word.text in ("居首", "top", "the top", "倒数第一")


def _limit(match: Match) -> int | None:
    number = match.get("num")
    value = number.word.mark.number.value if number is not None and number.word.mark.number is not None else None
    return int(value) if value is not None and value == int(value) and 0 < value <= _MOST_LIMIT else None


def _figure(match: Match, word: Item, counts: bool) -> Figure | None | bool:
    """The figure of a ranking; None if the match names none, False if what it names can't be one."""
    column, table, counted = match.get("mcol", "dcol"), match.get("tab"), match.get("count")
    function = next((AGGREGATES[one.symbol] for one in match.all(*_AGGREGATING) if one is not word), None)
    hint = word.arg[1:] if word.symbol == "super" else ""
    if column is not None:
        if hint and column.symbol != ("dcol" if hint in ("date", "recent", "age") else "mcol"):
            return False
        if hint and column.symbol == "mcol" and hint not in match.question.lexicon.adjectives and hint != "traffic":
            return Figure(function, column.link, position=column.first)
        if column.symbol == "dcol" and not hint and counted is None and word.symbol not in ("rank", "by"):
            return False
        return Figure("count" if column.symbol == "dcol" and counted else function, column.link, position=column.first)
    if match.get("vals") is not None:
        value = match["vals"].link
        says_number = counts and word.symbol == "super" and not match.question.display(value)
        return figure_of_rows(match.question, value.table, match.start) or False if says_number else False
    if table is not None:
        if hint or not (counted is not None or counts):
            return False
        if match.question.is_chinese and counted is None and table.first > word.first:
            return False  # `最多的客户` asks for customers
        return Figure("count", table=table.link.table, position=table.first)
    return None


def limited(match: Match) -> Parts | None:
    """A number of rows: "list 10 customers"."""
    limit, table = _limit(match), match["tab"]
    return None if limit is None else Parts(limits=(limit,), tables=(Named(table.first, table.link, _role(match)),))


# -------------------------------------------------------------------------------------------------------------- things


def _role(match: Match) -> str:
    before = match.beside(-1)
    asked = match.get("which", "list") is not None or (before is not None and before.mark.means("which", "list"))
    return "asked" if asked else ""


def thing(match: Match) -> Parts:
    """A table that is named, with its role."""
    table = match["tab"]
    which = match.get("which")
    person = ("person",) if which is not None and which.arg == "person" else ()
    return Parts(tables=(Named(table.first, table.link, _role(match)),), flags=person)


def attribute(match: Match) -> Parts | None:
    """A column that is shown; of a table named before it."""
    table, column = match.get("tab"), match["tcol|dcol|flag"]
    if table is not None and column.link.table != table.link.table:
        return None
    if table is not None and match.question.is_chinese and column.first < table.first:
        return None  # `删除的服务区` are areas
    named = Named(column.first, column.link, _role(match))
    owner = (Named(table.first, table.link, "owner"),) if table is not None else ()
    return Parts(columns=(named,), tables=owner, doubts=doubts(column))


def name_of(match: Match) -> Parts | None:
    """`names of customers`, `客户名称`: the names of a table's rows."""
    column, table = match["tcol"], match["tab"]
    facts = match.question.facts(table.link.table)
    if column.word.text not in _NAMES or not facts.display:
        return None
    link = Link("column", table.link.table, facts.display[-1], None, 1.0, "")
    owner = Named(table.first, table.link, "owner")
    return Parts(columns=(Named(column.first, link, _role(match)),), tables=(owner,))


_NAMES = frozenset(WORDS.both("questions.names"))


def person(match: Match) -> Parts:
    """谁, "who"."""
    return Parts(flags=("person",))


def says(name: str):  # type: ignore[no-untyped-def]
    """A wish without anything else."""

    def make(match: Match) -> Parts:
        return Parts(flags=(name,))

    return make


def priced(match: Match) -> float:
    """What it costs to read a word as something that it rarely means."""
    return costs.SECOND
