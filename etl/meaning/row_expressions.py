"""The expressions that an intent may hold: read, checked against what is allowed, and typed.

What is allowed reads nothing but the row's own columns, gives the same for the same row, and is
known to the evaluation, so that the interpreter can say what it means.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
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
Kinds = frozenset[ValueKind]
ColumnTypes = Callable[[exp.Column], str]
"""Gives the type of a column in PostgreSQL's spelling."""

COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.NullSafeNEQ)
_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod)
_ROUNDING = (exp.Round, exp.Trunc, exp.Ceil, exp.Floor)
_ALLOWED = (
    *_ARITHMETIC,
    *_ROUNDING,
    *COMPARISONS,
    *(exp.And, exp.Or, exp.Not, exp.Is, exp.In, exp.Between, exp.Like, exp.ILike),
    *(exp.Lower, exp.Upper, exp.Trim, exp.Left, exp.Right, exp.Substring, exp.Replace, exp.Length),
    *(exp.Concat, exp.DPipe),
    *(exp.Coalesce, exp.Greatest, exp.Least, exp.Nullif, exp.Case, exp.If),
    *(exp.Column, exp.Identifier, exp.Literal, exp.Boolean, exp.Null, exp.Var),
    *(exp.Paren, exp.Neg, exp.Abs),
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
    _require(
        len(text) <= MOST_CHARS,
        f"超过 {MOST_CHARS} 个字符",
        f"is longer than {MOST_CHARS} characters",
    )
    try:
        statements = sqlglot.parse(f"SELECT {text}", read=DIALECT)
    except (SqlglotError, RecursionError) as error:
        raise _expression_refused("不是一个 SQL 表达式", "is not an SQL expression") from error

    select = statements[0] if len(statements) == 1 else None
    if not isinstance(select, exp.Select) or not _is_one_item(select):
        raise _expression_refused("不是单个 SQL 表达式", "is not one single SQL expression")

    expression: exp.Expression = select.expressions[0].pop()
    check_expression(expression)
    return expression


def _is_one_item(select: exp.Select) -> bool:
    for clause, value in select.args.items():
        if clause != "expressions" and value:
            return False

    return len(select.expressions) == 1


def check_expression(expression: exp.Expression) -> None:
    """Check that all of an expression is allowed; takes its comments away.

    Raises:
        ExpressionRefused
    """
    for number, node in enumerate(expression.walk()):
        node.pop_comments()
        _require(number < MOST_NODES, "太长", "is too long")
        _require_allowed(isinstance(node, _ALLOWED), node)
        for kind, check in _CHECKS.items():
            if isinstance(node, kind):
                check(node)


def _check_column(column: exp.Column) -> None:
    is_named = isinstance(column.this, exp.Identifier)
    if is_named and not column.args.get("db"):
        return

    sql = column.sql(DIALECT)
    raise _expression_refused(
        f"列名 {sql} 应写成 表.列",
        f"names a column {sql}; columns are written as table.column",
    )


def _check_cast(cast: exp.Cast) -> None:
    is_plain_cast = type(cast) is exp.Cast
    if is_plain_cast and cast.to.this in _CASTS:
        return

    type_sql = cast.to.sql(DIALECT)
    raise _expression_refused(f"不能转换为类型 {type_sql}", f"can't cast to the type {type_sql}")


def _check_truncation(truncation: exp.TimestampTrunc) -> None:
    _check_unit(truncation.args["unit"], TRUNCATED)
    _require_allowed(not truncation.args.get("zone"), truncation)


def _check_unit(unit: exp.Expression, units: Sequence[str]) -> None:
    listed = ", ".join(units).lower()
    _require(
        unit.name.upper() in units,
        f"不支持时间单位 {unit.name}；可用：{listed}",
        f"uses the unit {unit.name}; possible are {listed}",
    )


def _check_in(node: exp.In) -> None:
    reads_other_rows = bool(node.args.get("query") or node.args.get("unnest"))
    _require_allowed(not reads_other_rows, node)


def _check_is(node: exp.Is) -> None:
    is_constant = isinstance(node.expression, exp.Null | exp.Boolean)
    _require_allowed(is_constant, node)


_CHECKS: Mapping[type[exp.Expr], Callable[[Any], None]] = {
    exp.Column: _check_column,
    exp.Cast: _check_cast,
    exp.Extract: lambda node: _check_unit(node.this, EXTRACTED),
    exp.TimestampTrunc: _check_truncation,
    exp.In: _check_in,
    exp.Is: _check_is,
}


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


@dataclass(frozen=True)
class _Signature:
    """The kinds that a function's operands must have, by their names in the tree, and its type."""

    operands: Mapping[str, Kinds]
    result: str


_TEXT: Kinds = frozenset(("text",))
_INTEGER: Kinds = frozenset(("integer",))
_BOOLEAN: Kinds = frozenset(("boolean",))
_JOINED_AS_TEXT: Kinds = _TEXT | NUMBERS | DAYS
_MOMENT = "timestamp without time zone"
_TWO_TESTS = _Signature({"this": _BOOLEAN, "expression": _BOOLEAN}, "boolean")
_PATTERN_TEST = _Signature({"this": _TEXT, "expression": _TEXT}, "boolean")
_OF_TEXT = _Signature({"this": _TEXT}, "text")
_END_OF_TEXT = _Signature({"this": _TEXT, "expression": _INTEGER}, "text")
_TEXTS_IN_A_ROW = _Signature({"expressions": _JOINED_AS_TEXT}, "text")
_SIGNATURES: Mapping[type[exp.Expr], _Signature] = {
    exp.And: _TWO_TESTS,
    exp.Or: _TWO_TESTS,
    exp.Not: _Signature({"this": _BOOLEAN}, "boolean"),
    exp.Like: _PATTERN_TEST,
    exp.ILike: _PATTERN_TEST,
    exp.Lower: _OF_TEXT,
    exp.Upper: _OF_TEXT,
    exp.Length: _Signature({"this": _TEXT}, "integer"),
    exp.Trim: _Signature({"this": _TEXT, "expression": _TEXT, "collation": _TEXT}, "text"),
    exp.Left: _END_OF_TEXT,
    exp.Right: _END_OF_TEXT,
    exp.Substring: _Signature({"this": _TEXT, "start": _INTEGER, "length": _INTEGER}, "text"),
    exp.Replace: _Signature({"this": _TEXT, "expression": _TEXT, "replacement": _TEXT}, "text"),
    exp.Concat: _TEXTS_IN_A_ROW,
    exp.ConcatWs: _TEXTS_IN_A_ROW,
    exp.DPipe: _Signature({"this": _JOINED_AS_TEXT, "expression": _JOINED_AS_TEXT}, "text"),
    exp.Extract: _Signature({"expression": DAYS}, "numeric"),
    exp.TimestampTrunc: _Signature({"this": DAYS}, _MOMENT),
    exp.AtTimeZone: _Signature({"this": frozenset(("timestamptz",))}, _MOMENT),
}


class _Typing:
    def __init__(self, types: ColumnTypes) -> None:
        self._types = types

    def type_of(self, node: exp.Expression) -> str:
        if isinstance(node, exp.Column):
            return bare_type(self._types(node))

        signature = _SIGNATURES.get(type(node))
        if signature is not None:
            return self._of_signature(node, signature)

        rule = self._RULES.get(type(node))
        if rule is not None:
            return rule(self, node)

        return self._need(node.this, NUMBERS)

    def _of_signature(self, node: exp.Expression, signature: _Signature) -> str:
        for name, kinds in signature.operands.items():
            for operand in _children(node, name):
                self._need(operand, kinds)

        return signature.result

    def _need(self, node: exp.Expression, kinds: Kinds) -> str:
        """Return the type of an operand, whose kind must be one of these."""
        type_ = self.type_of(node)
        _expect(node, type_, kinds)
        return type_

    def _of_constant(self, node: exp.Expression) -> str:
        if isinstance(node, exp.Boolean):
            return "boolean"
        if isinstance(node, exp.Null):
            return _UNTYPED
        if node.is_string:
            return "text"
        if node.is_int:
            return "integer"

        return "numeric"

    def _of_cast(self, cast: exp.Expression) -> str:
        self.type_of(cast.this)
        return _CASTS[cast.args["to"].this]

    # numbers

    def _of_rounding(self, node: exp.Expression) -> str:
        for decimals in _children(node, "decimals"):
            self._need(decimals, _INTEGER)

        operand = self._need(node.this, NUMBERS)
        if kind_of_type(operand) == "integer":
            return "numeric"

        return operand

    def _of_arithmetic(self, node: exp.Expression) -> str:
        left, right = self.type_of(node.this), self.type_of(node.expression)
        kinds = (kind_of_type(left), kind_of_type(right))
        if "date" in kinds:
            return _date_arithmetic(node, kinds)

        _expect(node.this, left, NUMBERS)
        _expect(node.expression, right, NUMBERS)
        if isinstance(node, exp.Div) and "float" not in kinds:
            return "numeric"

        return common_type((left, right))

    # tests

    def _of_is(self, node: exp.Expression) -> str:
        if isinstance(node.expression, exp.Null):
            self.type_of(node.this)
        else:
            self._need(node.this, _BOOLEAN)

        return "boolean"

    def _of_comparison(self, node: exp.Expression) -> str:
        self._common(compared(node))
        return "boolean"

    def _common(self, nodes: Sequence[exp.Expression]) -> str:
        return common_type([self.type_of(node) for node in nodes])

    # choices

    def _of_first(self, node: exp.Expression) -> str:
        return self._common((node.this, *node.expressions))

    def _of_nullif(self, node: exp.Expression) -> str:
        self._common((node.this, node.expression))
        return self.type_of(node.this)

    def _of_case(self, case: exp.Expression) -> str:
        branches = case.args["ifs"]
        tests = [branch.this for branch in branches]
        results = [branch.args["true"] for branch in branches]
        if case.this is not None:
            self._common((case.this, *tests))
        else:
            for test in tests:
                self._need(test, _BOOLEAN)

        return self._common([*results, *_children(case, "default")])

    _RULES: Mapping[type[exp.Expr], Callable[["_Typing", exp.Expression], str]] = {
        **dict.fromkeys((exp.Literal, exp.Boolean, exp.Null), _of_constant),
        exp.Paren: lambda typing, node: typing.type_of(node.this),
        exp.Cast: _of_cast,
        **dict.fromkeys(_ROUNDING, _of_rounding),
        **dict.fromkeys(_ARITHMETIC, _of_arithmetic),
        exp.Is: _of_is,
        **dict.fromkeys((*COMPARISONS, exp.In, exp.Between), _of_comparison),
        **dict.fromkeys((exp.Coalesce, exp.Greatest, exp.Least), _of_first),
        exp.Nullif: _of_nullif,
        exp.Case: _of_case,
    }
    """Types that depend on those of the operands; others, -x and ABS(x), are of their number's."""


def compared(node: exp.Expression) -> tuple[exp.Expression, ...]:
    """Return what a comparison, IN or BETWEEN compares: its subject first."""
    if isinstance(node, exp.In):
        return (node.this, *node.expressions)
    if isinstance(node, exp.Between):
        return (node.this, node.args["low"], node.args["high"])

    return (node.this, node.expression)


def _children(node: exp.Expression, name: str) -> list[exp.Expression]:
    """Return what stands at one place of a node: an expression, several, or none."""
    value = node.args.get(name)
    if value is None:
        return []

    if isinstance(value, list):
        return value

    return [value]


def common_type(types: Sequence[str]) -> str:
    """Return the type that values of several types have together.

    Raises:
        ExpressionRefused: there is none.
    """
    typed = [type_ for type_ in types if type_ != _UNTYPED]
    if not typed:
        return "text"

    kinds = {kind_of_type(type_) for type_ in typed}
    if kinds <= NUMBERS:
        return _common_number(typed, kinds)
    if len(set(typed)) == 1:
        return typed[0]
    if kinds == _TEXT:
        return "text"
    if kinds - _TEXT <= DAYS:
        return _common_day(typed, kinds)

    listed = ", ".join(dict.fromkeys(typed))
    raise _expression_refused(f"类型不一致：{listed}", f"mixes values of different types: {listed}")


def _common_number(types: Sequence[str], kinds: "set[ValueKind]") -> str:
    if "float" in kinds:
        return "double precision"
    if "numeric" in kinds:
        return "numeric"

    return max(types, key=_INTEGERS.index)


def _common_day(types: Sequence[str], kinds: "set[ValueKind]") -> str:
    """Return the type that days and moments have together; texts beside them stand for days."""
    others = set()
    for type_ in types:
        if kind_of_type(type_) in DAYS:
            others.add(type_)

    if len(others) == 1:
        return others.pop()
    if "timestamptz" in kinds:
        return "timestamp with time zone"

    return _MOMENT


def _date_arithmetic(node: exp.Expression, kinds: "tuple[ValueKind, ValueKind]") -> str:
    if isinstance(node, exp.Sub) and kinds == ("date", "date"):
        return "integer"
    if isinstance(node, exp.Add | exp.Sub) and kinds == ("date", "integer"):
        return "date"

    raise _expression_refused(
        f"不支持日期运算 {node.sql(DIALECT)}；可用：日期 - 日期、日期 ± 天数",
        f"computes with dates in {node.sql(DIALECT)}; possible are date - date and date ± days",
    )


def _expect(node: exp.Expression, type_: str, kinds: Kinds) -> None:
    if type_ == _UNTYPED or kind_of_type(type_) in kinds:
        return

    sql = node.sql(DIALECT)
    raise _expression_refused(
        f"{sql} 的类型是 {type_}，这里不能用",
        f"uses {sql} of type {type_} where that does not fit",
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
        elif isinstance(node, exp.TimestampTrunc):
            _localise(node.this, types, time_zone)
            _cast_day(node.this, types)
        else:
            for operand in _read_as_local(node):
                _localise(operand, types, time_zone)

    return copy


def _read_as_local(node: exp.Expr) -> list[exp.Expression]:
    """Return the operands of which a function reads the date or time of day."""
    if isinstance(node, exp.Cast):
        return [node.this]
    if isinstance(node, exp.Extract):
        return [node.expression]
    if isinstance(node, exp.Concat):
        return list(node.expressions)
    if isinstance(node, exp.DPipe):
        return [node.this, node.expression]

    return []


def _kinds_of(nodes: Iterable[exp.Expression], types: ColumnTypes) -> "set[ValueKind]":
    return {kind_of_type(type_of(node, types)) for node in nodes}


def _cast_literals(node: exp.Expression, types: ColumnTypes) -> None:
    """Make days of the texts that a comparison holds against days."""
    operands = compared(node)
    days = _kinds_of(operands, types) & DAYS
    if not days:
        return

    target = "date" if days == {"date"} else "timestamp"
    for operand in operands:
        if isinstance(operand, exp.Literal) and operand.is_string:
            operand.replace(exp.cast(operand.copy(), target, dialect=DIALECT))


def _align_moments(node: exp.Expression, types: ColumnTypes, time_zone: str) -> None:
    """Compare moments with a zone by the zone's time, unless all sides have a zone."""
    operands = compared(node)
    kinds = _kinds_of(operands, types)
    if "timestamptz" not in kinds or len(kinds) == 1:
        return

    for operand in operands:
        _localise(operand, types, time_zone)


def _localise(node: exp.Expression, types: ColumnTypes, time_zone: str) -> None:
    if isinstance(node, exp.AtTimeZone):
        return
    if kind_of_type(type_of(node, types)) == "timestamptz":
        zone = exp.Literal.string(time_zone)
        node.replace(exp.AtTimeZone(this=exp.paren(node.copy(), copy=False), zone=zone))


def _cast_day(node: exp.Expression, types: ColumnTypes) -> None:
    """Make a day a moment without a zone; PostgreSQL would cut it as one with a zone."""
    if kind_of_type(type_of(node, types)) not in MOMENTS:
        node.replace(exp.cast(node.copy(), "timestamp", dialect=DIALECT))


# ------------------------------------------------------------------------------
# refusals


def _require(holds: bool, zh: str, en: str) -> None:
    if not holds:
        raise _expression_refused(zh, en)


def _require_allowed(holds: bool, node: exp.Expr) -> None:
    if holds:
        return

    sql = node.sql(DIALECT)[:80]
    raise _expression_refused(
        f"不能使用 {sql}；可用：列、常量、四则运算、比较、CASE、COALESCE、NULLIF、ROUND、CAST、"
        f"文本与日期函数",
        f"can't use {sql}; possible are columns, constants, arithmetic, comparisons, CASE, "
        f"COALESCE, NULLIF, ROUND, CAST, functions of texts and dates",
    )


def _expression_refused(zh: str, en: str) -> ExpressionRefused:
    return ExpressionRefused(Text(f"表达式{zh}。", f"The expression {en}."))
