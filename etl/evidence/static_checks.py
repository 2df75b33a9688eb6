"""What is wrong with a model's tree, whatever rows it reads."""

from collections.abc import Callable, Iterator, Mapping

from sqlglot import exp

from etl.planning.draft_model import DraftModel

Finding = Callable[[exp.Expr], bool]


def findings(model: DraftModel) -> Iterator[str]:
    """Yield the names of what is wrong, each as often as it is there."""
    for node in model.select.walk():
        for name, is_found in _FINDINGS.items():
            if is_found(node):
                yield name
    if model.increment is not None and model.increment.find(exp.CurrentDate, exp.CurrentTimestamp):
        yield "now"


def _is_star(node: exp.Expr) -> bool:
    return isinstance(node, exp.Star) and isinstance(node.parent, exp.Select)


def _is_cartesian(node: exp.Expr) -> bool:
    if not isinstance(node, exp.Join):
        return False
    has_condition = node.args.get("on") is not None or bool(node.args.get("using"))
    return not has_condition and node.kind != "CROSS"


def _is_unguarded_division(node: exp.Expr) -> bool:
    if not isinstance(node, exp.Div | exp.Mod):
        return False
    divisor = node.expression.unnest()
    is_other_number = isinstance(divisor, exp.Literal) and float(divisor.name) != 0
    return not isinstance(divisor, exp.Nullif) and not is_other_number


def _is_now(node: exp.Expr) -> bool:
    return isinstance(node, exp.CurrentDate | exp.CurrentTimestamp | exp.CurrentTime)


def _is_unordered_limit(node: exp.Expr) -> bool:
    if not isinstance(node, exp.Query) or node.args.get("limit") is None:
        return False
    return node.args.get("order") is None


def _is_write(node: exp.Expr) -> bool:
    return isinstance(node, exp.DML | exp.DDL | exp.Command) and not isinstance(node, exp.Query)


_FINDINGS: Mapping[str, Finding] = {
    "select_star": _is_star,
    "cartesian": _is_cartesian,
    "division": _is_unguarded_division,
    "now": _is_now,
    "limit_without_order": _is_unordered_limit,
    "write": _is_write,
}
