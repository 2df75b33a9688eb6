"""What the columns of a result are called, and the direction they are put in order by."""

import re
from collections import Counter
from dataclasses import dataclass

from common.postgres.identifiers import quoted
from rules.query.functions import FUNCTIONS, PARTS
from rules.query.query import Dimension, Measure, Query
from rules.sql.expressions import number

_LAST_NAME = re.compile(r"""(?:"(?:[^"]|"")*"|[^."]+)$""")  # of a column with its table's alias


@dataclass(frozen=True)
class Output:
    """One column of the result: its expression and the name it gets (None keeps the column's own)."""

    sql: str
    alias: str | None = None

    @property
    def name(self) -> str:
        """What the column is called, as SQL writes it."""
        return quoted(self.alias) if self.alias else self.bare

    @property
    def bare(self) -> str:
        """What it is called without the alias."""
        return str(_LAST_NAME.findall(self.sql)[0])

    def __str__(self) -> str:
        return f"{self.sql} AS {quoted(self.alias)}" if self.alias else self.sql


def disambiguated(groups: list[tuple[str, list[Output]]]) -> list[list[Output]]:
    """Columns under their tables' names; of equal ones (customer.name, product.name) each gets that in front."""
    often = Counter(one.bare for _, outputs in groups for one in outputs)

    def told_apart(one: Output, owner: str) -> Output:
        is_alone = often[one.bare] == 1 or one.alias
        return one if is_alone else Output(one.sql, f"{owner}_{one.bare}".replace('"', ""))

    return [[told_apart(one, owner) for one in outputs] for owner, outputs in groups]


def group_name(dimension: Dimension) -> str:
    """The name of the column of a dimension by one column."""
    part = PARTS[dimension.part].name if dimension.part is not None else None
    return dimension.bucket or part or str(dimension.column)


def measure_alias(measure: Measure, query: Query) -> str:
    """The name of a measure's column in the result, which no other measure of the query has."""
    if measure.column is None:
        name = f"{measure.table[1]}_count"
    elif measure.function == "metric":
        name = measure.column
    else:
        column = f"{measure.column}_x_{measure.times}" if measure.times is not None else measure.column
        percent = number(measure.percent).replace(".", "_") if measure.percent is not None else ""
        name = FUNCTIONS[measure.function].name.replace("{percent}", percent).replace("{}", column)
    if measure.per is not None:
        name = f"average_{name}"
    if measure.is_running:
        name = f"running_{name}"
    if measure.is_share:
        name = f"{name}_percent"
    same = [one for one in query.measures if (one.function, one.column) == (measure.function, measure.column)]
    clash = measure.column is not None and any(one.table != measure.table for one in same)
    return f"{measure.table[1]}_{name}" if clash else name


def direction(is_falling: bool) -> str:
    """What follows a sort key: the greatest first, and what is missing always last."""
    return " DESC NULLS LAST" if is_falling else ""
