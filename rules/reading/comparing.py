"""What patterns of comparisons give: with numbers, with averages, of two columns, of how long ago something was."""

from collections.abc import Sequence
from dataclasses import replace

from rules.linking.moments import Moment, Period
from rules.query.query import OPPOSITE, Condition, Operator, ref
from rules.reading.parts import Parts, Threshold
from rules.reading.words import Item, Match, doubts
from rules.words import WORDS

_TRAILING = frozenset(WORDS.both("questions.trailing"))


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
        return Threshold("between", (start, second.value), at) if start <= second.value else None
    if cmp is None or len(numbers) != 1 or numbers[0] is None:
        return None
    trails = items[-1] is cmp
    if trails != (cmp.word.text in _TRAILING):
        return None
    operator, hint = (cmp.arg[:1], cmp.arg[1:]) if cmp.arg[1:].isalpha() else (cmp.arg, "")
    if any(one.symbol == "not" for one in items):
        operator = OPPOSITE.get(operator, operator)  # type: ignore[call-overload]
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
    column, table = match.get("mcol"), match.get("tab")
    if column is not None:
        link = column.link
        if link.column in (*match.question.facts(link.table).key, *match.question.facts(link.table).reference_columns):
            return None
        found = replace(found, link=link, function=function.symbol if function else None)
    elif table is not None:
        found = replace(found, table=table.link.table)
    elif found.operator in ("=", "!="):
        return None
    return Parts(thresholds=(found,), doubts=doubts(column))


def threshold_of_table(match: Match) -> Parts | None:
    """`订单超过5个`: Chinese counts a table without a word for it."""
    before = match.beside(-1)
    if not match.question.is_chinese or (before is not None and before.mark.means("each", "which", "list")):
        return None
    return threshold(match)


def two_thresholds(match: Match) -> Parts | None:
    """Two comparisons of the same: `at least 5000 but less than 7000`."""
    joint = next(index for index, one in enumerate(match.items) if one.symbol == "and")
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
    return Parts(conditions=(Condition(ref(match["mcol"].link), operator),))


def columns_compared(match: Match) -> Parts | None:
    """A column against another of the same kind: "stock below safety stock", "shipped after the due date"."""
    columns = match.all("mcol") or match.all("dcol")
    if len(columns) != 2 or columns[0].link.derived or columns[1].link.derived:
        return None
    word = match["cmp|range"]
    operator = {"after": ">", "before": "<"}.get(word.arg, word.arg)
    if operator not in (">", ">=", "<", "<=", "=", "!=") or columns[0].link.column == columns[1].link.column:
        return None
    if match.is_negated:
        operator = OPPOSITE[operator]  # type: ignore[index]
    left, right = (ref(one.link) for one in columns)
    return Parts(conditions=(Condition(left, operator, (right,)),))  # type: ignore[arg-type]


def duration(match: Match) -> Parts | None:
    """How long ago a date was: `开业超过10年`."""
    found = compared(match)
    noun = match["dcol"].word.noun
    if noun is not None and noun.is_table:
        return None  # "orders that took more than 5 days"
    if found is None or found.operands[0] != int(found.operands[0]) or found.operator == "between":
        return None
    then = Moment().shifted(match["date_part"].arg, -int(found.operands[0]))  # type: ignore[arg-type]
    period = Period(None, then) if found.operator.startswith(">") else Period(then, None)
    return Parts(conditions=(Condition(ref(match["dcol"].link), "during", (period,)),))
