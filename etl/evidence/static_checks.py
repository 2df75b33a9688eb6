"""Faults of a model's tree that are there whatever rows it reads."""

from collections.abc import Callable, Iterator
from typing import Any

from sqlglot import exp

from etl.planning.draft_model import DraftModel

_NOW = (exp.CurrentDate, exp.CurrentTimestamp, exp.CurrentTime)


def findings(model: DraftModel) -> Iterator[str]:
    """Yield the names of what is wrong, each as often as it is there."""
    for node in model.select.walk():
        for name, types, is_wrong in _FINDINGS:
            if isinstance(node, types) and is_wrong(node):
                yield name

    increment = model.increment
    if increment is None:
        return
    if increment.find(exp.CurrentDate, exp.CurrentTimestamp):
        yield "now"


def _is_output(star: exp.Star) -> bool:
    return isinstance(star.parent, exp.Select)


def _lacks_condition(join: exp.Join) -> bool:
    conditions = (join.args.get("on"), join.args.get("using"))
    return join.kind != "CROSS" and not any(conditions)


def _may_divide_by_zero(division: exp.Binary) -> bool:
    divisor = division.expression.unnest()
    if isinstance(divisor, exp.Literal):
        return float(divisor.name) == 0

    return not isinstance(divisor, exp.Nullif)


def _is_unordered_part(query: exp.Query) -> bool:
    is_part = query.args.get("limit") is not None
    return is_part and query.args.get("order") is None


def _is_no_query(node: exp.Expr) -> bool:
    return not isinstance(node, exp.Query)


def _always(_: exp.Expr) -> bool:
    return True


_Finding = tuple[str, tuple[type[Any], ...], Callable[[Any], bool]]
_FINDINGS: tuple[_Finding, ...] = (
    ("select_star", (exp.Star,), _is_output),
    ("cartesian", (exp.Join,), _lacks_condition),
    ("division", (exp.Div, exp.Mod), _may_divide_by_zero),
    ("now", _NOW, _always),
    ("limit_without_order", (exp.Query,), _is_unordered_part),
    ("write", (exp.DML, exp.DDL, exp.Command), _is_no_query),
)
