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
    (
        Column("airport_id", "integer", nullable=False),
        Column("airport_name", "text", values=("Tegel", "Orly")),
    ),
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
STORES = Catalog(
    (
        Table(
            "public",
            "store",
            "table",
            (
                Column("store_id", "integer", nullable=False),
                Column(
                    "store_name",
                    "text",
                    "门店名称",
                    values=("南京路店", "淮海路店"),
                    is_complete=True,
                ),
                Column("unit_rent", "numeric", "租金"),
            ),
            comment="门店",
            primary_key=("store_id",),
        ),
        Table(
            "public",
            "sale",
            "table",
            (
                Column("sale_id", "integer", nullable=False),
                Column("store_id", "integer", "门店编号"),
                Column("staff_id", "integer", "员工编号"),
                Column("channel", "text", "渠道", values=("门店", "线上"), is_complete=True),
                Column("unit_rent", "numeric", "租金"),
                Column("sold_on", "date", "销售日期"),
            ),
            comment="订单",
            primary_key=("sale_id",),
            foreign_keys=(
                ForeignKey(("store_id",), ("public", "store"), ("store_id",)),
                ForeignKey(("staff_id",), ("public", "staff"), ("staff_id",)),
            ),
        ),
        Table(
            "public",
            "staff",
            "table",
            (
                Column("staff_id", "integer", nullable=False),
                Column(
                    "full_name",
                    "text",
                    "姓名",
                    values=("冯晨", "李娜", "王建国", "赵明", "Ann Lee"),
                    is_complete=True,
                ),
                Column("team", "text", "部门", values=("销售部", "技术部"), is_complete=True),
            ),
            comment="员工",
            primary_key=("staff_id",),
        ),
    )
)
"""A table called like a stored value, a figure that two tables have, and people."""
ITEMS = Catalog(
    (
        Table(
            "public",
            "item",
            "table",
            (
                Column("item_id", "integer", nullable=False),
                Column(
                    "code",
                    "text",
                    "货号",
                    values=("PX100", "QZ-7", "AX-1001", "D9"),
                    is_complete=True,
                ),
                Column(
                    "title",
                    "text",
                    "商品名称",
                    values=("Old Mill", "Harbour Corner", "乌龙茶", "红茶"),
                    is_complete=True,
                ),
                Column("region", "text", "地区", values=("North", "East"), is_complete=True),
                Column("price", "numeric", "单价"),
            ),
            comment="商品",
            primary_key=("item_id",),
        ),
    )
)
"""Things with codes, and with names of several words."""
AGENTS = Table(
    "public",
    "agents",
    "table",
    (
        Column("agent_id", "integer", nullable=False),
        Column(
            "full_name",
            "text",
            "姓名",
            values=("Ben Doyle", "Carla Finch", "Ruth Adler", "Neil Frost"),
        ),
    ),
    "员工表",
    primary_key=("agent_id",),
)
SALES = Table(
    "public",
    "sales",
    "table",
    (
        Column("sale_id", "integer", nullable=False),
        Column("customer_id", "integer"),
        Column("agent_id", "integer"),
        Column("quantity", "integer"),
        Column("total_amount", "numeric", "销售金额"),
        Column("sold_on", "date"),
        Column("shipped_on", "date"),
    ),
    "销售",
    primary_key=("sale_id",),
    foreign_keys=(
        ForeignKey(("customer_id",), ("public", "customers"), ("customer_id",)),
        ForeignKey(("agent_id",), ("public", "agents"), ("agent_id",)),
    ),
)
SALES_BY_TWO = Catalog((CUSTOMERS, AGENTS, SALES))
"""Events with two kinds of people, two figures and two dates."""
