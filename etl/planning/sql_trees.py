"""Parts of SQL as trees: names, literals, conditions' building blocks, variables.

Whatever comes from people, models or the database becomes a literal or an identifier here, so that
no text is ever put into SQL.
"""

from collections.abc import Iterable
from datetime import date, datetime
from decimal import Decimal

from sqlglot import exp

from etl.meaning.bound import RelativeDay, Scalar
from etl.schemas.parameters import SortOrder
from postgres.identifiers import quoted

VARIABLE = "etl_variable"
"""The function that stands for a variable of the project in a tree: its name and its default."""


def identifier(name: str) -> exp.Identifier:
    """Return the name as an identifier, in quotes only where it needs them."""
    return exp.to_identifier(name, quoted=quoted(name) != name)


def column(name: str, table: str | None = None) -> exp.Column:
    """Return a column, of `table` if it is given."""
    return exp.Column(this=identifier(name), table=identifier(table) if table else None)


def table(name: str, schema: str | None = None) -> exp.Table:
    """Return a table of the datasource, or a model when there is no schema."""
    return exp.Table(this=identifier(name), db=identifier(schema) if schema else None)


def aliased(value: exp.Expr, name: str) -> exp.Expr:
    """Return the value under that name; a column of that name stays as it is."""
    if isinstance(value, exp.Column) and value.name == name:
        return value

    return exp.Alias(this=value, alias=identifier(name))


def literal(value: Scalar) -> exp.Expr:
    """Return a value of Python as a literal of its type."""
    if isinstance(value, bool):
        return exp.Boolean(this=value)
    if isinstance(value, int | Decimal):
        return number(value)
    if isinstance(value, datetime):
        kind = "timestamp" if value.tzinfo is None else "timestamptz"
        return cast(exp.Literal.string(value.isoformat(sep=" ")), kind)

    if isinstance(value, date):
        return cast(exp.Literal.string(value.isoformat()), "date")

    return exp.Literal.string(value)


def number(value: int | Decimal) -> exp.Expr:
    """Return a number as a literal, whole ones without a point."""
    amount = exp.Literal.number(_digits(value))
    if value < 0:
        return exp.Paren(this=exp.Neg(this=amount))

    return amount


def _digits(value: int | Decimal) -> str:
    if isinstance(value, int):
        return str(abs(value))

    return format(abs(value), "f")


def variable(day: RelativeDay) -> exp.Expr:
    """Return the variable that the day is kept in, as a date."""
    name = exp.Literal.string(day.variable)
    default = exp.Literal.string(day.value.isoformat())
    return exp.Anonymous(this=VARIABLE, expressions=[name, default])


def variables_among(calls: Iterable[exp.Anonymous]) -> dict[str, str]:
    """Return the variables that calls of functions read, with their defaults."""
    variables: dict[str, str] = {}
    for called in calls:
        if called.name == VARIABLE:
            name, default = called.expressions
            variables[name.name] = default.name

    return variables


def cast(value: exp.Expr, kind: str) -> exp.Cast:
    """Return the value as one of PostgreSQL's type `kind`."""
    return exp.Cast(this=value, to=exp.DataType.build(kind, dialect="postgres"))


def call(function: str, *arguments: exp.Expr) -> exp.Expr:
    """Return a call of one of PostgreSQL's functions."""
    return exp.func(function, *arguments, dialect="postgres")


def null_of(kind: str) -> exp.Expr:
    """Return NULL as a value of that type."""
    return cast(exp.Null(), kind)


def is_null(value: exp.Expr) -> exp.Expr:
    """Return whether the value is missing."""
    return exp.Is(this=value, expression=exp.Null())


def not_null(value: exp.Expr) -> exp.Expr:
    """Return whether the value is there."""
    return exp.Not(this=is_null(value))


def all_of(conditions: Iterable[exp.Expr]) -> exp.Expr | None:
    """Return a condition that holds when all do; None when there are none."""
    parts = list(conditions)
    return exp.and_(*parts) if parts else None


def any_of(conditions: Iterable[exp.Expr]) -> exp.Expr:
    """Return a condition that holds when one does."""
    parts = list(conditions)
    if len(parts) > 1:
        return exp.Paren(this=exp.or_(*parts))

    return parts[0]


def sorting(value: exp.Expr, order: SortOrder) -> exp.Ordered:
    """Return an entry of ORDER BY with NULL where PostgreSQL puts it: last, first descending."""
    return exp.Ordered(this=value, desc=order != "asc", nulls_first=order == "desc")


def selection(values: Iterable[tuple[str, exp.Expr]], source: exp.Expr) -> exp.Select:
    """Return a SELECT of named values from a table or subquery."""
    outputs = [aliased(value, name) for name, value in values]
    return exp.Select().select(*outputs, copy=False).from_(source, copy=False)
