"""A bound intent whose every name and value needs care: quotes, Jinja, lines, Chinese, 63 bytes."""

from datetime import date
from decimal import Decimal

from sqlglot import exp

from common.values import Column, Table
from etl.meaning.bound import (
    AggregateStep,
    BoundColumn,
    BoundCondition,
    BoundIntent,
    BoundKey,
    BoundMeasure,
    BoundSource,
    BoundTarget,
    ExpressionStep,
    FilterStep,
    JoinSourceStep,
    MapStep,
    RelativeDay,
    WindowStep,
)
from postgres.identifiers import quoted

SCHEMA = "Schäma {{ 7*7 }} '\" x"
ORDERS = "order"  # a reserved word
PEOPLE = '人员 {% raw %} "q" \\'
LONG = "n" * 56 + "_金額"  # 63 bytes
BREAKS = "line\r\none {# two #}"
VALUES = (
    "{{ 7*7 }}",
    "{% endraw %}",
    'it\'s \\ "quoted"',
    "first\r\nsecond\rthird {#",
    "$$; DROP TABLE x; --",
    "作废 :name /* no */",
)
_COMMENT = "{{ env_var('HOME') }} {% raw %} | <b>*x*</b>\nsecond line"
_ORDERS = Table(
    SCHEMA,
    ORDERS,
    "table",
    (
        Column("Id", "integer", nullable=False),
        Column("user", "integer", comment=_COMMENT),
        Column(LONG, "numeric(12,2)"),
        Column(BREAKS, "character varying(80)", comment=_COMMENT),
        Column("a.b", "date"),
    ),
    comment=_COMMENT,
    primary_key=("Id",),
)
_PEOPLE = Table(
    SCHEMA,
    PEOPLE,
    "table",
    (Column("id", "integer", nullable=False), Column("城市", "text")),
    primary_key=("id",),
)


def odd_ddl() -> str:
    """Return what makes the tables and fills them: each value occurs."""
    schema = quoted(SCHEMA)
    statements = [f"CREATE SCHEMA {schema};"]
    for table in (_ORDERS, _PEOPLE):
        columns = ", ".join(f"{quoted(column.name)} {column.type}" for column in table.columns)
        statements.append(f"CREATE TABLE {schema}.{quoted(table.name)} ({columns});")
    for number, value in enumerate((*VALUES, None) * 2, 1):
        text = "NULL" if value is None else "'" + value.replace("'", "''") + "'"
        row = f"({number}, {number % 4}, {number}.25, {text}, DATE '2024-01-25' + {number})"
        statements.append(f"INSERT INTO {schema}.{quoted(ORDERS)} VALUES {row};")
    people = quoted(PEOPLE)
    statements.append(f"INSERT INTO {schema}.{people} VALUES (1, '上海'), (2, NULL), (3, '{{{{');")
    return "\n".join(statements)


def odd_intent() -> BoundIntent:
    """Return each value is in a literal, each name is read, made or written."""
    state = BoundColumn("o", BREAKS)
    mapping = tuple((value, f"{value}!") for value in VALUES[:4])
    amount = exp.Column(this=exp.to_identifier(LONG, quoted=True), table=exp.to_identifier("o"))
    made = exp.Column(this=exp.to_identifier("Net {{", quoted=True))
    day = RelativeDay("first_day", date(2024, 1, 27))
    return BoundIntent(
        summary="{{ 1 }} `x` | [a](b)\n# <script>",
        sources=(BoundSource("o", _ORDERS), BoundSource("人", _PEOPLE)),
        steps=(
            FilterStep(1, "table", (BoundCondition(state, "not_in", VALUES[4:]),), "o"),
            FilterStep(2, "table", (BoundCondition(BoundColumn("o", "a.b"), ">=", day),), "o"),
            JoinSourceStep(
                3, "人", "left", ((BoundColumn("o", "user"), BoundColumn("人", "id")),), False
            ),
            MapStep(4, "rows", "select", state, mapping, "{{ other }}"),
            ExpressionStep(
                5, "rows", "Net {{", exp.Mul(this=amount, expression=exp.Literal.number(2))
            ),
            AggregateStep(
                6,
                (
                    BoundKey("month", BoundColumn("o", "a.b"), "month"),
                    BoundKey("城市 {%", BoundColumn("人", "城市")),
                    BoundKey("select", BoundColumn("", "select")),
                ),
                (
                    BoundMeasure(LONG, "sum", "o", made),
                    BoundMeasure('Zahl "1"', "count", "o", None),
                ),
            ),
            FilterStep(7, "result", (BoundCondition(BoundColumn("", LONG), ">", Decimal("-1")),)),
            WindowStep(8, "lauf", "sum", LONG, ("select",), (("month", "asc"), ("城市 {%", "asc"))),
        ),
        target=BoundTarget(
            relation="销售汇总 {{ x }} 't' U",
            model="sales_summary",
            layer="ADS",
            materialization="table",
            mode="replace",
            columns=("month", "城市 {%", "select", LONG, 'Zahl "1"', "lauf"),
        ),
        time_zone="UTC",
    )
