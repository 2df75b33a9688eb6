"""Makes a database of any number of tables, like those of companies: modules, things and their
records, in two languages.

Names repeat as in real databases: every table has an id, most have a status and dates, and
combinations of a hundred words name the tables. One table in ten stores a few rows.
"""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import psycopg2
from psycopg2.extensions import make_dsn

from common.values import Catalog, Column, ForeignKey, Table
from databases.embedded.embedded_server import EmbeddedServer

_TABLES_AT_ONCE = 200  # in one transaction

_MODULES = (
    "crm 客户关系|hr 人事|finance 财务|sales 销售|stock 库存|plant 工厂|school 学校|clinic 诊所|"
    "hotel 酒店|fleet 车队|"
    "claims 理赔|retail 零售|energy 能源|harbour 港口|library 图书|tax 税务|legal 法务|farm 农场|"
    "media 媒体|estate 房产"
)
_THINGS = (
    "customer 客户|order 订单|invoice 发票|payment 付款|product 产品|supplier 供应商|contract 合同|"
    "employee 员工|"
    "department 部门|warehouse 仓库|shipment 发货单|vehicle 车辆|device 设备|project 项目|"
    "task 任务|ticket 工单|"
    "campaign 活动|coupon 优惠券|account 账户|budget 预算|lesson 课程|patient 患者|room 房间|"
    "meter 电表|parcel 包裹"
)
_PARTS = (
    "|item 明细|log 日志|status 状态变更|price 价格|contact 联系人|document 文件|visit 拜访|"
    "review 评价|target 目标|"
    "transfer 调拨|address 地址|group 分组|plan 计划|report 报表|approval 审批|refund 退款|"
    "batch 批次|rule 规则|"
    "note 备注"
)
_MEASURES = (
    "amount 金额|quantity 数量|weight 重量|duration 时长|score 评分|distance 里程|"
    "fee 手续费|capacity 容量"
)
_STATES = ("draft", "open", "paid", "shipped", "closed", "cancelled")
_CITIES = ("杭州", "上海", "北京", "广州", "成都", "武汉", "西安", "南京")
_SCHEMA = "public"


def _words(table: str) -> list[tuple[str, str]]:
    return [(en, zh) for en, _, zh in (pair.partition(" ") for pair in table.split("|"))]


def synthetic_catalog(count: int) -> Catalog:
    """Make `count` tables of ten columns or so; a greater count adds further ones."""
    return Catalog(tuple(_tables(count)))


def _tables(count: int) -> Iterator[Table]:
    modules, things, parts, measures = map(_words, (_MODULES, _THINGS, _PARTS, _MEASURES))
    for n in range(count):
        m, rest = n % len(modules), n // len(modules)
        t, p = rest % len(things), rest // len(things)
        part, number = parts[p % len(parts)], p // len(parts)
        names = [modules[m][0], things[t][0], part[0], str(number) if number else ""]
        comment = modules[m][1] + things[t][1] + part[1] if n % 3 else None
        owner = "_".join((modules[m][0], things[t][0])) if p else None
        measured = [measures[(n + step) % len(measures)] for step in range(2)]
        yield _table(
            "_".join(filter(None, names)),
            comment,
            things[t],
            owner,
            measured,
            is_commented=n % 2 == 0,
        )


def _table(
    name: str,
    comment: str | None,
    thing: tuple[str, str],
    owner: str | None,
    measured: list[tuple[str, str]],
    *,
    is_commented: bool,
) -> Table:
    def column(called: str, kind: str, said: str, values: tuple[str, ...] = ()) -> Column:
        is_key = called == "id"
        return Column(
            called, kind, said if is_commented else None, not is_key, values, bool(values)
        )

    columns = [
        column("id", "bigint", "编号"),
        column(f"{thing[0]}_code", "text", f"{thing[1]}编码"),
        column(f"{thing[0]}_name", "text", f"{thing[1]}名称"),
        column("status", "text", "状态", _STATES if is_commented else ()),
        column("city", "text", "城市", _CITIES if is_commented else ()),
        *(column(en, "numeric(12,2)", zh) for en, zh in measured),
        column("created_at", "timestamp without time zone", "创建时间"),
        column(f"{thing[0]}_date", "date", f"{thing[1]}日期"),
        column("remark", "text", "备注"),
    ]
    keys: tuple[ForeignKey, ...] = ()
    if owner is not None:
        columns.insert(1, column(f"{thing[0]}_id", "bigint", f"所属{thing[1]}"))
        keys = (ForeignKey((f"{thing[0]}_id",), (_SCHEMA, owner), ("id",)),)
    return Table(
        _SCHEMA, name, "table", tuple(columns), comment, primary_key=("id",), foreign_keys=keys
    )


def statements(catalog: Catalog) -> Iterator[str]:
    """Yield for each table of the catalogue, SQL that creates it in an empty database, with rows if
    it has values.
    """
    for table in catalog.tables:
        columns = ", ".join(
            f"{column.name} {column.type}{' PRIMARY KEY' if column.name == 'id' else ''}"
            for column in table.columns
        )
        keys = "".join(
            f", FOREIGN KEY ({key.columns[0]}) REFERENCES {key.target[1]} (id)"
            for key in table.foreign_keys
        )
        comments = [f"COMMENT ON TABLE {table.name} IS '{table.comment}'"] if table.comment else []
        comments += [
            f"COMMENT ON COLUMN {table.name}.{column.name} IS '{column.comment}'"
            for column in table.columns
            if column.comment
        ]
        rows = [_rows(table)] if any(column.values for column in table.columns) else []
        yield ";".join((f"CREATE TABLE {table.name} ({columns}{keys})", *comments, *rows))


def _rows(table: Table) -> str:
    return (
        f"INSERT INTO {table.name} (id, status, city) SELECT n, "
        f"('{{{','.join(_STATES)}}}'::text[])[n % 6 + 1],"
        f" ('{{{','.join(_CITIES)}}}'::text[])[n % 8 + 1] FROM generate_series(1, 24) AS n"
    )


@contextmanager
def database_of(data_dir: Path, name: str, tables: int, *more: str) -> Iterator[str]:
    """Make a database of that many made-up tables, removed afterwards; gives its URL.

    Args:
        more: statements that are run after its tables are made.
    """
    server = EmbeddedServer.acquire(data_dir)
    try:
        _execute(server.admin_url, f"DROP DATABASE IF EXISTS {name}", f"CREATE DATABASE {name}")
        url = make_dsn(server.admin_url, dbname=name)
        made = list(statements(synthetic_catalog(tables))) if tables else []
        chunks = [made[at : at + _TABLES_AT_ONCE] for at in range(0, len(made), _TABLES_AT_ONCE)]
        _execute(url, *(";".join(chunk) for chunk in chunks), *more)
        yield url
        _execute(server.admin_url, f"DROP DATABASE {name} WITH (FORCE)")
    finally:
        server.release()


def _execute(url: str, *queries: str) -> None:
    connection: Any = psycopg2.connect(url)
    with closing(connection), connection.cursor() as cursor:
        connection.autocommit = True
        for query in queries:
            cursor.execute(query)
