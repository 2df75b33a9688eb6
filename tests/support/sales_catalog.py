"""A catalogue of orders, users, lines and products, for tests of transformations."""

from common.values import Catalog, Column, ForeignKey, Table


def _reference(column: str, table: str) -> ForeignKey:
    return ForeignKey((column,), ("public", table), ("id",))


_STATES = ("paid", "cancelled", "pending")
_CITIES = ("北京", "上海")

ORDERS = Table(
    "public",
    "orders",
    "table",
    (
        Column("id", "bigint", nullable=False),
        Column("user_id", "bigint", "用户ID"),
        Column("amount", "numeric(12,2)", "订单金额"),
        Column("status", "text", "订单状态", values=_STATES, is_complete=True),
        Column("created_at", "timestamp with time zone", "创建时间"),
        Column("paid_at", "timestamp with time zone", "支付时间"),
        Column("city", "text", "城市", values=_CITIES),
    ),
    comment="订单表",
    primary_key=("id",),
    foreign_keys=(_reference("user_id", "users"),),
)
USERS = Table(
    "public",
    "users",
    "table",
    (
        Column("id", "bigint", nullable=False),
        Column("name", "text", "姓名"),
        Column("level", "text", "用户等级"),
        Column("registered_on", "date", "注册日期"),
    ),
    comment="用户表",
    primary_key=("id",),
)
ORDER_ITEMS = Table(
    "public",
    "order_items",
    "table",
    (
        Column("id", "bigint", nullable=False),
        Column("order_id", "bigint", "订单ID"),
        Column("product_id", "bigint", "商品ID"),
        Column("quantity", "integer", "数量"),
        Column("unit_price", "numeric(10,2)", "单价"),
    ),
    comment="订单明细",
    primary_key=("id",),
    foreign_keys=(_reference("order_id", "orders"), _reference("product_id", "products")),
)
PRODUCTS = Table(
    "public",
    "products",
    "table",
    (
        Column("id", "bigint", nullable=False),
        Column("name", "text", "商品名称"),
        Column("category", "text", "品类"),
    ),
    comment="商品表",
    primary_key=("id",),
)
SALES = Catalog((ORDERS, USERS, ORDER_ITEMS, PRODUCTS))
