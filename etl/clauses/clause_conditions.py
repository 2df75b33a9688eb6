"""Reads the conditions of a clause: which rows are kept, or which go."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from string import ascii_lowercase
from typing import Any

from common.meanings import TableKey
from common.text import Text
from etl.binding.request_findings import RequestFindings
from etl.clauses.clause_names import NamedColumn, Names, is_date
from etl.clauses.clause_tokens import Token
from etl.clauses.spoken_days import period_conditions, period_of
from etl.schemas.requirement import Choice
from knowledge.language.atoms import key_of

_SKIPPED = (
    "noise",
    "of",
    "skipped",
    "keep",
    "exclude",
    "within",
    "table",
    "unit",
    "with",
    "list",
    "each",
    "from",
    "having",
    "except_end",
    "between_end",
    "inclusion",
    "also",
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
_KEEPS_NULL = ("!=", "not_in", "is_null")
_FIGURES = ("sum", "avg", "max", "min", "median", "count")
_NUMERIC_CMP = (">", ">=", "<", "<=", "=", "!=")
_MOST_CHOICES = 12
_SEVERAL_EXCLUSIONS = Text(
    "一次排除写了几个条件，可能指满足任一条件的行，也可能指同时满足的行：请分成几个“排除”，或用“或”连接。",
    "One exclusion has several conditions: rows with any of them may be meant, or rows with all. "
    "Write an exclusion for each, or join them by “or”.",
)

Json = dict[str, Any]


@dataclass
class _Found:
    """Conditions that hold together; `joint` is how they are tied to the one before."""

    conditions: list[Json]
    joint: str


@dataclass
class ConditionReading:
    """The conditions of a clause, and the words that none of them covers."""

    conditions: list[Json] = field(default_factory=list)
    uncovered: list[str] = field(default_factory=list)


class ConditionReader:
    """Reads the conditions in the tokens of one clause.

    Args:
        measures: of the aggregate before; conditions may be about them.
    """

    def __init__(
        self,
        tokens: Sequence[Token],
        names: Names,
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

    def read(self, *, excludes: bool) -> ConditionReading:
        """Return the conditions of rows that are kept, those of an exclusion turned round."""
        joint, is_negated = "and", False
        while self._at < len(self._tokens):
            token = self._tokens[self._at]
            if token.means("or"):
                joint = "or"
            elif token.means("not"):
                is_negated = not is_negated
            elif self._is_skipped(token) and not self._begins_figure():
                pass
            else:
                self._take_condition(token, joint, is_negated=is_negated)
                joint, is_negated = "and", False
                continue
            self._at += 1
        return ConditionReading(self._joined(excludes=excludes), self._uncovered)

    def _is_skipped(self, token: Token) -> bool:
        if token.is_break or token.means("and"):
            return True
        if token.means("unit") and not self._is_behind_number():
            return False
        if token.means(*_SKIPPED) and token.mark.date is None and not token.links("value"):
            return True
        has_value = bool(token.links("value"))
        return token.table is not None and not has_value

    def _is_behind_number(self) -> bool:
        before = self._token(-1) if self._at else None
        return before is not None and before.mark.number is not None

    def _begins_figure(self) -> bool:
        """Tell whether a table stands before a word that counts its rows in the result."""
        token, after = self._token(), self._token(1)
        if not self._measures or token is None or after is None:
            return False
        return token.table is not None and after.means("count")

    # --------------------------------------------------------------------------
    # one condition

    def _take_condition(self, token: Token, joint: str, *, is_negated: bool) -> None:
        conditions = self._condition(token)
        if conditions is not None and is_negated:
            conditions = self._turned(conditions, keeps_null=False)
        if conditions:
            self._found.append(_Found(conditions, joint))

    def _turned(self, conditions: list[Json], *, keeps_null: bool) -> list[Json] | None:
        """Return what holds when not all of the conditions do; None where it can't be written."""
        turned = _none_of(conditions, keeps_null=keeps_null)
        if turned is None:
            self._uncovered.append(str(conditions[0]["value"]))
        return turned

    def _condition(self, token: Token) -> list[Json] | None:
        """Return the condition that begins here and move behind it; None where there is none."""
        value = self._value_link(token)
        if value is not None:
            return self._values()
        figure = self._figure(token)
        if figure is not None:
            return self._about_figure(figure)
        named = self._names.column(token, self._order)
        if named is not None:
            self._at += 1
            return self._about(named)
        if token.links("column"):  # it has to be asked first
            self._at += 1
            self._skip_operand()
            return None
        period = period_of(token)
        if period is not None or token.means("range"):
            return self._dated(None)
        if token.mark.is_unknown or token.means("unit"):
            return self._unknown_value()
        self._uncovered.append(token.text)
        self._at += 1
        return None

    def _figure(self, token: Token) -> str | None:
        """Return the name of the aggregate's figure that stands here, and move behind it."""
        after = self._token(1)
        if not self._measures or after is None:
            return None
        if token.means(*_FIGURES):  # "number of orders"
            token, after = after, token
        if not after.means(*_FIGURES):
            return None
        name = self._figure_name(token, after)
        known = [measure["as"] for measure in self._measures]
        if name not in known:
            return None
        self._at += 2
        return name

    def _figure_name(self, token: Token, function: Token) -> str | None:
        """Return what an aggregate calls the figure of a table's or column's word."""
        if token.table is not None:
            return f"{self._names.name_of(self._names.of(token.table))}_{function.kind}"
        named = self._names.column(token, self._order)
        return None if named is None else f"{named.column.name}_{function.kind}"

    def _about_figure(self, name: str) -> list[Json] | None:
        """Return the comparison of a figure with the number that follows."""
        is_negated = self._skip_negations()
        conditions = self._figure_comparison(name)
        if conditions is None:
            self._uncovered.append(name)
            return None
        if is_negated:
            return self._turned(conditions, keeps_null=False)
        return conditions

    def _figure_comparison(self, name: str) -> list[Json] | None:
        token, after = self._token(), self._token(1)
        if token is None:
            return None
        if token.mark.number is not None:
            return self._number_first(name)
        operator = _operator(token)
        if operator is None or after is None or after.mark.number is None:
            return None
        self._at += 2
        return [_condition(name, operator, _number(after))]

    def _unknown_value(self) -> list[Json] | None:
        """Return the condition for a word that is no stored value: which one is meant is asked."""
        said = self._text_run()
        coded = []
        for key in self._names.sources:
            table = self._names.of(key)
            for column in table.columns:
                if column.allowed or column.values:
                    coded.append(NamedColumn(table, column))
        if not coded:
            self._uncovered.append(said)
            return None
        named = coded[0] if len(coded) == 1 else None
        named = named or self._names.choose("column", said, coded, self._order)
        if named is None:
            return None
        value = self._asked_value(named, said)
        if value is None:
            return None
        reference = self._names.reference(named.table, named.column.name)
        return [_condition(reference, "=", value)]

    def _about(self, named: NamedColumn) -> list[Json] | None:
        """Return the condition whose column was named just before."""
        is_negated = self._skip_negations()
        conditions = self._comparison(named)
        if conditions is None or not is_negated:
            return conditions
        return self._turned(conditions, keeps_null=False)

    def _comparison(self, named: NamedColumn) -> list[Json] | None:
        """Return what is said of the column, without the negation before it."""
        column = self._names.reference(named.table, named.column.name)
        token = self._token()
        if token is None:
            return self._flag(named, column)
        if token.means("null", "notnull", "empty"):
            self._at += 1
            operator = "not_null" if token.means("notnull") else "is_null"
            return [{"column": column, "operator": operator}]
        if token.means("between"):
            self._at += 1
            return self._between(column)
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
        conditions = self._compared(named, column, "=")
        return conditions and self._turned(conditions, keeps_null=False)

    def _without_comparison(
        self, named: NamedColumn, column: str, token: Token
    ) -> list[Json] | None:
        """Return the condition where no word compares: "status paid", "paid_at in 2024", a flag."""
        if token.means("range") or period_of(token) is not None:
            return self._dated(named)
        if token.mark.number is not None:
            return self._number_first(column)
        has_operand = self._value_link(token) is not None or token.mark.literal is not None
        if has_operand or self._is_text(token):
            return self._compared(named, column, "=")
        return self._flag(named, column)

    def _flag(self, named: NamedColumn, column: str) -> list[Json] | None:
        if named.column.type != "boolean":
            self._uncovered.append(named.column.name)
            return None
        return [{"column": column, "operator": "is_true"}]

    def _compared(self, named: NamedColumn, column: str, operator: str) -> list[Json] | None:
        """Return the comparison with the operand that follows."""
        self._skip_noise()
        token = self._token()
        if token is None:
            self._uncovered.append(named.column.name)
            return None
        if token.mark.number is not None and not is_date(named.table, named.column):
            self._at += 1
            return [_condition(column, operator, _number(token))]
        if period_of(token) is not None:
            bound = {">": "after", ">=": "since", "<": "before", "<=": "until"}.get(operator, "")
            return self._dated(named, bound)
        if token.means("null"):
            self._at += 1
            return [{"column": column, "operator": "is_null"}]
        values = self._listed_values(named)
        if values is None:
            return None
        if len(values) == 1:
            return [_condition(column, operator, values[0])]
        return [_condition(column, "in", values)]

    def _listed_values(self, named: NamedColumn) -> list[str] | None:
        """Return the values that are listed here; None where one has to be asked or is missing."""
        values: list[str] = []
        while True:
            value = self._value_of(named)
            if value is None:
                return values or None
            values.append(value)
            if not self._goes_on_with_value(named):
                return values
            self._at += 1

    def _goes_on_with_value(self, named: NamedColumn) -> bool:
        token = self._token()
        after = self._token(1)
        if token is None or after is None or not token.means("and", "or"):
            return False
        link = self._value_link(after)
        return link is not None and link[0] == (named.table.key, named.column.name)

    def _value_of(self, named: NamedColumn) -> str | None:
        """Return the stored value that the next words name."""
        token = self._token()
        if token is None:
            return None
        for link in token.links("value"):
            if (link.table, link.column) == (named.table.key, named.column.name):
                self._at += 1
                return link.value
        said = self._text_run()
        if not said:
            return None
        for value in named.column.values:
            if key_of(value) == key_of(said):
                return value
        if not (named.column.allowed or named.column.values):
            return said
        return self._asked_value(named, said)

    def _asked_value(self, named: NamedColumn, said: str) -> str | None:
        known = named.column.allowed or named.column.values
        choices = []
        for value in known[:_MOST_CHOICES]:
            choices.append(Choice(value=value, label=value))
        prompt = Text(
            f"“{said}”指 {self._names.label(named.table, named.column)} 的哪个值？",
            f"Which value of {self._names.label(named.table, named.column)} is “{said}”?",
        )
        return self._names.ask("filter_value", said, prompt, choices, self._order)

    def _text_run(self) -> str:
        """Return the text that stands here as an operand and move behind it."""
        token = self._token()
        if token is not None and token.mark.literal is not None:
            self._at += 1
            return token.mark.literal
        parts: list[str] = []
        while token is not None and (self._is_text(token) or not parts):
            if token.means("and", "or", "of") or token.is_break:
                break
            parts.append((" " if parts and token.is_apart else "") + token.text)
            self._at += 1
            token = self._token()
        return "".join(parts).strip()

    def _is_text(self, token: Token) -> bool:
        return token.mark.is_unknown or token.means("noise", "verb", "skipped")

    def _values(self) -> list[Json] | None:
        """Return the condition for stored values that stand without their column."""
        place, values = None, []
        token = self._token()
        link = None if token is None else self._value_link(token)
        while link is not None:
            place = link[0]
            values.append(link[1])
            self._at += 1
            link = self._next_listed(place)
        if place is None:
            return []
        column = self._names.reference(self._names.of(place[0]), place[1])
        if len(values) == 1:
            return [_condition(column, "=", values[0])]
        return [_condition(column, "in", values)]

    def _next_listed(self, place: tuple[TableKey, str]) -> tuple[tuple[TableKey, str], str] | None:
        """Return the further value of the same column that "and" or "or" lists; move to it."""
        joint, after = self._token(), self._token(1)
        if joint is None or after is None or not joint.means("and", "or"):
            return None
        link = self._value_link(after)
        if link is None or link[0] != place:
            return None
        self._at += 1
        return link

    def _value_link(self, token: Token) -> tuple[tuple[tuple[str, str], str], str] | None:
        """Return (column, value) of the stored value that the word is rather than a name."""
        links = token.links("value")
        if not links:
            return None
        own = [link for link in links if link.table in self._names.sources] or list(links)
        best = own[0]
        names = []
        for link in token.mark.links:
            if link.kind != "value":
                names.append(link.quality)
        if best.quality <= max(names, default=0.0) or best.column is None or best.value is None:
            return None
        return ((best.table, best.column), best.value)

    # --------------------------------------------------------------------------
    # numbers, texts and days

    def _number_first(self, column: str) -> list[Json] | None:
        """Return the condition of "100以上": the comparison stands behind its number."""
        if self._is_range():
            return self._between(column)
        token = self._tokens[self._at]
        self._at += 1
        self._skip_noise("unit")
        after = self._token()
        if after is None or not after.means("cmp"):
            return [_condition(column, "=", _number(token))]
        operator = _operator(after)
        self._at += 1
        if operator is None:
            self._uncovered.append(after.text)
            return None
        return [_condition(column, operator, _number(token))]

    def _is_range(self) -> bool:
        """Tell whether two numbers with "to" between them stand here."""
        joint, end = self._token(1), self._token(2)
        if joint is None or end is None:
            return False
        return joint.means("to") and end.mark.number is not None

    def _between(self, column: str) -> list[Json] | None:
        numbers: list[int | float | str] = []
        while self._at < len(self._tokens) and len(numbers) < 2:
            token = self._tokens[self._at]
            if token.mark.number is not None:
                numbers.append(_number(token))
            elif not token.means("and", "to", "unit", "noise"):
                break
            self._at += 1
        if len(numbers) < 2:
            self._uncovered.append(column)
            return None
        return [_condition(column, "between", numbers)]

    def _texts(self, column: str, operator: str) -> list[Json] | None:
        self._skip_noise()
        said = self._text_run()
        if not said:
            self._uncovered.append(column)
            return None
        return [_condition(column, operator, said)]

    def _dated(self, named: NamedColumn | None, bound: str = "") -> list[Json] | None:
        """Return the conditions of the period that follows, on `named` or the only date."""
        token = self._tokens[self._at]
        if token.means("range"):
            bound = token.arg
            self._at += 1
            token = self._token() or token
        period = period_of(token)
        if period is None:
            self._uncovered.append(token.text)
            return None
        self._at += 1
        after = self._token()
        if after is not None and after.means("range"):
            bound = after.arg
            self._at += 1
        if named is None:
            named = self._date_behind() or self._only_date(token.text)
            if named is None:
                return None
        column = self._names.reference(named.table, named.column.name)
        conditions = period_conditions(column, period, bound)
        if conditions is None:
            self._uncovered.append(token.text)
        return conditions

    def _date_behind(self) -> NamedColumn | None:
        """Return the date that stands behind its period: "in 2024 by paid_at"."""
        self._skip_noise()
        token = self._token()
        length = 1
        if token is not None and token.means("by"):
            token = self._token(1)
            length = 2
        if token is None:
            return None
        named = self._names.column(token, self._order, is_date)
        if named is not None:
            self._at += length
        return named

    def _only_date(self, said: str) -> NamedColumn | None:
        dates = self._names.dates()
        if self._names.date_in_use is not None:
            return self._names.only("date_column", said, dates, self._order)
        if len(dates) == 1:
            return dates[0]
        if not dates:
            self._uncovered.append(said)
            return None
        return self._names.choose("date_column", said, dates, self._order)

    # --------------------------------------------------------------------------
    # moving on

    def _token(self, ahead: int = 0) -> Token | None:
        place = self._at + ahead
        if place < len(self._tokens):
            return self._tokens[place]
        return None

    def _skip_noise(self, *kinds: str) -> None:
        token = self._token()
        while token is not None and token.means("noise", "skipped", "of", "from", *kinds):
            is_operand = token.mark.is_unknown or token.mark.number is not None
            if is_operand or token.links("value"):
                return
            if self._token(1) is None:
                return
            self._at += 1
            token = self._token()

    def _skip_negations(self) -> bool:
        is_negated = False
        token = self._token()
        while token is not None and token.means("not", "noise", "of"):
            if token.links("value") or token.mark.is_unknown:
                break
            is_negated = is_negated or token.means("not")
            self._at += 1
            token = self._token()
        return is_negated

    def _skip_operand(self) -> None:
        token = self._token()
        while token is not None and not token.is_break and not token.means("and", "or"):
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
        if not excludes:
            if len(alternatives) == 1:
                return alternatives[0]
            return self._any([one for every in alternatives for one in every], alternatives)
        kept: list[Json] = []
        for conditions in alternatives:  # each alternative goes
            kept += self._turned(conditions, keeps_null=True) or ()
        return kept

    def _any(self, conditions: list[Json], alternatives: list[list[Json]]) -> list[Json]:
        if any(len(every) > 1 for every in alternatives):
            self._uncovered.append("or")
            return []
        flat = []
        for one in conditions:
            for part in one.get("any", [one]):
                flat.append(part)
        return [{"any": flat}]


def _condition(column: str, operator: str, value: Any) -> Json:
    return {"column": column, "operator": operator, "value": value}


def _operator(token: Token) -> str | None:
    """Return the comparison that the word means; None where it is no plain one."""
    if not token.means("cmp"):
        return None
    operator = token.arg.rstrip(ascii_lowercase)  # `>price` of "dearer than"
    if operator in _NUMERIC_CMP:
        return operator
    return None


def _opposites(condition: Json) -> list[Json] | None:
    """Return alternatives of which one holds for a value that does not fulfil the condition."""
    column, operator = condition["column"], condition["operator"]
    if operator == "between":
        low, high = condition["value"]
        return [_condition(column, "<", low), _condition(column, ">", high)]
    opposite = _OPPOSITE.get(operator)
    if opposite is None:
        return None
    return [{**condition, "operator": opposite}]


def _none_of(conditions: list[Json], *, keeps_null: bool) -> list[Json] | None:
    """Return what the rows fulfil that stay when those with all of `conditions` go.

    Args:
        keeps_null: whether rows without a value stay, as an exclusion wants it: it names what goes.
    """
    alternatives: list[Json] = []
    without_value: dict[str, Json] = {}
    for condition in conditions:
        opposites = _opposites(condition)
        if opposites is None:
            return None
        alternatives += opposites
        has_null = any(one["operator"] in _KEEPS_NULL for one in opposites)
        if keeps_null and not has_null:
            column = condition["column"]
            without_value[column] = {"column": column, "operator": "is_null"}
    alternatives += without_value.values()
    if len(alternatives) == 1:
        return alternatives
    return [{"any": alternatives}]


def _number(token: Token) -> int | float | str:
    numeral = token.mark.number
    assert numeral is not None
    value = numeral.value
    if value == int(value):
        return int(value)
    return str(value)
