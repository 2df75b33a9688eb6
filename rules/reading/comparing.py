"""Makes parts of patterns of comparisons: with numbers, averages, other columns and durations."""

from collections.abc import Sequence
from dataclasses import replace

from rules.linking.moments import Moment, Period
from rules.query.query import OPPOSITE, Condition, Operator, ref
from rules.reading.parts import Parts, Threshold
from rules.reading.words import Match, MatchedItem, QuestionWords, doubts
from rules.schema.links import Link
from rules.words import WORDS
from rules.words.numerals import Numeral

_TRAILING = frozenset(WORDS.both("questions.trailing"))  # words that stand behind their number
_COMPARING = ("cmp", "between", "between_end", "num", "not")
_COMPARES_COLUMNS = (">", ">=", "<", "<=", "=", "!=")
_DATE_OPERATORS = {"after": ">", "before": "<"}


def compared(match: Match, items: Sequence[MatchedItem] | None = None) -> Threshold | None:
    """Return the comparison that a match or some of its items make, without the compared column."""
    items = [item for item in items or match.items if item.symbol in _COMPARING]
    numbers = [item.word.mark.number for item in items if item.symbol == "num"]
    at = items[0].first
    match numbers:
        case [Numeral() as first, Numeral() as second]:
            return _between_threshold(first, second, at)
        case [Numeral() as number]:
            return _compared_with(number, items, at)

    return None


def _between_threshold(first: Numeral, second: Numeral, at: int) -> Threshold | None:
    start = first.value
    # In `1到2万` and "between 1 and 2 million" the scale belongs to both numbers.
    if first.scale == 1 and first.value < second.unscaled:
        start = first.value * second.scale

    if start <= second.value:
        return Threshold("between", (start, second.value), at)

    return None


def _compared_with(number: Numeral, items: Sequence[MatchedItem], at: int) -> Threshold | None:
    comparing = [item for item in items if item.symbol == "cmp"]
    if not comparing:
        return None

    word = comparing[0]
    is_behind = items[-1] is word
    if is_behind != (word.word.text in _TRAILING):
        return None

    operator = word.arg
    hint = ""
    if word.arg[1:].isalpha():  # `<price` of "cheaper than"
        operator = word.arg[:1]
        hint = word.arg[1:]

    if any(item.symbol == "not" for item in items):
        operator = OPPOSITE.get(operator, operator)  # type: ignore[call-overload]

    return Threshold(operator, (number.value,), at, hint=hint)  # type: ignore[arg-type]


def threshold(match: Match) -> Parts | None:
    """Compare a column, an aggregate of it, or the number of a table's rows."""
    comparison = compared(match)
    column = match.get("mcol")
    table = match.get("tab")
    if comparison is None or _compares_before(match):
        return None
    if comparison.hint and (column is not None or table is not None):
        # the adjective says already what is compared
        return None
    if column is not None:
        if _is_key(match.question, column.link):
            return None

        function = match.get("sum", "avg", "max", "min")
        symbol = function.symbol if function is not None else None
        comparison = replace(comparison, link=column.link, function=symbol)
    elif table is not None:
        comparison = replace(comparison, table=table.link.table)
    elif comparison.operator in ("=", "!="):
        return None

    return Parts(thresholds=(comparison,), doubts=doubts(column))


def _compares_before(match: Match) -> bool:
    """Tell whether a comparison is of what stands before it: `超过5次的读者`."""
    after = match.get("tab", "mcol")
    number = match.all("num")[-1]
    if after is None or not match.question.is_chinese:
        return False

    between = match.question.words[number.last : after.first]
    return any(word.mark.means("of") for word in between)


def _is_key(question: QuestionWords, link: Link) -> bool:
    facts = question.facts(link.table)
    return link.column in facts.key or link.column in facts.reference_columns


def threshold_of_table(match: Match) -> Parts | None:
    """Compare the number of a table's rows, which Chinese says without a word: `订单超过5个`."""
    if not match.question.is_chinese or match.is_after("each", "which", "list"):
        return None

    return threshold(match)


def two_thresholds(match: Match) -> Parts | None:
    """Compare the same column or table twice: `at least 5000 but less than 7000`."""
    joint = next(index for index, one in enumerate(match.items) if one.symbol == "and")
    first = compared(match, match.items[:joint])
    second = compared(match, match.items[joint:])
    if first is None or second is None:
        return None

    column = match.get("mcol")
    table = match.get("tab")
    if column is not None:
        both = [replace(one, link=column.link, table=None) for one in (first, second)]
    else:
        key = table.link.table if table is not None else None
        both = [replace(one, link=None, table=key) for one in (first, second)]

    return Parts(thresholds=tuple(both))


def average(match: Match) -> Parts:
    """Compare a column with its own average: `above average`."""
    is_above = match.get("above_average") is not None
    operator: Operator = "above average" if is_above else "below average"
    return Parts(conditions=(Condition(ref(match["mcol"].link), operator),))


def columns_compared(match: Match) -> Parts | None:
    """Compare two columns of the same kind: "stock below safety stock"."""
    columns = match.all("mcol") or match.all("dcol")
    if len(columns) != 2 or any(column.link.derived for column in columns):
        return None

    left, right = (ref(column.link) for column in columns)
    word = match["cmp|range"]
    operator = _DATE_OPERATORS.get(word.arg, word.arg)
    if operator not in _COMPARES_COLUMNS or left.column == right.column:
        return None
    if match.is_negated:
        operator = OPPOSITE[operator]  # type: ignore[index]

    return Parts(conditions=(Condition(left, operator, (right,)),))  # type: ignore[arg-type]


def duration(match: Match) -> Parts | None:
    """Compare how long ago a date was: `开业超过10年`."""
    found = compared(match)
    date = match["dcol"]
    noun = date.word.noun
    if noun is not None and noun.is_table:
        # "orders that took more than 5 days"
        return None
    facts = match.question.facts(date.link.table)
    if facts.is_event and date.link.column in facts.dates[1:]:
        # `到货超过15天` may mean that it took so long
        return None
    if found is None or found.operator == "between" or found.operands[0] != int(found.operands[0]):
        return None

    ago = -int(found.operands[0])
    then = Moment().shifted(match["date_part"].arg, ago)  # type: ignore[arg-type]
    period = Period(None, then) if found.operator.startswith(">") else Period(then, None)
    return Parts(conditions=(Condition(ref(date.link), "during", (period,)),))
