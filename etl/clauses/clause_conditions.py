"""Reads the conditions of a clause: which rows are kept, or which go."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from string import ascii_lowercase

from common.meanings import TableKey
from common.text import Text
from etl.binding.request_findings import RequestFindings
from etl.clauses.clause_names import NamedColumn, NameResolver, is_date
from etl.clauses.clause_tokens import NO_TOKEN, Token, says, token_at
from etl.clauses.clause_words import truth_operator
from etl.clauses.request_draft import Json, alternatives_in, condition
from etl.clauses.spoken_days import period_conditions, period_of
from etl.schemas.requirement import Choice
from knowledge.language.atoms import key_of
from rules.linking.moments import Period
from rules.schema.links import Link

_SKIPPED = (
    *("noise", "of", "skipped", "keep", "exclude", "within", "table", "unit", "with", "list"),
    *("each", "from", "having", "except_end", "between_end", "inclusion", "also"),
)
_OPPOSITE = {
    "=": "!=",
    "!=": "=",
    ">": "<=",
    ">=": "<",
    "<": ">=",
    "<=": ">",
    "in": "not_in",
    "not_in": "in",
    "is_null": "not_null",
    "not_null": "is_null",
    "is_true": "is_false",
    "is_false": "is_true",
}
_SAYS_NULL = ("!=", "not_in", "is_null", "not_null")
_FIGURES = ("sum", "avg", "max", "min", "median", "count")
# Operators that stand for themselves, whatever they compare.
_PLAIN_OPERATORS = {"null": "is_null", "notnull": "not_null", "empty": "is_null"}
# How a period is bounded by the comparison before it.
_BOUNDS = {">": "after", ">=": "since", "<": "before", "<=": "until"}
_NUMERIC_CMP = (">", ">=", "<", "<=", "=", "!=")
# Kinds of words between the first and the last of the days that count.
_UNTIL = ("to", "noise")
_BETWEEN = (*_UNTIL, "and")
_MOST_CHOICES = 12
_SEVERAL_EXCLUSIONS = Text(
    "一次排除写了几个条件，可能指满足任一条件的行，也可能指同时满足的行：请分成几个“排除”，或用“或”连接。",
    "One exclusion has several conditions: rows with any of them may be meant, or rows with all. "
    "Write an exclusion for each, or join them by “or”.",
)


@dataclass
class _Found:
    """Conditions that hold together; `joint` is how they are tied to the one before."""

    conditions: list[Json]
    joint: str


@dataclass(frozen=True)
class _StoredValue:
    """A value and its column, as the key of a table and a name."""

    place: tuple[TableKey, str]
    value: str


@dataclass
class ConditionReading:
    """The conditions of a clause, and the words that none of them covers.

    Attributes:
        together: those of the conditions whose values are listed with "and".
        excluding: of an exclusion, the conditions as they are said, of rows that go.
    """

    conditions: list[Json] = field(default_factory=list)
    uncovered: list[str] = field(default_factory=list)
    together: list[Json] = field(default_factory=list)
    excluding: list[Json] = field(default_factory=list)


class ConditionReader:
    """Reads the conditions in the tokens of one clause.

    Args:
        measures: the measures of the aggregate before; conditions may be about them.
    """

    def __init__(
        self,
        tokens: Sequence[Token],
        names: NameResolver,
        findings: RequestFindings,
        order: int,
        measures: Sequence[Json] = (),
    ) -> None:
        self._measures = measures
        self._tokens = tokens
        self._names = names
        self._findings = findings
        self._order = order
        self._at = 0
        self._found: list[_Found] = []
        self._uncovered: list[str] = []
        self._together: list[Json] = []

    def read(self, *, excludes: bool) -> ConditionReading:
        """Return the conditions of rows that are kept, those of an exclusion turned round."""
        joint, is_negated = "and", False
        while self._at < len(self._tokens):
            token = self._tokens[self._at]
            if token.means("or"):
                joint = "or"
            elif token.means("not"):
                is_negated = not is_negated
            elif self._begins_figure() or not self._is_skipped(token):
                self._take_condition(token, joint, is_negated=is_negated)
                joint, is_negated = "and", False
                continue
            elif is_negated and self._ends_name(token):
                self._uncovered.append(token.text)  # rows that another table has none for
                is_negated = False

            self._at += 1

        excluding = self._joined(excludes=False) if excludes else []
        joined = self._joined(excludes=excludes)
        return ConditionReading(joined, self._uncovered, self._together, excluding)

    def _is_skipped(self, token: Token) -> bool:
        """Tell whether the word says nothing by itself where a condition may begin."""
        if token.is_break or token.means("and"):
            return True
        if token.means("unit") and not self._is_behind_number():
            return False
        if token.links("value"):
            return False
        if token.means("noise") and self._names.column_called(token.text) is not None:
            return False
        if token.table is not None:
            return True

        is_date = token.mark.date is not None
        return token.means(*_SKIPPED) and not is_date

    def _ends_name(self, token: Token) -> bool:
        """Tell whether a table stands alone, and not before one of its columns."""
        after = self._token(1)
        return token.table is not None and (after is NO_TOKEN or after.means("of", "and", "or"))

    def _is_behind_number(self) -> bool:
        before = token_at(self._tokens, self._at - 1)
        return before.mark.number is not None

    def _begins_figure(self) -> bool:
        """Tell whether a table stands before a word that counts its rows in the result."""
        if not self._measures or self._token().table is None:
            return False

        return self._token(1).means("count")

    # --------------------------------------------------------------------------
    # one condition

    def _take_condition(self, token: Token, joint: str, *, is_negated: bool) -> None:
        conditions = self._unless(self._condition(token), is_negated=is_negated)
        if conditions:
            self._found.append(_Found(conditions, joint))

    def _turned(self, conditions: list[Json], *, keeps_null: bool) -> list[Json] | None:
        """Return the negation of conditions; None, and a word is uncovered, without such a form."""
        turned = _none_of(conditions, keeps_null=keeps_null)
        if turned is None:
            self._uncovered.append(str(conditions[0]["value"]))

        return turned

    def _condition(self, token: Token) -> list[Json] | None:
        """Return the conditions that begin here and move behind them; None where there are none."""
        if self._value_link(token) is not None:
            return self._values()

        figure = self._figure(token)
        if figure is not None:
            return self._about_figure(figure)

        named = self._names.column(token, self._order)
        if named is not None:
            self._at += 1
            return self._about(named)

        if token.links("column"):  # the user is asked which one is meant
            self._at += 1
            self._skip_operand()
            return None

        if self._is_period(token):
            return self._dated(None)
        if token.mark.is_unknown or token.means("unit"):
            return self._unknown_value()

        self._at += 1
        self._uncovered.append(token.text)
        return None

    def _figure(self, token: Token) -> str | None:
        """Return the name of the aggregate's figure that stands here, and move behind it."""
        if not self._measures:
            return None

        after = self._token(1)
        if token.means(*_FIGURES):  # "number of orders"
            token, after = after, token
        if not after.means(*_FIGURES):
            return None

        name = self._figure_name(token, after)
        figures = [measure["as"] for measure in self._measures]
        if name not in figures:
            return None

        self._at += 2
        return name

    def _figure_name(self, token: Token, function: Token) -> str | None:
        """Return what an aggregate calls the figure of a table's or column's word."""
        if token.table is not None:
            table = self._names.table_by_key(token.table)
            return f"{self._names.name_of(table)}_{function.kind}"

        named = self._names.column(token, self._order)
        if named is None:
            return None

        return f"{named.column.name}_{function.kind}"

    def _about_figure(self, name: str) -> list[Json] | None:
        """Return the comparison of a figure with the number that follows."""
        is_negated = self._skip_negations()
        conditions = self._figure_comparison(name)
        if conditions is None:
            self._uncovered.append(name)

        return self._unless(conditions, is_negated=is_negated)

    def _figure_comparison(self, name: str) -> list[Json] | None:
        token, after = self._token(), self._token(1)
        if token.mark.number is not None:
            return self._number_first(name)

        operator = _operator(token)
        if operator is None or after.mark.number is None:
            return None

        self._at += 2
        return [condition(name, operator, _number(after))]

    def _unknown_value(self) -> list[Json] | None:
        """Return the condition for a word that is no stored value: the user is asked for one."""
        text = self._text_run()
        coded = self._names.coded_columns()
        if not coded:
            self._uncovered.append(text)
            return None

        named: NamedColumn | None = coded[0]
        if len(coded) > 1:
            named = self._names.choose("column", text, coded, self._order)
        if named is None:
            return None

        value = self._asked_value(named, text)
        if value is None:
            return None

        reference = self._names.reference(named.table, named.column.name)
        return [condition(reference, "=", value)]

    def _about(self, named: NamedColumn) -> list[Json] | None:
        """Return the condition whose column was named just before."""
        is_negated = self._skip_negations()
        conditions = self._comparison(named)
        return self._unless(conditions, is_negated=is_negated)

    def _unless(self, conditions: list[Json] | None, *, is_negated: bool) -> list[Json] | None:
        """Return the conditions, turned round where they are negated."""
        if conditions is None or not is_negated:
            return conditions

        return self._turned(conditions, keeps_null=False)

    def _comparison(self, named: NamedColumn) -> list[Json] | None:
        """Return what is said of the column, without the negation before it."""
        column = self._names.reference(named.table, named.column.name)
        if is_date(named.table, named.column):
            self._skip_noise()

        token = self._token()
        if token.meaning in _PLAIN_OPERATORS:
            self._at += 1
            return [{"column": column, "operator": _PLAIN_OPERATORS[token.meaning]}]

        if token.means("between"):
            self._at += 1
            if is_date(named.table, named.column):
                self._skip_noise()
                return self._dated(named, ties=_BETWEEN)

            return self._between_condition(column)

        if token.means("like"):
            self._at += 1
            return self._texts(column, token.arg)

        if token.means("cmp"):
            return self._behind_comparison(named, column, token)

        return self._without_comparison(named, column, token)

    def _behind_comparison(
        self, named: NamedColumn, column: str, token: Token
    ) -> list[Json] | None:
        operator = _operator(token)
        if operator is None:
            self._uncovered.append(token.text)
            return None

        self._at += 1
        if operator != "!=":
            return self._compared(named, column, operator)

        equal = self._compared(named, column, "=")
        if not equal:
            return equal

        return self._turned(equal, keeps_null=False)

    def _without_comparison(
        self, named: NamedColumn, column: str, token: Token
    ) -> list[Json] | None:
        """Return the condition where no word compares: "status paid", "paid_at in 2024", a flag."""
        if self._is_period(token):
            return self._dated(named)
        if token.mark.number is not None:
            return self._number_first(column)

        if named.column.type == "boolean":
            return self._flag(named, column)

        is_quoted = token.mark.literal is not None
        is_stored = self._value_link(token) is not None
        if is_quoted or is_stored or self._is_text(token):
            return self._compared(named, column, "=")

        return self._flag(named, column)

    def _is_period(self, token: Token) -> bool:
        """Tell whether a period is said here, or where one begins or ends."""
        return token.means("range") or period_of(token) is not None

    def _flag(self, named: NamedColumn, column: str) -> list[Json] | None:
        if named.column.type != "boolean":
            self._uncovered.append(named.column.name)
            return None

        operator = truth_operator(self._token().text)
        if operator is None:
            return [{"column": column, "operator": "is_true"}]

        self._at += 1
        return [{"column": column, "operator": operator}]

    def _compared(self, named: NamedColumn, column: str, operator: str) -> list[Json] | None:
        """Return the comparison with the operand that follows."""
        self._skip_noise()
        token = self._token()
        if token is NO_TOKEN:
            self._uncovered.append(named.column.name)
            return None

        if token.mark.number is not None and not is_date(named.table, named.column):
            if operator == "=":
                return self._equal_to_numbers(column)

            self._at += 1
            return [condition(column, operator, _number(token))]

        if period_of(token) is not None:
            return self._dated(named, _BOUNDS.get(operator, ""))
        if token.means("null"):
            self._at += 1
            return [{"column": column, "operator": "is_null"}]

        start = self._at
        values = self._listed_values(named)
        if values is None:
            return None
        if len(values) == 1:
            return [condition(column, operator, values[0])]

        return [self._one_of(column, values, start)]

    def _listed_values(self, named: NamedColumn) -> list[str] | None:
        """Return the values that are listed here; None where there is none or the user is asked."""
        values: list[str] = []
        value = self._value_of(named)
        while value is not None:
            values.append(value)
            if not self._goes_on_with_value(named):
                return values

            self._at += 1
            value = self._value_of(named)

        return values or None

    def _goes_on_with_value(self, named: NamedColumn) -> bool:
        """Tell whether "and" or "or" stands here, and a further value of the column behind it."""
        link = self._further_value()
        if link is None:
            return False

        return link.place == (named.table.key, named.column.name)

    def _further_value(self) -> _StoredValue | None:
        """Return the stored value behind the "and" or "or" that stands here."""
        if not self._token().means("and", "or"):
            return None

        return self._value_link(self._token(1))

    def _value_of(self, named: NamedColumn) -> str | None:
        """Return the stored value that the next words name."""
        for link in self._token().links("value"):
            if (link.table, link.column) == (named.table.key, named.column.name):
                self._at += 1
                return link.value

        text = self._text_run()
        if not text:
            return None

        for value in named.column.values:
            if key_of(value) == key_of(text):
                return value

        if named.column.allowed or named.column.values:
            return self._asked_value(named, text)

        return text

    def _asked_value(self, named: NamedColumn, text: str) -> str | None:
        stored = named.column.allowed or named.column.values
        choices = []
        for value in stored[:_MOST_CHOICES]:
            choices.append(Choice(value=value, label=value))

        label = self._names.label(named.table, named.column)
        prompt = Text(f"“{text}”指 {label} 的哪个值？", f"Which value of {label} is “{text}”?")
        return self._names.ask("filter_value", text, prompt, choices, self._order)

    def _text_run(self) -> str:
        """Return the text that stands here as an operand and move behind it."""
        token = self._token()
        if token.mark.literal is not None:
            self._at += 1
            return token.mark.literal

        text = ""
        while not self._ends_text(token, text):
            if text and token.is_apart:
                text += " "

            text += token.text
            self._at += 1
            token = self._token()

        return text.strip()

    def _ends_text(self, token: Token, text: str) -> bool:
        """Tell whether the word is no part of the text that is said so far."""
        if token is NO_TOKEN or token.is_break:
            return True
        if token.means("and", "or", "of"):
            return True

        is_first = not text
        return not is_first and not self._is_text(token)

    def _is_text(self, token: Token) -> bool:
        if token.mark.is_unknown:
            return True

        return token.means("noise", "verb", "skipped")

    def _values(self) -> list[Json] | None:
        """Return the condition for stored values that stand without their column."""
        link = self._value_link(self._token())
        if link is None:
            return []

        place, values = link.place, [link.value]
        start = self._at
        self._at += 1
        further = self._further_value()
        while further is not None and further.place == place:
            values.append(further.value)
            self._at += 2
            further = self._further_value()

        table, name = place
        column = self._names.reference(self._names.table_by_key(table), name)
        return [self._one_of(column, values, start)]

    def _one_of(self, column: str, values: Sequence[str], start: int) -> Json:
        """Return the condition for the values that the words from `start` to here list."""
        if len(values) == 1:
            return condition(column, "=", values[0])

        listed = condition(column, "in", values)
        words = self._tokens[start : self._at]
        if says(words, "and") and not says(words, "or"):
            self._together.append(listed)

        return listed

    def _value_link(self, token: Token) -> _StoredValue | None:
        """Return the stored value that the word is rather than a name."""
        links = token.links("value")
        if not links:
            return None

        own: list[Link] = []
        for link in links:
            if link.table in self._names.sources:
                own.append(link)

        best = [*own, *links][0]
        if best.column is None or best.value is None:
            return None
        if best.quality <= token.rival_quality("value"):
            return None

        return _StoredValue((best.table, best.column), best.value)

    # --------------------------------------------------------------------------
    # numbers, texts and days

    def _number_first(self, column: str) -> list[Json] | None:
        """Return the condition of "100以上": the comparison stands behind its number."""
        if self._is_range():
            return self._between_condition(column)

        numbers = self._numbers()
        if len(numbers) > 1:
            return [condition(column, "in", numbers)]

        self._skip_noise("unit")
        after = self._token()
        if not after.means("cmp"):
            return [condition(column, "=", numbers[0])]

        operator = _operator(after)
        self._at += 1
        if operator is None:
            self._uncovered.append(after.text)
            return None

        return [condition(column, operator, numbers[0])]

    def _equal_to_numbers(self, column: str) -> list[Json]:
        numbers = self._numbers()
        if len(numbers) > 1:
            return [condition(column, "in", numbers)]

        return [condition(column, "=", numbers[0])]

    def _numbers(self) -> list[int | float | str]:
        """Return the numbers that stand here with "or" between them, and move behind them."""
        numbers = [_number(self._token())]
        self._at += 1
        while self._token().means("or") and self._token(1).mark.number is not None:
            numbers.append(_number(self._token(1)))
            self._at += 2

        return numbers

    def _is_range(self) -> bool:
        """Tell whether two numbers with "to" between them stand here."""
        if not self._token(1).means("to"):
            return False

        return self._token(2).mark.number is not None

    def _between_condition(self, column: str) -> list[Json] | None:
        numbers: list[int | float | str] = []
        while len(numbers) < 2:
            token = self._token()
            if token.mark.number is not None:
                numbers.append(_number(token))
            elif not token.means("and", "to", "unit", "noise"):
                break

            self._at += 1

        if len(numbers) < 2:
            self._uncovered.append(column)
            return None

        return [condition(column, "between", numbers)]

    def _texts(self, column: str, operator: str) -> list[Json] | None:
        self._skip_noise()
        text = self._text_run()
        if not text:
            self._uncovered.append(column)
            return None

        return [condition(column, operator, text)]

    def _dated(
        self, named: NamedColumn | None, bound: str = "", ties: Sequence[str] = _UNTIL
    ) -> list[Json] | None:
        """Return the conditions of the period that follows, on `named` or the only date.

        Args:
            ties: kinds of words between it and another one, up to which the days count.
        """
        bound = self._bound_here(bound)
        token = self._token()
        if token is NO_TOKEN:
            token = self._tokens[self._at - 1]

        period = period_of(token)
        if period is None:
            self._uncovered.append(token.text)
            return None

        self._at += 1
        last = self._last_period(ties)
        bound = self._bound_here(bound)
        named = named or self._date_behind() or self._only_date(token.text)
        if named is None:
            return None

        column = self._names.reference(named.table, named.column.name)
        if last is not None:
            period = replace(period, end=last.end)

        conditions = period_conditions(column, period, bound)
        if conditions is None:
            self._uncovered.append(token.text)

        return conditions

    def _last_period(self, ties: Sequence[str]) -> Period | None:
        """Return the period behind "to" that stands here, and move behind it; None without."""
        if not self._token().means(*ties):
            return None

        period = period_of(self._token(1))
        if period is None:
            return None

        self._at += 2
        if self._token().means("between_end"):
            self._at += 1

        return period

    def _bound_here(self, default: str) -> str:
        """Return the bound that is said here and move behind it; the known one without any."""
        token = self._token()
        if not token.means("range"):
            return default

        self._at += 1
        return token.arg

    def _date_behind(self) -> NamedColumn | None:
        """Return the date that stands behind its period: "in 2024 by paid_at"."""
        self._skip_noise()
        token = self._token()
        length = 1
        if token.means("by"):
            token = self._token(1)
            length = 2

        named = self._names.column(token, self._order, is_date)
        if named is not None:
            self._at += length

        return named

    def _only_date(self, phrase: str) -> NamedColumn | None:
        """Return the request's date column; of several the user is asked."""
        dates = self._names.dates()
        if self._names.date_in_use is not None:  # which the user may not have said: it is noted
            return self._names.only("date_column", phrase, dates, self._order)
        if not dates:
            self._uncovered.append(phrase)
            return None

        if len(dates) == 1:
            return dates[0]

        return self._names.choose("date_column", phrase, dates, self._order)

    # --------------------------------------------------------------------------
    # moving on

    def _token(self, ahead: int = 0) -> Token:
        return token_at(self._tokens, self._at + ahead)

    def _skip_noise(self, *kinds: str) -> None:
        token = self._token()
        while token.means("noise", "skipped", "of", "from", *kinds):
            is_operand = token.mark.is_unknown or token.mark.number is not None
            is_last = self._token(1) is NO_TOKEN
            if is_operand or is_last or token.links("value"):
                return

            self._at += 1
            token = self._token()

    def _skip_negations(self) -> bool:
        """Move behind the words before an operand; tell whether a "not" is among them."""
        is_negated = False
        token = self._token()
        while token.means("not", "noise", "of"):
            if token.mark.is_unknown or token.links("value"):
                break

            is_negated = is_negated or token.means("not")
            self._at += 1
            token = self._token()

        return is_negated

    def _skip_operand(self) -> None:
        token = self._token()
        while token is not NO_TOKEN:
            if token.is_break or token.means("and", "or"):
                return

            self._at += 1
            token = self._token()

    # --------------------------------------------------------------------------
    # together

    def _joined(self, *, excludes: bool) -> list[Json]:
        """Return the conditions that hold together; alternatives become one `any`."""
        groups: list[list[list[Json]]] = []
        for found in self._found:
            if found.joint == "or" and groups:
                groups[-1].append(found.conditions)
            else:
                groups.append([found.conditions])

        if excludes and len(groups) > 1:
            self._findings.refuse("unsupported", _SEVERAL_EXCLUSIONS)
            return []

        joined: list[Json] = []
        for group in groups:
            joined += self._kept(group, excludes=excludes)

        return joined

    def _kept(self, alternatives: list[list[Json]], *, excludes: bool) -> list[Json]:
        """Return the conditions of rows that stay, where the alternatives say which stay or go."""
        if not excludes:
            return self._any(alternatives)

        opposites: list[Json] = []
        for conditions in alternatives:  # rows with any alternative go
            opposites += self._turned(conditions, keeps_null=True) or ()

        return opposites

    def _any(self, alternatives: list[list[Json]]) -> list[Json]:
        """Return conditions as one that any of them fulfils; a single alternative as it is."""
        if len(alternatives) == 1:
            return alternatives[0]

        flat: list[Json] = []
        for conditions in alternatives:
            if len(conditions) > 1:
                self._uncovered.append("or")
                return []

            flat += alternatives_in(conditions[0])

        return [{"any": flat}]


def _operator(token: Token) -> str | None:
    """Return the comparison that the word means; None where it is no plain one."""
    if not token.means("cmp"):
        return None

    operator = token.arg.rstrip(ascii_lowercase)  # `>price` of "dearer than"
    if operator in _NUMERIC_CMP:
        return operator

    return None


def _opposites(comparison: Json) -> list[Json] | None:
    """Return alternatives of which one holds for a value that does not fulfil the condition."""
    column, operator = comparison["column"], comparison["operator"]
    if operator == "between":
        low, high = comparison["value"]
        return [condition(column, "<", low), condition(column, ">", high)]

    opposite = _OPPOSITE.get(operator)
    if opposite is None:
        return None

    return [{**comparison, "operator": opposite}]


def _none_of(conditions: list[Json], *, keeps_null: bool) -> list[Json] | None:
    """Return conditions of the rows that do not fulfil all of these; None without such a form.

    Args:
        keeps_null: whether rows without a value stay, as an exclusion wants it: it names what goes.
    """
    alternatives: list[Json] = []
    without_value: dict[str, Json] = {}
    for entry in conditions:
        opposites = _opposites(entry)
        if opposites is None:
            return None

        alternatives += opposites
        if keeps_null and not _any_says_null(opposites):
            column = entry["column"]
            without_value[column] = {"column": column, "operator": "is_null"}

    alternatives += without_value.values()
    if len(alternatives) == 1:
        return alternatives

    return [{"any": alternatives}]


def _any_says_null(conditions: Sequence[Json]) -> bool:
    """Tell whether conditions keep NULL, or are those of an exclusion that names it."""
    return any(comparison["operator"] in _SAYS_NULL for comparison in conditions)


def _number(token: Token) -> int | float | str:
    numeral = token.mark.number
    assert numeral is not None
    value = numeral.value
    if value == int(value):
        return int(value)

    return str(value)
