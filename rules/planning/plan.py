"""What is known of a question while its query is planned, and functions that all planners need."""

from dataclasses import dataclass, field

from common.meanings import Metric
from common.text import Text
from rules.query.conditions import Filters
from rules.query.query import ColumnRef, Dimension, Order
from rules.query.wishes import Asks, Figure
from rules.readers.reading import Reading
from rules.schema.links import Link
from rules.schema.schema import TableKey


@dataclass
class Plan:
    """What is known so far.

    Attributes:
        head: the table whose rows answer, where one is named.
        projection: columns to be shown, with `named_at` their positions in the question.
        bare: measures named without a function.
        tables: tables named, with their positions.
        metrics: those asked for.
    """

    reading: Reading
    filters: Filters
    asks: Asks
    head: TableKey | None = None
    projection: list[Link] = field(default_factory=list)
    bare: list[Figure] = field(default_factory=list)
    named_at: dict[int, Link] = field(default_factory=dict)
    tables: list[tuple[int, TableKey]] = field(default_factory=list)
    warnings: list[Text] = field(default_factory=list)
    metrics: list[Metric] = field(default_factory=list)

    def metric_date(self, table: TableKey) -> str | None:
        """The column that dates the metrics asked for over the table, where they say so."""
        return next((one.date_column for one in self.metrics if one.table == table and one.date_column), None)


def is_asked(plan: Plan, index: int) -> bool:
    """Whether the noun stands right after a word that asks for it."""
    reading = plan.reading
    before = reading.beside(index, -1, ("noise", "of", "unit"))
    return before is not None and (reading.marks[before].means("list") or reading.asks_for(before))


def shown_names(plan: Plan, dimension: Dimension) -> tuple[str, ...]:
    """The names of the columns that show a dimension."""
    facts = plan.reading.facts(dimension.table)
    return (dimension.column,) if dimension.column else facts.shown


def all_columns(plan: Plan, table: TableKey) -> list[str]:
    """The names of a table's columns that are of use to a reader."""
    facts = plan.reading.facts(table)
    names = [column.name for column in facts.table.columns if not facts.is_housekeeping(column)]
    return names or [column.name for column in facts.table.columns]


def tie_break(plan: Plan, table: TableKey) -> tuple[Order, ...]:
    """An order that puts rows of a table in the same order every time."""
    facts = plan.reading.facts(table)
    return tuple(Order(column=ColumnRef(table, name), descending=False) for name in (facts.key or facts.display)[:2])


def leads(reading: Reading, index: int) -> bool:
    """Whether a noun is followed by "and" with something of its own: "customers and their orders"."""
    joint = reading.beside(index, 1, ("noise",))
    if joint is None or not reading.marks[joint].means("and", "with"):
        return False
    after = reading.beside(joint, 1, ("noise",), through_used=False)
    noun = reading.nouns[after] if after is not None else None
    return noun is None or not noun.is_value  # "restaurants and garages": two kinds of one thing
