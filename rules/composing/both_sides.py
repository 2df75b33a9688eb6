"""Yes and no of one column side by side: "paid vs unpaid sales" compares the two, since no row is both."""

from collections import defaultdict
from dataclasses import replace

from rules.query.query import ColumnRef, Dimension, Operator
from rules.reading.parts import Group, Parts


def with_both_sides(parts: Parts) -> Parts:
    """The parts with groups in place of conditions that no row meets together."""
    operators: defaultdict[ColumnRef, set[Operator]] = defaultdict(set)
    for condition in parts.conditions:
        operators[condition.column].add(condition.operator)
    both = [column for column, said in operators.items() if {"true", "false"} <= said]
    if not both:
        return parts
    groups = tuple(Group(Dimension(one.table, one.column, via=one.via), 0) for one in both)
    kept = tuple(one for one in parts.conditions if one.column not in both)
    return replace(parts, conditions=kept, groups=parts.groups + groups)
