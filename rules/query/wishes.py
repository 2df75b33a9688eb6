"""A figure that a question wants, before it is known which table answers it."""

from dataclasses import dataclass
from decimal import Decimal

from common.meanings import TableKey
from rules.linking.dates import Unit
from rules.query.query import Dimension, Function
from rules.schema.links import Link

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
