"""What patterns of conditions give: values, flags, identities, texts, what is missing, comparisons, periods."""

import re
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal

from rules.linking.dates import Moment, Period
from rules.query.query import OPPOSITE, ColumnRef, Condition, Operator, Related
from rules.reading.matching import Item, Match
from rules.reading.parts import Parts, Span, Threshold, Weekday
from rules.schema.links import Link
from rules.schema.schema import TableKey, flag_codes, is_outcome, kind_of
from rules.words import WORDS

_TRAILING = frozenset(WORDS.both("questions.trailing"))
_NEVER, _NOT_DONE = frozenset(WORDS.both("questions.never")), frozenset(WORDS.chinese.phrases("questions.not_done"))
_BELOW = WORDS.chinese.one_of("questions.below")
_AGO = WORDS.both("questions.ago")
_MEASURED = 0.75
_WHOLE_VALUE = 0.8
_LACKS = frozenset(WORDS.both("questions.lacks"))
_HAS = WORDS.chinese.text("questions.has")


def ref(link: Link) -> ColumnRef:
    """The column a link means."""
    assert link.column is not None
    return ColumnRef(link.table, link.column, is_age=link.derived == "age")


def is_negated(match: Match) -> bool:
    """Whether the match has a word for "not"."""
    return len(match.all("not", "except_end")) > 0


# ------------------------------------------------------------------------------------------------------------- values


def values(match: Match, via: str | None = None) -> Parts | None:
    """`vals` as a condition on their column."""
    item, question = match["vals"], match.question
    links = item.links
    if _lacks_figure(match):
        return None
    key, first = links[0].table, links[0]
    unequal = any(one.symbol == "cmp" and one.arg == "!=" for one in match.items)
    operator: Operator = "=" if len(links) == 1 else "in"
    operator = OPPOSITE[operator] if is_negated(match) != unequal else operator
    operands: tuple[str, ...] = tuple(str(link.value) for link in links)
    kind = question.kind(first)
    if kind == "boolean":
        operator, operands = ("false" if operator == "=" else "true"), ()
    elif kind in ("date", "timestamp"):
        operator, operands = ("null" if operator == "=" else "not null"), ()
    condition = Condition(replace(ref(first), via=via), operator, operands)
    deleted = (key,) if question.facts(key).deleted == first.column else ()
    flags = (f"joined:{item.joint}",) if item.joint else ()
    places = [at for at in range(item.first, item.last + 1) if "val" in question.words[at].senses]
    said = tuple(zip(places, links, strict=False))
    return Parts(conditions=(condition,), with_deleted=deleted, flags=flags, said=said)


def _lacks_figure(match: Match) -> bool:
    """Whether a negated value stands before a figure, as in `没有新能源车流量的服务区`.

    It asks for things that have no such figure. A condition "another value" would find those that have others.
    """
    negation, after = match.get("not"), match.beside(1)
    lacks = negation is not None and negation.word.text in _LACKS
    return lacks and after is not None and "mcol" in after.senses and after.at == match.end


def possessed(match: Match) -> Parts | None:
    """`哪些服务区里有麦当劳`: 有 means "have" and not "contain" before a value."""
    whole = match["vals"].link.quality >= _WHOLE_VALUE
    return values(match) if match["like"].word.text.endswith(_HAS) and whole else None


def labelled_values(match: Match) -> Parts | None:
    """Values beside the name of their column, or of a reference to whom they name: "whose manager is Ann"."""
    label, value = match["tcol|flag|mcol|dcol"].link, match["vals"].link
    if (label.table, label.column) == (value.table, value.column):
        return values(match)
    own = [link for _, link in (match["vals"].word.noun.values if match["vals"].word.noun else ())]
    same = next((link for link in own if (link.table, link.column) == (label.table, label.column)), None)
    if same is not None and len(match["vals"].links) == 1:
        item = replace(match["vals"], links=(same,))
        return values(replace(match, items=tuple(item if one.symbol == "vals" else one for one in match.items)))
    before = match["vals"].first > match["tcol|flag|mcol|dcol"].last
    between = match.question.words[match["tcol|flag|mcol|dcol"].last : match["vals"].first]
    if not before or any(word.mark.means("of") for word in between):
        return None  # "the manager of Ann" is not one whose manager is Ann
    for edge in match.question.facts(label.table).edges:
        if edge.columns == (label.column,) and edge.parent == value.table:
            return values(match, via=label.column)
    return None


def values_of_table(match: Match) -> Parts | None:
    """A table before the name of one of its rows: "customer Bob Jones", `订单HT2023010`."""
    link, table = match["vals"].link, match["tab"].link.table
    if link.table != table or not match.question.display(link) and link.column not in match.question.facts(table).key:
        return None
    parts = values(match)
    return parts + Parts(labels=(table,)) if parts is not None else None


def below_value(match: Match) -> Parts | None:
    """`总公司下属的部门`: rows below a named one, by the table's reference to itself."""
    link = match["vals"].link
    edges = [one for one in match.question.facts(link.table).edges if one.parent == one.child]
    if match["tab"].link.table != link.table or len(edges) != 1:
        return None
    return values(match, via=edges[0].columns[0])


def flag(match: Match) -> Parts | None:
    """A column of yes and no as a condition; `deleted` lets deleted rows take part."""
    link, question = match["flag"].link, match.question
    facts = question.facts(link.table)
    deleted = (link.table,) if facts.deleted == link.column else ()
    codes = flag_codes(question.column_of(link))
    if codes is not None:
        condition = Condition(ref(link), "=", (codes[is_negated(match)],))
    elif question.kind(link) == "boolean":
        condition = Condition(ref(link), "false" if is_negated(match) else "true")
    else:
        return None
    return Parts(conditions=(condition,), with_deleted=deleted)


def deletion(match: Match) -> Parts | None:
    """Words for deleted rows, where the column that marks them is a date."""
    link = match["dcol|tcol|mcol"].link
    if match.question.facts(link.table).deleted != link.column:
        return None
    operator: Operator = "null" if is_negated(match) else "not null"
    return Parts(conditions=(Condition(ref(link), operator),), with_deleted=(link.table,))


def with_deleted(match: Match) -> Parts:
    """`包括已删除`: deleted rows of all tables that the question names take part."""
    return Parts(with_deleted=tuple(match.question.named_tables()))


# --------------------------------------------------------------------------------------------------- identity and text


def identity(match: Match) -> Parts | None:
    """A number or quotation after a table or column that it identifies: `order 1001`, `编号为3的服务区`."""
    literal, number, question = match.get("lit"), match.get("num"), match.question
    column = match.get("tcol", "mcol")
    if literal is not None:
        operand: str | Decimal = str(literal.word.mark.literal)
    else:
        assert number is not None and number.word.mark.number is not None
        operand = number.word.mark.number.value
    beyond = match.beside(1)
    if number is not None and column is None and "date" in number.word.senses:
        return None
    if number is not None and beyond is not None and beyond.mark.means("top", "super", "rank", "date_part"):
        return None
    if column is not None:
        return Parts(conditions=(Condition(ref(column.link), "=", (operand,)),))
    table = match["tab"].link.table
    facts = question.facts(table)
    names = facts.display if literal is not None else facts.key
    if len(names) != 1 or (literal is None and kind_of(question.schema.column(table, names[0])) != "number"):
        return None
    role = Parts(labels=(table,)) if literal is not None else Parts()
    return Parts(conditions=(Condition(ColumnRef(table, names[0]), "=", (operand,)),)) + role


def text(match: Match) -> Parts | None:
    """`名称包含“湖”`, "whose name starts with A", "named Ann": a condition on a text."""
    said, word = match["lit|unk|num|val"], match.get("like") or match["named"]
    value = said.links[0] if said.symbol == "val" else None
    if value is not None and value.quality >= _WHOLE_VALUE and word.word.text.endswith(_HAS):
        target = _text_column(match, said)
        if target is None or (value.table, value.column) != (target.table, target.column):
            return None
    target = _text_column(match, said)
    if target is None:
        return None
    operator: Operator = "=" if word.symbol == "named" else word.arg  # type: ignore[assignment]
    if is_negated(match) and operator in OPPOSITE:
        operator = OPPOSITE[operator]
    written = said.word.mark.literal if said.word.mark.literal is not None else said.word.mark.text
    return Parts(conditions=(Condition(target, operator, (written,)),))


def _text_column(match: Match, said: Item) -> ColumnRef | None:
    target = next((item for item in match.items if item is not said and item.symbol in ("tcol", "tab")), None)
    question = match.question
    if target is None:
        tables = {key for key in question.named_tables() if question.facts(key).display}
        table = tables.pop() if len(tables) == 1 else None
    elif target.symbol == "tcol":
        return ref(target.link) if question.kind(target.link) in ("text", "other") else None
    else:
        table = target.link.table
    display = question.facts(table).display if table is not None else ()
    return ColumnRef(table, display[0]) if table is not None and display else None


# ------------------------------------------------------------------------------------------------------- what is missing


def null(match: Match) -> Parts | None:
    """A column that is empty, or not."""
    link = match["tcol|mcol|dcol|flag"].link
    word = match.get("null", "notnull")
    operator: Operator = "null" if word is None or word.symbol == "null" else "not null"
    if word is not None and is_negated(match):
        operator = OPPOSITE[operator]
    return Parts(conditions=(Condition(ref(link), operator),))


def lacking(match: Match) -> Parts | None:
    """A negated column: it is empty, or the events that it dates have not happened: "shops without revenue"."""
    item, question = match["tcol|mcol|dcol"], match.question
    link, word = item.link, match["not"].word.text
    if word in _NOT_DONE and question.is_measure(link):
        return None  # `未回款金额` is an amount not yet paid, not an empty one
    if link.column in question.facts(link.table).display:
        return None
    tables = [key for key in question.named_tables() if key != link.table]
    below = {key for table in tables for key in question.graph.below(table)}
    if link.table in question.named_tables() or link.table not in below:
        return Parts(conditions=(Condition(ref(link), "null"),))
    if not question.is_date(link) or not is_outcome(question.column_of(link)):
        return Parts(related=(Related(link.table, negated=True),))
    if word in _NEVER:
        return Parts(related=(Related(link.table, (Condition(ref(link), "not null"),), negated=True),))
    return Parts(related=(Related(link.table, (Condition(ref(link), "null"),)),))


def without(match: Match) -> Parts | None:
    """A negated table: no related rows, or none with the values after it: "never ordered Laptop"."""
    table = match["tab"].link.table
    conditions: tuple[Condition, ...] = ()
    if match.get("vals") is not None:
        link = match["vals"].link
        conditions = (Condition(ref(link), "=", (str(link.value),)),)
    return Parts(related=(Related(table, conditions, negated=True),))


def having_one(match: Match) -> Parts | None:
    """ "orders with an employee", not "customers with orders"."""
    return having(match) if match["with"].word.text.endswith((" a", " an")) else None


def having(match: Match) -> Parts | None:
    """`有手机号的客户`, "employees with a commission", "orders with an employee": it is there."""
    table = match.get("tab")
    if table is not None:
        return Parts(related=(Related(table.link.table),))
    link = match["tcol|mcol|dcol"].link
    if not match.question.column_of(link).nullable or match.question.kind(link) == "boolean":
        return None
    return Parts(conditions=(Condition(ref(link), "not null"),))


def undone(match: Match) -> Parts | None:
    """A value that a column dates as well, negated: orders not shipped have no date of shipping."""
    link = match["dcol"].link
    if link.quality < 0.65:
        return None
    return lacking(match)


def done(match: Match) -> Parts | None:
    """The verb of a date beside its table: `shipped orders`, `完成的工单`: those that have that date."""
    item, table = match["dcol"], match["tab"].link.table
    if item.link.table != table or not 0.68 <= item.link.quality < 0.9 or not _is_done(item):
        return None
    return Parts(conditions=(Condition(ref(item.link), "not null"),))


def _is_done(item: Item) -> bool:
    return not _STATE.search(item.word.text)


_STATE = re.compile(f"{WORDS.found('columns.said.dates').pattern}|{WORDS.any_of('columns.said.states')}", re.IGNORECASE)

# --------------------------------------------------------------------------------------------------------- comparisons


def compared(match: Match, items: Sequence[Item] | None = None) -> Threshold | None:
    """The comparison of a match, without what is compared."""
    items = [one for one in items or match.items if one.symbol in ("cmp", "between", "between_end", "num", "not")]
    numbers = [one.word.mark.number for one in items if one.symbol == "num"]
    cmp = next((one for one in items if one.symbol == "cmp"), None)
    at = items[0].first
    if len(numbers) == 2 and numbers[0] is not None and numbers[1] is not None:
        first, second = numbers[0], numbers[1]
        # In `1到2万` and "between 1 and 2 million" the scale belongs to both numbers.
        start = first.value * second.scale if first.scale == 1 and first.value < second.unscaled else first.value
        return Threshold("between", (start, second.value), at)
    if cmp is None or len(numbers) != 1 or numbers[0] is None:
        return None
    number = next(one for one in items if one.symbol == "num")
    trails = cmp.first > number.first
    if trails != (cmp.word.text in _TRAILING):
        return None
    operator, hint = (cmp.arg[:1], cmp.arg[1:]) if cmp.arg[1:].isalpha() else (cmp.arg, "")
    if any(one.symbol == "not" for one in items) and operator in OPPOSITE:
        operator = OPPOSITE[operator]  # type: ignore[index]
    return Threshold(operator, (numbers[0].value,), at, hint=hint)  # type: ignore[arg-type]


def threshold(match: Match) -> Parts | None:
    """A comparison of a column, of an aggregate of it, or of the number of a table's rows."""
    found = compared(match)
    if found is None or (found.hint and match.get("mcol", "tab") is not None):
        return None
    after, number = match.get("tab", "mcol"), match.all("num")[-1]
    between = match.question.words[number.last : after.first] if after is not None else []
    if match.question.is_chinese and any(word.mark.means("of") for word in between):
        return None  # `超过5次的读者` compares what stands before
    function = match.get("sum", "avg", "max", "min")
    column, table = match.get("mcol", "ncol"), match.get("tab")
    if column is not None:
        link = column.link
        if link.column in (*match.question.facts(link.table).key, *match.question.facts(link.table).reference_columns):
            return None
        found = replace(found, link=link, function=function.symbol if function else None)
    elif table is not None:
        found = replace(found, table=table.link.table)
    elif found.operator in ("=", "!="):
        return None
    doubts = ((column.word.mark.text, (column.link, *column.rivals)),) if column and column.rivals else ()
    return Parts(thresholds=(found,), doubts=doubts)


def threshold_of_table(match: Match) -> Parts | None:
    """`订单超过5个`: Chinese counts a table without a word for it."""
    before = match.beside(-1)
    if not match.question.is_chinese or (before is not None and before.mark.means("each", "which", "list")):
        return None
    return threshold(match)


def two_thresholds(match: Match) -> Parts | None:
    """Two comparisons of the same: `at least 5000 but less than 7000`."""
    half = [index for index, one in enumerate(match.items) if one.symbol == "num"]
    joint = next(index for index, one in enumerate(match.items) if one.symbol == "and")
    if len(half) != 2:
        return None
    first, second = compared(match, match.items[:joint]), compared(match, match.items[joint:])
    if first is None or second is None:
        return None
    column, table = match.get("mcol"), match.get("tab")
    link = column.link if column is not None else None
    key = table.link.table if table is not None and column is None else None
    return Parts(thresholds=tuple(replace(one, link=link, table=key) for one in (first, second)))


def average(match: Match) -> Parts:
    """`above average`: the column is compared with its own average."""
    operator: Operator = "above average" if match.get("above_average") is not None else "below average"
    return Parts(conditions=(Condition(ref(match["mcol"].link), operator),), flags=("above average",))


def columns_compared(match: Match) -> Parts | None:
    """A column against another of the same kind: "stock below safety stock", "shipped after the due date"."""
    columns = match.all("mcol") or match.all("dcol")
    if len(columns) != 2 or columns[0].link.derived or columns[1].link.derived:
        return None
    word = match["cmp|range"]
    operator = {"after": ">", "before": "<"}.get(word.arg, word.arg)
    if operator not in (">", ">=", "<", "<=", "=", "!=") or columns[0].link.column == columns[1].link.column:
        return None
    if is_negated(match):
        operator = OPPOSITE[operator]  # type: ignore[index]
    left, right = (ref(one.link) for one in columns)
    return Parts(conditions=(Condition(left, operator, (right,)),))  # type: ignore[arg-type]


def weekday(match: Match) -> Parts:
    """Mondays, weekends."""
    item, column = match["calendar"], match.get("dcol")
    part, value = item.arg.split(":")
    link = column.link if column is not None else None
    return Parts(weekdays=(Weekday(part, int(value), item.first, is_negated(match), link),))  # type: ignore[arg-type]


def all_values(match: Match) -> Parts | None:
    """ "both A and B"."""
    return values(match) if match["vals"].joint == "and" else None


def duration(match: Match) -> Parts | None:
    """How long ago a date was: `开业超过10年`."""
    found = compared(match)
    if found is None or found.operands[0] != int(found.operands[0]) or found.operator == "between":
        return None
    then = Moment().shifted(match["date_part"].arg, -int(found.operands[0]))  # type: ignore[arg-type]
    period = Period(None, then) if found.operator.startswith(">") else Period(then, None)
    return Parts(conditions=(Condition(ref(match["dcol"].link), "during", (period,)),))


# ------------------------------------------------------------------------------------------------------------- periods

_BOUNDS = {
    "now": lambda period: Period(period.start, Moment(days=1)),
    "since": lambda period: Period(period.start, None),
    "after": lambda period: Period(period.end, None),
    "before": lambda period: Period(None, period.start),
    "until": lambda period: Period(None, period.end),
}
_BOUND_WORDS = WORDS.named("questions.bounds")
_OPERATORS = {">": "after", ">=": "since", "<": "before", "<=": "until", "=": ""}
_LONGER_AGO = {"after": "before", "since": "until", "before": "after", "until": "since"}


def span(match: Match) -> Parts | None:
    """Periods with their bounds, and the date column beside them."""
    item, column = match["dates"], match.get("dcol")
    if column is not None and not _dates_it(match, column):
        return None
    periods = item.periods
    bound = _bound(match, item)
    date = item.word.mark.date
    if bound is None and date is not None and date.unbounded is not None and len(periods) == 1:
        periods = (date.unbounded,)
    elif bound:
        periods = (_BOUNDS[bound](periods[0]),)
    link = column.link if column is not None else None
    negation = match.get("not")
    compares = item.joint == "compare"
    found = Span(periods, item.first, link, negated=negation is not None, compares=compares)
    others = tuple(replace(found, link=one.link) for one in match.all("dcol")[1:])
    return Parts(spans=(found, *others), flags=("compare",) if compares else ())


def week_of(match: Match) -> Parts | None:
    """The whole week of a day: "the week of 2026-10-05"."""
    item = match["dates"]
    start = item.periods[0].start
    if len(item.periods) != 1 or item.periods[0].grain != "day" or start is None or start.day is None:
        return None
    monday = start.shifted("day", -start.day.weekday())
    return Parts(spans=(Span((Period(monday, monday.shifted("week", 1), "week"),), item.first),))


def _dates_it(match: Match, column: Item) -> bool:
    """Whether a word beside a period is its date column, and not what is measured in the period."""
    noun = column.word.noun
    if noun is not None and noun.is_table:
        return False  # "orders from last year"
    question = match.question
    named = [(score, link) for score, link in noun.columns if link.quality >= _MEASURED] if noun else []
    measures = [score for score, link in named if question.is_measure(link)]
    dates = [score for score, link in noun.columns if match.question.is_date(link)] if noun else []
    return not measures or dates[0] >= measures[0] + 0.25


def _bound(match: Match, item: Item) -> str | None:
    """The bound that words beside the period say; None without one."""
    period = item.periods[0]
    for word in match.items:
        if word.symbol == "range":
            return word.arg
        if word.symbol.startswith("'"):
            return _BOUND_WORDS[word.word.text]
        if word.symbol == "cmp":
            bound = _OPERATORS.get(word.arg, "")
            if item.word.text.endswith(_AGO):
                return _LONGER_AGO.get(bound, "")
            return None if word.word.text == "over" and period.is_relative else bound
        if word.symbol == "from" and item.first == item.last:
            open_ended = period.grain is not None and (match.question.is_chinese or period.grain == "day")
            return "since" if open_ended else None
    return None


def table_of(match: Match) -> TableKey:
    """The table that the match names."""
    return match["tab"].link.table
