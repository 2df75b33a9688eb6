"""A shop, what is asked to be built of it, and the nodes that such a request passes."""

from typing import Any

SHOP = """
CREATE TABLE users (id integer PRIMARY KEY, city text);
CREATE TABLE orders (
    id integer PRIMARY KEY, user_id integer REFERENCES users, status text,
    amount numeric(12,2), ordered_on date, paid_at timestamptz
);
COMMENT ON TABLE users IS '用户表';
COMMENT ON TABLE orders IS '订单表';
COMMENT ON COLUMN orders.amount IS '销售额';
INSERT INTO users VALUES (1, '北京'), (2, '上海'), (3, NULL);
INSERT INTO orders VALUES
    (1, 1, 'paid', 10.50, '2026-01-31', '2026-02-01 00:00+00'),
    (2, 1, 'void', 20, '2026-02-01', NULL),
    (3, NULL, 'paid', NULL, '2026-02-28', '2026-03-01 12:00+00'),
    (4, 3, NULL, 5, NULL, NULL);
ANALYZE;
"""
INTENT: dict[str, Any] = {
    "summary": "sales by month",
    "data_sources": [{"table_name": "orders"}, {"table_name": "users"}],
    "data_target": {"table_name": "monthly_sales"},
    "operations": [
        {"order": 1, "action": "join", "parameters": {"left": "orders", "right": "users"}},
        {
            "order": 2,
            "action": "aggregate",
            "parameters": {
                "group_by": [{"column": "orders.ordered_on", "unit": "month", "as": "month"}],
                "measures": [{"function": "sum", "column": "orders.amount", "as": "sales"}],
            },
        },
        {"order": 3, "action": "sink", "parameters": {"mode": "replace"}},
    ],
}
NODES = ("knowledge_agent", "analyst_agent", "architect_agent", "reviewer_agent", "developer_agent")
TESTED = ["start", *NODES, "tester_agent"]
