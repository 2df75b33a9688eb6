"""The rows that an intent means, written by hand."""

from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

from etl.meaning.bound import AnyOf, BoundCondition, BoundIntent, ExpressionTest, RelativeDay
from etl.meaning.interpreter import evaluate
from etl.meaning.row_expressions import parse_expression
from tests.support.bound_intents import (
    TABLES,
    column,
    compute,
    dedup,
    group,
    intent,
    join,
    keep,
    key,
    mapped,
    measure,
    rate,
    window,
)
from tests.support.shop_worlds import counted

D = Decimal
Rows = list[tuple[Any, ...]]


def _utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def _table(name: str, *rows: tuple[Any, ...]) -> dict[str, list[dict[str, Any]]]:
    """Rows of a table; those that end early have NULL behind."""
    names = [one.name for one in TABLES[name].columns]
    filled = [(*row, *[None] * (len(names) - len(row))) for row in rows]
    return {name: [dict(zip(names, row, strict=True)) for row in filled]}


# Orders of a known, a known, an unknown and no user; the second has no status, the last no amount
ORDERS = _table(
    "orders",
    (1, 10, "paid", D("1.00"), "EUR", date(2024, 1, 31), _utc("2024-01-31 23:30")),
    (2, 10, None, D("2.00"), "USD", date(2024, 2, 1), _utc("2024-02-01 00:00")),
    (3, 99, "void", D("4.00"), "EUR", date(2024, 4, 1), _utc("2024-04-01 12:00")),
    (4, None, "paid", None, None, None, None),
)
ITEMS = _table(
    "items",
    (1, 1, "pen", 1, D("0.10")),
    (2, 1, "ink", 2, D("0.20")),
    (3, 2, "pen", 3, D("0.40")),
    (4, 77, "ink", 4, D("0.80")),
    (5, None, "pen", 5, D("1.60")),
)
USERS = _table("users", (10, "Ulm", True), (11, None, False), (12, "Bonn", None))
RATES = _table(
    "rates",
    ("USD", date(2024, 1, 1), D("0.50")),
    ("USD", date(2024, 2, 1), D("0.80")),
    ("USD", date(2024, 2, 1), D("0.90")),
    ("USD", date(2024, 2, 2), D("9.00")),
    ("USD", date(2024, 1, 31), None),
)
WORLD = ORDERS | ITEMS | USERS | RATES
USER_OF_ORDER = ("orders.user_id", "users.id")
ITEM_OF_ORDER = ("orders.id", "items.order_id")
ID_AND_CITY = [("id", "orders.id"), ("city", "users.city")]
PEN = BoundCondition(column("items.product"), "=", "pen")


@dataclass(frozen=True)
class World:
    """An intent and the rows that it means."""

    name: str
    intent: BoundIntent
    rows: Rows
    tables: Any = None


def joined(how: str, rows: Rows) -> World:
    """Orders with the cities of their users."""
    is_added = how in ("left", "inner")
    return World(
        f"{how} join",
        intent(
            join("users", USER_OF_ORDER, how),
            sources=("orders", "users"),
            columns=("id", "city") if is_added else ("id",),
            outputs=ID_AND_CITY if is_added else ID_AND_CITY[:1],
        ),
        rows,
    )


def filtered(name: str, test: Any, ids: list[int]) -> World:
    """The orders that a filter keeps."""
    steps = keep(test, source="orders")
    return World(
        name, intent(steps, columns=["id"], outputs=[("id", "orders.id")]), [(one,) for one in ids]
    )


def grouped(name: str, aggregate: Any, rows: Rows, *before: Any, **more: Any) -> World:
    """Groups of orders, with items where steps join them."""
    names = [one.name for one in (*aggregate.keys, *aggregate.measures)]
    tables = more.pop("tables", None)
    return World(name, intent(*before, aggregate, columns=names, **more), rows, tables)


def windowed(name: str, step: Any, values: list[Any], amounts: Any = None) -> World:
    """What a window gives for orders 1, 2 and so on with these amounts, by id."""
    amounts = amounts or [D(3), D(1), D(3), None]
    tables = _table("orders", *((place, None, None, one) for place, one in enumerate(amounts, 1)))
    made = intent(
        step,
        columns=("id", "window"),
        outputs=[("id", "orders.id"), ("amount", "orders.amount")],
    )
    return World(name, made, list(enumerate(values, 1)), tables)


def condition(operator: Any, value: Any = None, name: str = "orders.status") -> BoundCondition:
    return BoundCondition(column(name), operator, value)


BY_ID = [("id", "asc")]
ITEMS_OF_ORDERS = join("items", ITEM_OF_ORDER, is_multiple=True)
BOTH = ("orders", "items")
SUM = measure("sum", "orders", "orders.amount", "total")
COUNT = measure("count", "orders", name="count")
MONTH = key("orders.ordered_on", "month", "month")
NEW_YORK = "America/New_York"
# Half past midnight, and half past one twice
TWO_HOURS = [_utc(f"2024-11-03 0{hour}:30") for hour in (4, 5, 6)]

WORLDS = [
    # 1: joins lose and repeat nothing unless they say so
    joined("left", [(1, "Ulm"), (2, "Ulm"), (3, None), (4, None)]),
    joined("inner", [(1, "Ulm"), (2, "Ulm")]),
    joined("semi", [(1,), (2,)]),
    joined("anti", [(3,), (4,)]),
    # 2: each row of a measure's table counts once
    grouped(
        "two children count their parent once",
        group([], SUM, COUNT, measure("sum", "items", "items.price", "items")),
        [(D("7.00"), 4, D("0.70"))],
        ITEMS_OF_ORDERS,
        sources=BOTH,
    ),
    grouped(
        "an expression over parent and child counts the child",
        group([], measure("sum", "items", "items.quantity * orders.amount")),
        [(D("9.00"),)],
        ITEMS_OF_ORDERS,
        sources=BOTH,
    ),
    grouped(
        "a condition on the far side selects parents once",
        group([], SUM, COUNT),
        [(D("3.00"), 2)],
        ITEMS_OF_ORDERS,
        keep(PEN),
        sources=BOTH,
    ),
    grouped(
        "a parent belongs to each group beyond the repeating join",
        group([key("items.product")], SUM),
        [("pen", D("3.00")), ("ink", D("1.00")), (None, D("4.00"))],
        ITEMS_OF_ORDERS,
        sources=BOTH,
    ),
    grouped(
        "a measure's own filter",
        group(
            [],
            measure("count", "orders", name="all"),
            measure("count", "orders", None, "pens", [PEN]),
            measure("sum", "orders", "orders.amount", "none", [condition("=", "lost")]),
        ),
        [(4, 2, None)],
        ITEMS_OF_ORDERS,
        sources=BOTH,
    ),
    grouped(
        "counts",
        group(
            [],
            measure("count", "orders", "orders.amount", "known"),
            measure("count_distinct", "orders", "orders.status", "states"),
            measure("count", "items", name="items"),
        ),
        [(3, 2, 3)],
        ITEMS_OF_ORDERS,
        sources=BOTH,
    ),
    # 3: exclusions keep NULL
    filtered("not equal keeps NULL", condition("!=", "void"), [1, 2, 4]),
    filtered("not in keeps NULL", condition("not_in", ("void", "paid")), [2]),
    filtered("equal drops NULL", condition("=", "paid"), [1, 4]),
    filtered("in", condition("in", ("paid", "lost")), [1, 4]),
    filtered("more drops NULL", condition(">", D(1), "orders.amount"), [2, 3]),
    filtered("both ends belong", condition("between", (1, D("2.0")), "orders.amount"), [1, 2]),
    filtered("is null", condition("is_null"), [2]),
    filtered("not null", condition("not_null"), [1, 3, 4]),
    filtered("plain text, no pattern", condition("contains", "%"), []),
    filtered("prefix", condition("prefix", "pa"), [1, 4]),
    filtered("suffix", condition("suffix", "d"), [1, 3, 4]),
    filtered("another column", condition("column=", column("orders.id"), "orders.user_id"), []),
    filtered(
        "a relative day",
        condition("<", RelativeDay("d", date(2024, 2, 1)), "orders.ordered_on"),
        [1],
    ),
    filtered("a moment against a day", condition(">=", date(2024, 2, 1), "orders.paid_at"), [2, 3]),
    filtered(
        "an alternative",
        AnyOf((condition("is_null"), condition("=", 4, "orders.id"))),
        [2, 4],
    ),
    filtered(
        "an expression that is unknown drops",
        ExpressionTest(parse_expression("NOT orders.status = 'void'")),
        [1, 4],
    ),
    # 4: groups with NULL stay
    grouped(
        "a NULL key and a NULL period",
        group([key("orders.status"), MONTH], SUM, COUNT),
        [
            ("paid", date(2024, 1, 1), D("1.00"), 1),
            (None, date(2024, 2, 1), D("2.00"), 1),
            ("void", date(2024, 4, 1), D("4.00"), 1),
            ("paid", None, None, 1),
        ],
    ),
    grouped(
        "nothing",
        group([], SUM, COUNT, measure("sum", "orders", "orders.amount", "zero", is_zero=True)),
        [(None, 0, 0)],
        keep(condition("=", "lost")),
    ),
    grouped("no groups of nothing", group([MONTH], SUM), [], keep(condition("=", "lost"))),
    # 5: periods
    grouped(
        "a moment belongs to its month in the zone",
        group([key("orders.paid_at", "month", "month")], COUNT),
        [(date(2024, 1, 1), 2), (date(2024, 4, 1), 1), (None, 1)],
        time_zone=NEW_YORK,
    ),
    grouped(
        "hours when clocks are put back",
        group([key("orders.paid_at", "hour", "hour")], COUNT),
        [(datetime(2024, 11, 3, 1), 2), (datetime(2024, 11, 3, 0), 1)],
        tables=_table(
            "orders",
            *((id_, None, None, None, None, None, moment) for id_, moment in enumerate(TWO_HOURS)),
        ),
        time_zone=NEW_YORK,
    ),
    grouped(
        "quarters and years",
        group(
            [key("orders.ordered_on", "q", "quarter"), key("orders.ordered_on", "y", "year")], SUM
        ),
        [
            (date(2024, 1, 1), date(2024, 1, 1), D("3.00")),
            (date(2024, 4, 1), date(2024, 1, 1), D("4.00")),
            (None, None, None),
        ],
    ),
    grouped(
        "weeks begin on Monday",
        group([key("orders.ordered_on", "week", "week")], COUNT),
        [(date(2024, 1, 29), 2), (date(2024, 4, 1), 1), (None, 1)],
    ),
    # 6: spine
    grouped(
        "all months between, per status that occurs",
        group([MONTH, key("orders.status", "status")], SUM, COUNT, has_spine=True),
        [
            *((date(2024, month, 1), "paid", None, 0) for month in (2, 3, 4)),
            *((date(2024, month, 1), "void", None, 0) for month in (1, 2, 3)),
            *((date(2024, month, 1), None, None, 0) for month in (1, 3, 4)),
            (date(2024, 1, 1), "paid", D("1.00"), 1),
            (date(2024, 2, 1), None, D("2.00"), 1),
            (date(2024, 4, 1), "void", D("4.00"), 1),
            (None, "paid", None, 1),
        ],
    ),
    grouped(
        "filled with 0 where it is said",
        group(
            [MONTH],
            measure("sum", "orders", "orders.amount", "total", is_zero=True),
            measure("avg", "orders", "orders.amount", "mean"),
            has_spine=True,
        ),
        [
            (date(2024, 1, 1), D("1.00"), D("1.00")),
            (date(2024, 2, 1), D("2.00"), D("2.00")),
            (date(2024, 3, 1), 0, None),
            (date(2024, 4, 1), D("4.00"), D("4.00")),
            (None, 0, None),
        ],
    ),
    grouped(
        "figures",
        group(
            [],
            measure("avg", "orders", "orders.amount", "mean"),
            measure("median", "orders", "orders.amount", "median"),
            measure("min", "orders", "orders.ordered_on", "first"),
            measure("max", "orders", "orders.amount", "most"),
            measure("median", "orders", "orders.id", "middle"),
        ),
        [(D("2.3333333333333333"), D(2), date(2024, 1, 31), D("4.00"), D("2.5"))],
    ),
    # windows
    windowed("row number", window("row_number", sorting=[("amount", "asc"), *BY_ID]), [2, 1, 3, 4]),
    windowed(
        "rank, NULL first descending", window("rank", sorting=[("amount", "desc")]), [2, 4, 2, 1]
    ),
    windowed("dense rank", window("dense_rank", sorting=[("amount", "desc")]), [2, 3, 2, 1]),
    windowed("lag", window("lag", "amount", sorting=BY_ID), [None, 3, 1, 3]),
    windowed(
        "lead by two", window("lead", "amount", sorting=BY_ID, offset=2), [3, None, None, None]
    ),
    windowed(
        "running sums include peers",
        window("sum", "amount", sorting=[("amount", "asc")]),
        [7, 1, 7, 7],
    ),
    windowed("moving sums take rows", window("sum", "amount", sorting=BY_ID, rows=2), [3, 4, 4, 3]),
    windowed("moving averages", window("avg", "amount", sorting=BY_ID, rows=2), [3, 2, 2, 3]),
    windowed(
        "sums of a partition",
        window("sum", "amount", partition=["amount"]),
        [6, 1, 6, None],
    ),
    windowed("share", window("share", "amount"), [D("0.25")] * 4, [D(1)] * 4),
    windowed("a share of nothing", window("share", "amount"), [None, None], [D(1), D(-1)]),
    # a map's default holds for NULL too; for a source that is not there, there is nothing to map
    grouped(
        "map",
        group([key("kind", "kind")], COUNT),
        [("good", 2), ("other", 2)],
        mapped("kind", "orders.status", {"paid": "good"}, "other"),
    ),
    grouped(
        "map of a table",
        group([key("kind", "kind")], COUNT),
        [("here", 2), (None, 2)],
        mapped("kind", "users.city", {"Bonn": "there"}, "here", stage="table", source="users"),
        join("users", USER_OF_ORDER),
        sources=("orders", "users"),
    ),
    # 7: dedup
    World(
        "ties go by the primary key, descending, and NULL keys stay",
        intent(
            dedup("orders", ["user_id"], [("ordered_on", "desc")]),
            columns=["id"],
            outputs=[("id", "orders.id")],
        ),
        [(2,), (5,), (6,), (7,)],
        _table(
            "orders",
            (1, 10, None, None, None, date(2024, 1, 1)),
            (2, 10, None, None, None, date(2024, 1, 2)),
            (4, 11, None, None, None, date(2024, 1, 1)),
            (5, 11, None, None, None, date(2024, 1, 1)),
            (6, None),
            (7, None),
        ),
    ),
    World(
        "a dedup of what joins left",
        intent(
            join("users", USER_OF_ORDER, "inner"),
            dedup("orders", ["user_id"], [("id", "asc")], "rows"),
            sources=("orders", "users"),
            columns=["id", "city"],
            outputs=ID_AND_CITY,
        ),
        [(1, "Ulm")],
    ),
    # 8: division
    World(
        "division by zero, and of integers",
        intent(
            compute("half", "orders.id / 2"),
            compute("none", "half / (orders.id - 1)"),
            keep(condition("in", (1, 2), "orders.id")),
            columns=["half", "none"],
            outputs=[("half", "half"), ("none", "none")],
        ),
        [(D("0.5"), None), (D(1), D(1))],
    ),
    # 9: rates
    World(
        "rates: the highest of the day, none",
        intent(
            rate("EUR"),
            sources=("orders", "rates"),
            columns=["id", "converted"],
            outputs=[("id", "orders.id"), ("converted", "converted")],
        ),
        [(1, D("1.00")), (2, D("1.80")), (3, D("4.00")), (4, None)],
    ),
    *(
        World(
            f"rates: the day is that of the zone, {name}",
            intent(
                rate("EUR", is_latest=is_latest),
                keep(condition("=", "USD", "orders.currency")),
                sources=("orders", "rates"),
                columns=["converted"],
                outputs=[("converted", "converted")],
                time_zone=NEW_YORK,
            ),
            [(converted,)],
        )
        for name, is_latest, converted in (
            ("and has no rate", False, None),
            ("or the latest before", True, D("1.00")),
        )
    ),
    World(
        "conditions and windows after the aggregate see its columns",
        intent(
            group([key("orders.status", "status")], SUM),
            keep(condition(">", D(1), "total"), stage="result"),
            compute("double", "total * 2", "result"),
            window("rank", sorting=[("double", "desc")]),
            columns=["status", "double", "window"],
        ),
        [("void", D("8.00"), 1), (None, D("4.00"), 2)],
    ),
]


@pytest.mark.parametrize("world", WORLDS, ids=lambda world: world.name)
def test_an_intent_means_these_rows(world: World) -> None:
    tables = world.tables or WORLD
    meaning = evaluate(
        world.intent, {source.name: tables[source.name] for source in world.intent.sources}
    )
    assert meaning.columns == world.intent.target.columns
    assert counted(meaning.rows) == counted(world.rows)


def test_the_ledger_says_where_rows_went() -> None:
    made = intent(
        keep(condition("!=", "void"), source="orders"),
        ITEMS_OF_ORDERS,
        join("users", USER_OF_ORDER, "inner"),
        keep(PEN),
        rate("CHF"),
        group([MONTH], COUNT),
        sources=("orders", "items", "users", "rates"),
        columns=["month", "count"],
    )
    ledger = [entry.model_dump(exclude_defaults=True) for entry in evaluate(made, WORLD).ledger]
    assert ledger == [
        {"operation": 2, "table": "orders", "rows_in": 4, "rows_out": 3, "filtered": 1},
        {
            "operation": 1,
            "table": "items",
            "rows_in": 3,
            "rows_out": 4,
            "unmatched": 1,
            "repeated": 1,
        },
        {
            "operation": 1,
            "table": "users",
            "rows_in": 4,
            "rows_out": 3,
            "filtered": 1,
            "null_keys": 1,
        },
        {"operation": 2, "table": "orders", "rows_in": 3, "rows_out": 2, "filtered": 1},
        {"operation": 2, "table": "rates", "rows_in": 2, "rows_out": 2, "unmatched": 1},
        {"operation": 3, "table": "orders", "rows_in": 2, "rows_out": 2},
    ]
