"""What the columns of a result are called, and the direction they are put in order by."""

from dataclasses import dataclass

from common.postgres.identifiers import quoted
from rules.query.functions import FUNCTIONS, PARTS
from rules.query.query import Dimension, Measure, Query
from rules.schema.schema import Schema
from rules.sql.identifiers import number


@dataclass(frozen=True)
class Output:
    """One column of the result: its expression and the name it gets (None keeps the column's own)."""

    sql: str
    alias: str | None = None

    @property
    def name(self) -> str:
        """What the column is called, as SQL writes it."""
        return quoted(self.alias) if self.alias else self.sql.split(".")[-1]

    def __str__(self) -> str:
        return f"{self.sql} AS {quoted(self.alias)}" if self.alias else self.sql


def disambiguated(outputs: list[Output], query: Query, schema: Schema) -> list[Output]:
    """The columns; those with equal names (customer.name, product.name) get the names of their tables in front."""
    bare = [output.sql.split(".")[-1] for output in outputs]
    if len(set(bare)) == len(bare):
        return outputs
    owners: list[str] = []
    for dimension in query.dimensions:
        facts = schema.facts[dimension.table]
        shown = 1 if dimension.column else len(facts.shown)
        owners += [dimension.table[1]] * shown
    return [
        output if bare.count(name) == 1 or output.alias else Output(output.sql, f"{owner}_{name}".replace('"', ""))
        for output, name, owner in zip(outputs, bare, owners, strict=True)
    ]


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
    twins = [other for other in query.measures if other != measure and other.column == measure.column]
    clash = any(other.function == measure.function and other.table != measure.table for other in twins)
    return f"{measure.table[1]}_{name}" if clash and measure.column is not None else name


def direction(is_falling: bool) -> str:
    """What follows a sort key: the greatest first, and what is missing always last."""
    return " DESC NULLS LAST" if is_falling else ""
