"""What a question wants, piece by piece, before it is known which table answers it."""

from dataclasses import dataclass, field
from decimal import Decimal

from rules.linking.dates import Unit
from rules.query.query import Dimension, Function
from rules.schema.links import Link
from rules.schema.schema import TableKey

AGGREGATES: dict[str, Function] = {
    "sum": "sum", "avg": "avg", "max": "max", "min": "min", "median": "median", "stddev": "stddev",
    "percentile": "percentile",
}  # fmt: skip
"""Functions by the intent that asks for them."""


@dataclass
class Figure:
    """A figure asked for: a function over a column, or (`link` None) a count of `table`'s rows."""

    function: Function | None
    link: Link | None = None
    table: TableKey | None = None
    position: int = 0
    per: Dimension | None = None
    per_unit: Unit | None = None
    is_share: bool = False
    percent: Decimal | None = None


@dataclass
class Ranking:
    """A wish for the most or least of something.

    Attributes:
        figure: by what; None when only an adjective says it (`hint`: the concept, such as `price`).
        limit: how many, None when not said.
        is_value: the extreme figure itself is wanted ("the highest rent"), not the thing that has it.
        is_order: only an order of everything is wanted ("sorted by price").
    """

    descending: bool
    figure: Figure | None = None
    hint: str = ""
    limit: int | None = None
    is_value: bool = False
    is_order: bool = False
    position: int = 0


@dataclass
class Asks:
    """Everything the question wants.

    Attributes:
        kind: the one of `dimensions` that is asked for as kinds of a thing.
        ranked_dates: those of `dimensions` of which single ones are ranked, not things within each.
    """

    figures: list[Figure] = field(default_factory=list)
    rankings: list[Ranking] = field(default_factory=list)
    dimensions: list[Dimension] = field(default_factory=list)
    kind: Dimension | None = None
    ranked_dates: list[Dimension] = field(default_factory=list)
    heads: list[int] = field(default_factory=list)
    qualifiers: list[tuple[int, TableKey]] = field(default_factory=list)
    limit: int | None = None
    distinct: bool = False
    per_entity: int | None = None
    trend: bool = False
    share: bool = False
    compare: bool = False
    which: bool = False
    lists: bool = False
