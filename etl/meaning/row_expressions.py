"""The expressions that an intent may hold: read, checked against what is allowed, and typed.

What is allowed reads nothing but the row's own columns, gives the same for the same row, and is
known to the evaluation, so that the interpreter can say what it means.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from common.errors import InvalidRequest
from common.text import Text
from etl.meaning.value_kinds import DAYS, MOMENTS, NUMBERS, ValueKind, bare_type, kind_of_type

DIALECT = "postgres"
MOST_CHARS = 4000
MOST_NODES = 400
ColumnTypes = Callable[[exp.Column], str]
"""Gives the type of a column in PostgreSQL's spelling."""

COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.NullSafeNEQ)
_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod)
_ROUNDING = (exp.Round, exp.Trunc, exp.Ceil, exp.Floor)
_TEXT_FUNCTIONS = (
    *(exp.Lower, exp.Upper, exp.Trim, exp.Left, exp.Right, exp.Substring, exp.Replace),
    *(exp.Concat, exp.DPipe),
)
_FIRST_OF = (exp.Coalesce, exp.Greatest, exp.Least)
_TESTS = (
    *COMPARISONS,
    *(exp.And, exp.Or, exp.Not, exp.Is, exp.In, exp.Between, exp.Like, exp.ILike),
)
_LEAVES = (exp.Column, exp.Identifier, exp.Literal, exp.Boolean, exp.Null, exp.Var)
_ALLOWED = (
    *_ARITHMETIC,
    *_ROUNDING,
    *_TEXT_FUNCTIONS,
    *_FIRST_OF,
    *_TESTS,
    *_LEAVES,
    *(exp.Paren, exp.Neg, exp.Abs, exp.Case, exp.If, exp.Nullif, exp.Length),
    *(exp.Cast, exp.DataType, exp.DataTypeParam),
    *(exp.Extract, exp.TimestampTrunc, exp.AtTimeZone),
)
EXTRACTED = ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND")
"""Parts of a date that EXTRACT gives."""
TRUNCATED = ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR")
_CASTS: dict[Any, str] = {
    exp.DataType.Type.TEXT: "text",
    exp.DataType.Type.DECIMAL: "numeric",
    exp.DataType.Type.SMALLINT: "smallint",
    exp.DataType.Type.INT: "integer",
    exp.DataType.Type.BIGINT: "bigint",
    exp.DataType.Type.DOUBLE: "double precision",
    exp.DataType.Type.BOOLEAN: "boolean",
    exp.DataType.Type.DATE: "date",
    exp.DataType.Type.TIMESTAMP: "timestamp without time zone",
}
_INTEGERS = ("smallint", "integer", "bigint")
_UNTYPED = "unknown"  # a NULL, and a text that stands for a day


class ExpressionRefused(InvalidRequest):
    """An expression can't be used; the message says why."""


def parse_expression(text: str) -> exp.Expression:
    """Read one expression and check that it is allowed.

    Raises:
        ExpressionRefused
    """
    if len(text) > MOST_CHARS:
        raise _refused(f"超过 {MOST_CHARS} 个字符", f"is longer than {MOST_CHARS} characters")
    try:
        statements = sqlglot.parse(f"SELECT {text}", read=DIALECT)
    except (SqlglotError, RecursionError) as error:
        raise _refused("不是一个 SQL 表达式", "is not an SQL expression") from error
    select = statements[0] if len(statements) == 1 else None
    if not isinstance(select, exp.Select) or not _is_one_item(select):
        raise _refused("不是单个 SQL 表达式", "is not one single SQL expression")
    expression: exp.Expression = select.expressions[0].pop()
    check_expression(expression)
    return expression


def _is_one_item(select: exp.Select) -> bool:
    others = [name for name, value in select.args.items() if name != "expressions" and value]
    return not others and len(select.expressions) == 1


def check_expression(expression: exp.Expression) -> None:
    """Check that all of an expression is allowed; takes its comments away.

    Raises:
        ExpressionRefused
    """
    for number, node in enumerate(expression.walk()):
        node.pop_comments()
        if number == MOST_NODES:
            raise _refused("太长", "is too long")
        if not isinstance(node, _ALLOWED):
            raise _not_allowed(node)
        _check_node(node)


def _check_node(node: exp.Expr) -> None:
    if isinstance(node, exp.Column):
        _check_column(node)
    elif isinstance(node, exp.Cast):
        _check_cast(node)
    elif isinstance(node, exp.Extract):
        _check_unit(node.this, EXTRACTED)
    elif isinstance(node, exp.TimestampTrunc):
        _check_unit(node.args["unit"], TRUNCATED)
        _check_absent(node, ("zone",))
    elif isinstance(node, exp.In):
        _check_absent(node, ("query", "unnest"))
    elif isinstance(node, exp.Is) and not isinstance(node.expression, exp.Null | exp.Boolean):
        raise _not_allowed(node)


def _check_absent(node: exp.Expr, names: Sequence[str]) -> None:
    if any(node.args.get(name) for name in names):
        raise _not_allowed(node)


def _check_column(column: exp.Column) -> None:
    if not isinstance(column.this, exp.Identifier) or column.args.get("db"):
        raise _refused(
            f"列名 {column.sql(DIALECT)} 应写成 表.列",
            f"names a column {column.sql(DIALECT)}; columns are written as table.column",
        )


def _check_cast(cast: exp.Cast) -> None:
    if type(cast) is not exp.Cast or cast.to.this not in _CASTS:
        raise _refused(
            f"不能转换为类型 {cast.to.sql(DIALECT)}",
            f"can't cast to the type {cast.to.sql(DIALECT)}",
        )


def _check_unit(unit: exp.Expression, known: Sequence[str]) -> None:
    if unit.name.upper() not in known:
        listed = ", ".join(known).lower()
        raise _refused(
            f"不支持时间单位 {unit.name}；可用：{listed}",
            f"uses the unit {unit.name}; possible are {listed}",
        )


def columns_of(expression: exp.Expression) -> Iterator[exp.Column]:
    """Yield the columns that an expression reads, as often as it does."""
    yield from expression.find_all(exp.Column)


# ------------------------------------------------------------------------------
# types


def type_of(expression: exp.Expression, types: ColumnTypes) -> str:
    """Return the type of an expression's values, without a length or precision.

    Quotients are numeric also where both sides are integers.

    Raises:
        ExpressionRefused: an operator does not fit the types beside it.
    """
    return _Typing(types).type_of(expression)


class _Typing:
    def __init__(self, types: ColumnTypes) -> None:
        self._types = types

    def type_of(self, node: exp.Expression) -> str:
        if isinstance(node, exp.Column):
            return bare_type(self._types(node))
        if isinstance(node, exp.Literal | exp.Boolean | exp.Null):
            return _literal_type(node)
        if isinstance(node, exp.Paren):
            return self.type_of(node.this)
        if isinstance(node, exp.Cast):
            self.type_of(node.this)
            return _CASTS[node.to.this]
        if isinstance(node, _TESTS):
            return self._of_test(node)
        if isinstance(node, _TEXT_FUNCTIONS):
            return self._of_text(node)
        if isinstance(node, exp.Extract | exp.TimestampTrunc | exp.AtTimeZone):
            return self._of_time(node)
        if isinstance(node, exp.Case | exp.Nullif | exp.Coalesce | exp.Greatest | exp.Least):
            return self._of_choice(node)
        return self._of_number(node)

    def _of_number(self, node: exp.Expression) -> str:
        if isinstance(node, exp.Length):
            self._need(node.this, {"text"})
            return "integer"
        if isinstance(node, _ARITHMETIC):
            return self._of_arithmetic(node)
        if isinstance(node, _ROUNDING):
            decimals = node.args.get("decimals")
            if decimals is not None:
                self._need(decimals, {"integer"})
        operand = self._need(node.this, NUMBERS)
        if isinstance(node, _ROUNDING) and kind_of_type(operand) == "integer":
            return "numeric"
        return operand

    def _of_arithmetic(self, node: exp.Expression) -> str:
        left, right = self.type_of(node.this), self.type_of(node.expression)
        kinds = (kind_of_type(left), kind_of_type(right))
        if "date" in kinds:
            return _date_arithmetic(node, kinds)
        for side, type_ in ((node.this, left), (node.expression, right)):
            _expect(side, type_, NUMBERS)
        if isinstance(node, exp.Div) and "float" not in kinds:
            return "numeric"
        return common_type((left, right))

    def _of_test(self, node: exp.Expression) -> str:
        if isinstance(node, exp.And | exp.Or):
            self._need(node.this, {"boolean"})
            self._need(node.expression, {"boolean"})
        elif isinstance(node, exp.Not):
            self._need(node.this, {"boolean"})
        elif isinstance(node, exp.Is):
            is_null = isinstance(node.expression, exp.Null)
            if is_null:
                self.type_of(node.this)
            else:
                self._need(node.this, {"boolean"})
        elif isinstance(node, exp.Like | exp.ILike):
            self._need(node.this, {"text"})
            self._need(node.expression, {"text"})
        else:
            self._comparable(compared(node))
        return "boolean"

    def _comparable(self, nodes: Sequence[exp.Expression]) -> None:
        common_type([self.type_of(node) for node in nodes])

    def _of_text(self, node: exp.Expression) -> str:
        numbers = {"start", "length"}
        if isinstance(node, exp.Left | exp.Right):
            numbers.add("expression")
        for name, child in _operands(node):
            is_joined = isinstance(node, exp.Concat | exp.DPipe)
            if is_joined:
                self._need(child, {"text", *NUMBERS, *DAYS})
            elif name in numbers:
                self._need(child, {"integer"})
            else:
                self._need(child, {"text"})
        return "text"

    def _of_time(self, node: exp.Expression) -> str:
        if isinstance(node, exp.Extract):
            self._need(node.expression, DAYS)
            return "numeric"
        if isinstance(node, exp.AtTimeZone):
            self._need(node.this, {"timestamptz"})
            return "timestamp without time zone"
        self._need(node.this, DAYS)
        return "timestamp without time zone"

    def _of_choice(self, node: exp.Expression) -> str:
        if isinstance(node, exp.Case):
            return self._of_case(node)
        if isinstance(node, exp.Nullif):
            self._comparable((node.this, node.expression))
            return self.type_of(node.this)
        return common_type([self.type_of(one) for one in (node.this, *node.expressions)])

    def _of_case(self, case: exp.Case) -> str:
        results = [branch.args["true"] for branch in case.args["ifs"]]
        tests = [branch.this for branch in case.args["ifs"]]
        if case.this is None:
            for test in tests:
                self._need(test, {"boolean"})
        else:
            self._comparable((case.this, *tests))
        default = case.args.get("default")
        if default is not None:
            results.append(default)
        return common_type([self.type_of(result) for result in results])

    def _need(self, node: exp.Expression, kinds: "set[ValueKind] | frozenset[ValueKind]") -> str:
        type_ = self.type_of(node)
        _expect(node, type_, kinds)
        return type_


def compared(node: exp.Expression) -> tuple[exp.Expression, ...]:
    """Return what a comparison, IN or BETWEEN compares: its subject first."""
    if isinstance(node, exp.In):
        return (node.this, *node.expressions)
    if isinstance(node, exp.Between):
        return (node.this, node.args["low"], node.args["high"])
    return (node.this, node.expression)


def _operands(node: exp.Expression) -> Iterator[tuple[str, exp.Expression]]:
    for name, value in node.args.items():
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, exp.Expression):
                yield name, child


def _literal_type(node: exp.Expression) -> str:
    if isinstance(node, exp.Boolean):
        return "boolean"
    if isinstance(node, exp.Null):
        return _UNTYPED
    if node.is_string:
        return "text"
    return "integer" if node.is_int else "numeric"


def common_type(types: Sequence[str]) -> str:
    """Return the type that values of several types have together.

    Raises:
        ExpressionRefused: there is none.
    """
    known = [type_ for type_ in types if type_ != _UNTYPED]
    if not known:
        return "text"
    kinds = {kind_of_type(type_) for type_ in known}
    if kinds <= NUMBERS:
        return _common_number(known, kinds)
    if len(set(known)) == 1:
        return known[0]
    if kinds == {"text"}:
        return "text"
    if kinds <= DAYS:
        return "timestamp with time zone" if "timestamptz" in kinds else _MOMENT
    others = [type_ for type_ in known if kind_of_type(type_) != "text"]
    if "text" in kinds and kinds - {"text"} <= DAYS:
        return common_type(others)  # a text beside a day is a literal that stands for one
    listed = ", ".join(dict.fromkeys(known))
    raise _refused(f"类型不一致：{listed}", f"mixes values of different types: {listed}")


_MOMENT = "timestamp without time zone"


def _common_number(types: Sequence[str], kinds: "set[ValueKind]") -> str:
    if "float" in kinds:
        return "double precision"
    if "numeric" in kinds:
        return "numeric"
    return max(types, key=_INTEGERS.index)


def _date_arithmetic(node: exp.Expression, kinds: "tuple[ValueKind, ValueKind]") -> str:
    if isinstance(node, exp.Sub) and kinds == ("date", "date"):
        return "integer"
    if isinstance(node, exp.Add | exp.Sub) and kinds == ("date", "integer"):
        return "date"
    raise _refused(
        f"不支持日期运算 {node.sql(DIALECT)}；可用：日期 - 日期、日期 ± 天数",
        f"computes with dates in {node.sql(DIALECT)}; possible are date - date and date ± days",
    )


def _expect(
    node: exp.Expression, type_: str, kinds: "set[ValueKind] | frozenset[ValueKind]"
) -> None:
    if type_ == _UNTYPED or kind_of_type(type_) in kinds:
        return
    raise _refused(
        f"{node.sql(DIALECT)} 的类型是 {type_}，这里不能用",
        f"uses {node.sql(DIALECT)} of type {type_} where that does not fit",
    )


# ------------------------------------------------------------------------------
# time zones


def with_time_zone(
    expression: exp.Expression, types: ColumnTypes, time_zone: str
) -> exp.Expression:
    """Return the expression so that it no longer depends on the session's time zone.

    Where a `timestamptz` column is cut, cast or compared with a day, its time in the zone stands.
    Texts compared with days become days.
    """
    copy = expression.copy()
    for node in list(copy.walk()):
        if isinstance(node, (*COMPARISONS, exp.In, exp.Between)):
            _cast_literals(node, types)
            _align_moments(node, types, time_zone)
        elif isinstance(node, exp.Cast | exp.TimestampTrunc):
            _localise(node.this, types, time_zone)
            _widen(node, types)
        elif isinstance(node, exp.Extract):
            _localise(node.expression, types, time_zone)
        elif isinstance(node, exp.Concat | exp.DPipe):
            for _, child in _operands(node):
                _localise(child, types, time_zone)
    return copy


def _cast_literals(node: exp.Expression, types: ColumnTypes) -> None:
    operands = compared(node)
    kinds = {kind_of_type(type_of(operand, types)) for operand in operands}
    if not kinds & DAYS:
        return
    target = "date" if kinds & DAYS == {"date"} else "timestamp"
    for operand in operands:
        if isinstance(operand, exp.Literal) and operand.is_string:
            operand.replace(exp.cast(operand.copy(), target, dialect=DIALECT))


def _align_moments(node: exp.Expression, types: ColumnTypes, time_zone: str) -> None:
    operands = compared(node)
    kinds = {kind_of_type(type_of(operand, types)) for operand in operands}
    if "timestamptz" in kinds and kinds != {"timestamptz"}:
        for operand in operands:
            _localise(operand, types, time_zone)


def _localise(node: exp.Expression, types: ColumnTypes, time_zone: str) -> None:
    if isinstance(node, exp.AtTimeZone):
        return
    if kind_of_type(type_of(node, types)) == "timestamptz":
        zone = exp.Literal.string(time_zone)
        node.replace(exp.AtTimeZone(this=exp.paren(node.copy(), copy=False), zone=zone))


def _widen(node: exp.Expression, types: ColumnTypes) -> None:
    """Cut a day as a moment without a zone, because PostgreSQL takes it for one with a zone."""
    if not isinstance(node, exp.TimestampTrunc):
        return
    if kind_of_type(type_of(node.this, types)) not in MOMENTS:
        node.this.replace(exp.cast(node.this.copy(), "timestamp", dialect=DIALECT))


# ------------------------------------------------------------------------------
# refusals


def _not_allowed(node: exp.Expr) -> ExpressionRefused:
    shown = node.sql(DIALECT)[:80]
    return _refused(
        f"不能使用 {shown}；可用：列、常量、四则运算、比较、CASE、COALESCE、NULLIF、ROUND、CAST、"
        f"文本与日期函数",
        f"can't use {shown}; possible are columns, constants, arithmetic, comparisons, CASE, "
        f"COALESCE, NULLIF, ROUND, CAST, functions of texts and dates",
    )


def _refused(zh: str, en: str) -> ExpressionRefused:
    return ExpressionRefused(Text(f"表达式{zh}。", f"The expression {en}."))
