"""Tests on one column, which dbt has itself, and the rows that break them."""

from collections.abc import Callable, Mapping

from sqlglot import exp

from etl.planning.draft_test import DraftTest
from etl.planning.sql_trees import cast, column, is_null, literal, not_null, selection, table


def is_of_column(test: DraftTest) -> bool:
    """Tell whether the test is one of those that dbt has for a column."""
    return test.kind in _BREAKING and len(test.columns) == 1


def failing_rows(test: DraftTest) -> exp.Query | None:
    """Return the query whose rows break a test; None when only a build tells."""
    if test.failures is not None:
        return test.failures
    if not is_of_column(test):
        return None

    (name,) = test.columns
    rows = selection([(name, column(name))], table(test.node))
    return _BREAKING[test.kind](test, rows, name)


def _missing(_: DraftTest, rows: exp.Select, name: str) -> exp.Select:
    return rows.where(is_null(column(name)), copy=False)


def _repeated_values(_: DraftTest, rows: exp.Select, name: str) -> exp.Select:
    several = exp.GT(this=exp.Count(this=exp.Star()), expression=exp.Literal.number(1))
    rows.where(not_null(column(name)), copy=False)
    return rows.group_by(column(name), copy=False).having(several, copy=False)


def _unlisted_values(test: DraftTest, rows: exp.Select, name: str) -> exp.Select:
    values = [literal(value) for value in test.values]
    listed = exp.In(this=cast(column(name), "text"), expressions=values)
    return rows.where(exp.Not(this=listed), copy=False)


def _orphans(test: DraftTest, rows: exp.Select, name: str) -> exp.Select | None:
    if test.parent is None:
        return None

    parent, parent_column = test.parent
    one = exp.Select().select(exp.Literal.number(1), copy=False)
    one.from_(exp.alias_(table(parent), "parent", copy=False), copy=False)
    same = exp.EQ(this=column(parent_column, "parent"), expression=column(name, test.node))
    has_parent = exp.Exists(this=one.where(same, copy=False))
    rows.where(not_null(column(name)), copy=False)
    return rows.where(exp.Not(this=has_parent), copy=False)


_BREAKING: Mapping[str, Callable[[DraftTest, exp.Select, str], exp.Select | None]] = {
    "not_null": _missing,
    "unique": _repeated_values,
    "accepted_values": _unlisted_values,
    "relationships": _orphans,
}
