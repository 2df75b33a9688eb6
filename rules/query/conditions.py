"""What restricts rows, as far as it is known before the asked table is."""

from dataclasses import dataclass, field
from decimal import Decimal

from common.text import Text
from rules.linking.dates import Period
from rules.query.query import ColumnRef, Condition, Operator, Related
from rules.schema.links import Link
from rules.schema.schema import TableKey


@dataclass
class Threshold:
    """A comparison whose left side may be an aggregate: decided when it is known what is asked.

    Attributes:
        link: the compared column, None when rows of `table` are counted.
        hint: concept of the compared column when only an adjective says it (`price` of "cheaper than").
        function: an aggregate said explicitly ("average rent above 5000").
    """

    operator: Operator
    operands: tuple[Decimal, ...]
    link: Link | None = None
    table: TableKey | None = None
    function: str | None = None
    hint: str = ""
    position: int = 0


@dataclass
class Span:
    """A period and where in the question it stands; `link` once its column is known."""

    periods: list[Period]
    first: int
    last: int
    link: Link | None = None
    negated: bool = False


@dataclass
class Filters:
    """Everything that restricts rows, as far as it is known before the asked table is."""

    conditions: list[Condition] = field(default_factory=list)
    thresholds: list[Threshold] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)
    related: list[Related] = field(default_factory=list)
    with_deleted: set[TableKey] = field(default_factory=set)
    compared: list[ColumnRef] = field(default_factory=list)
    compares: bool = False
    conjoined: set[ColumnRef] = field(default_factory=set)
    notes: list[Text] = field(default_factory=list)


def ref(link: Link) -> ColumnRef:
    """The column a link means."""
    assert link.column is not None
    return ColumnRef(link.table, link.column, is_age=link.derived == "age")
