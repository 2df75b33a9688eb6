"""Names of the columns of a result, and the direction of their order."""

import re
from collections import Counter
from dataclasses import dataclass

from postgres.identifiers import quoted
from rules.query.aggregates import FUNCTIONS, PARTS
from rules.query.query import Dimension, Measure, Query
from rules.sql.expressions import number

_LAST_NAME = re.compile(
    r"""(?:"[^"]{0,130}+(?:""[^"]{0,130}+){0,8}"|(?<![^."])[^."]++)$"""
)  # of a column with its table's alias


@dataclass(frozen=True)
class SelectItem:
    """One column of the result: its expression, and its name (None keeps the column's own)."""

    sql: str
    alias: str | None = None

    @property
    def name(self) -> str:
        """Return the name of the column in the result, as SQL writes it."""
        return quoted(self.alias) if self.alias else self.bare

    @property
    def bare(self) -> str:
        """Return the name of the expression's column in its table, as SQL writes it."""
        return str(_LAST_NAME.findall(self.sql)[0])

    def __str__(self) -> str:
        if self.alias:
            return f"{self.sql} AS {quoted(self.alias)}"

        return self.sql


def disambiguated(groups: list[tuple[str, list[SelectItem]]]) -> list[list[SelectItem]]:
    """Give columns with equal names (customer.name, product.name) the name of their table in front.

    Args:
        groups: the columns of each table, beside its name.
    """
    often: Counter[str] = Counter()
    for _, outputs in groups:
        often.update(output.bare for output in outputs)

    named_groups = []
    for table, outputs in groups:
        named = []
        for output in outputs:
            has_namesake = often[output.bare] > 1
            named.append(_told_apart(output, table) if has_namesake else output)

        named_groups.append(named)

    return named_groups


def _told_apart(output: SelectItem, table: str) -> SelectItem:
    if output.alias is not None:
        return output

    return SelectItem(output.sql, f"{table}_{output.bare}".replace('"', ""))


def group_name(dimension: Dimension) -> str:
    """Return the name of the column of a dimension by a column."""
    if dimension.bucket is not None:
        return dimension.bucket
    if dimension.part is not None:
        return PARTS[dimension.part].name

    return str(dimension.column)


def measure_alias(measure: Measure, query: Query) -> str:
    """Return the name of a measure's column in the result.

    Measures of the same function and column of several tables get their table's name in front.
    """
    name = _measure_name(measure)
    if measure.per is not None:
        name = f"average_{name}"
    if measure.is_running:
        name = f"running_{name}"
    if measure.is_share:
        name = f"{name}_percent"

    if _has_namesake(measure, query):
        return f"{measure.table[1]}_{name}"

    return name


def _measure_name(measure: Measure) -> str:
    if measure.column is None:
        return f"{measure.table[1]}_count"
    if measure.function == "metric":
        return measure.column

    column = measure.column
    if measure.times is not None:
        column = f"{measure.column}_x_{measure.times}"
    if measure.less is not None:
        column = f"{column}_less_{measure.less}"

    percent = ""
    if measure.percent is not None:
        percent = number(measure.percent).replace(".", "_")

    return FUNCTIONS[measure.function].name.replace("{percent}", percent).replace("{}", column)


def _has_namesake(measure: Measure, query: Query) -> bool:
    """Tell whether the query has the same measure of a column of another table."""
    if measure.column is None:
        return False

    same = [
        other
        for other in query.measures
        if (other.function, other.column) == (measure.function, measure.column)
    ]
    return any(other.table != measure.table for other in same)


def direction(is_falling: bool) -> str:
    """Return the end of a sort key: nothing for the least first, `DESC` for the greatest first.

    Missing values always come last.
    """
    return " DESC NULLS LAST" if is_falling else ""
