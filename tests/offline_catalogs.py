"""Catalogues for tests of the rules that need no server."""

from common.values import Catalog, Column, ForeignKey, Table

CUSTOMERS = Table(
    "public",
    "customers",
    "table",
    (
        Column("customer_id", "integer", nullable=False),
        Column("name", "text", nullable=False, values=("Ann Lee", "Bob Ray"), is_complete=True),
        Column("city", "text", values=("Berlin", "Paris"), is_complete=True),
        Column("created_at", "timestamp without time zone"),
        Column("is_deleted", "boolean", nullable=False),
    ),
    primary_key=("customer_id",),
)
ORDERS = Table(
    "public",
    "orders",
    "table",
    (
        Column("order_id", "integer", nullable=False),
        Column("customer_id", "integer", nullable=False),
        Column("order_date", "date", nullable=False),
        Column("status", "text", values=("open", "shipped"), is_complete=True),
        Column("total_amount", "numeric(12,2)"),
    ),
    primary_key=("order_id",),
    foreign_keys=(ForeignKey(("customer_id",), ("public", "customers"), ("customer_id",)),),
)
FLIGHTS = Table(
    "public",
    "flight",
    "table",
    (
        Column("flight_id", "integer", nullable=False),
        Column("origin_airport_id", "integer"),
        Column("destination_airport_id", "integer"),
        Column("order", "integer", "顺序"),
    ),
    primary_key=("flight_id",),
    foreign_keys=(
        ForeignKey(("origin_airport_id",), ("public", "airport"), ("airport_id",)),
        ForeignKey(("destination_airport_id",), ("public", "airport"), ("airport_id",)),
    ),
)
AIRPORT = Table(
    "public",
    "airport",
    "table",
    (Column("airport_id", "integer", nullable=False), Column("airport_name", "text", values=("Tegel", "Orly"))),
    primary_key=("airport_id",),
)
SHOP = Catalog((CUSTOMERS, ORDERS))
AIR = Catalog((FLIGHTS, AIRPORT))
CHINESE = Catalog(
    (
        Table(
            "public",
            "t_store",
            "table",
            (
                Column("id", "bigint", "主键", nullable=False),
                Column("store_name", "varchar(40)", "门店名称", values=("南京路店", "淮海路店")),
                Column("state", "smallint", "状态：0-停业 1-营业"),
                Column("rent", "numeric(10,2)", "租金（元）"),
            ),
            comment="门店信息表",
            primary_key=("id",),
        ),
    )
)
