"""What the server of a database can do, as far as Citu depends on it."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from common.text import Text


@dataclass(frozen=True)
class Engine:
    """The program that answers.

    Attributes:
        name: such as `PostgreSQL`, `Citus`, `CockroachDB`.
        version: its own, such as `15.4`; None when it does not tell.
        extends: the version of the PostgreSQL that an extension such as Citus runs in.
    """

    name: str
    version: str | None
    extends: str | None = None

    def shown(self) -> dict[str, Any]:
        """Return the engine as answers show it: `postgresql` is the version that it extends."""
        engine = {"name": self.name, "version": self.version}
        if self.extends is not None:
            engine["postgresql"] = self.extends

        return engine


UNKNOWN_ENGINE = Engine("PostgreSQL", None)
"""Of a server that has not told what it is: it speaks PostgreSQL's protocol."""


class Need(StrEnum):
    """A behaviour that must hold before a statement is run."""

    ANSWER = "answer"
    SETTINGS = "settings"
    STRINGS = "strings"
    READ_ONLY = "read_only"
    ONE_STATEMENT = "one_statement"
    TIMEOUT = "timeout"
    CANCEL = "cancel"


class Lack(StrEnum):
    """A feature that an engine may be without, because something else takes its place."""

    PLAN_FORMAT = "explain_json"
    PLAN_COSTS = "plan_costs"
    BLOCKS = "do_blocks"
    VOLATILITY = "provolatile"


_NEEDS: Mapping[Need, Text] = {
    Need.ANSWER: Text(
        "它没有在几秒内回答探测语句", "it did not answer the probe's statements within seconds"
    ),
    Need.SETTINGS: Text(
        "它不保留会话设置（例如事务级连接池）",
        "it does not keep a session's settings, as behind a pooler that changes the server between"
        " transactions",
    ),
    Need.STRINGS: Text(
        "它读取字符串、注释或引号的方式与 PostgreSQL 不同（standard_conforming_strings 必须为 on）",
        "it reads strings, comments or quotes otherwise than PostgreSQL does"
        " (standard_conforming_strings must be on)",
    ),
    Need.READ_ONLY: Text(
        "它在只读（READ ONLY）事务中允许写入", "it lets writes pass in a READ ONLY transaction"
    ),
    Need.ONE_STATEMENT: Text(
        "它在只应有一条查询的地方执行多条语句",
        "it runs several statements where there may be but one query",
    ),
    Need.TIMEOUT: Text("它不遵守 statement_timeout", "it does not obey statement_timeout"),
    Need.CANCEL: Text(
        "它收到取消请求后不停止语句", "it does not stop a statement that is cancelled"
    ),
}

_LACKS: Mapping[Lack, Text] = {
    Lack.PLAN_FORMAT: Text(
        "该数据库不支持 EXPLAIN (FORMAT JSON)：改用普通 EXPLAIN 检查语句，没有成本估计，"
        "MAX_PLAN_COST 和 MAX_PLAN_ROWS 不起作用。",
        "This database has no EXPLAIN (FORMAT JSON): statements are checked by a plain EXPLAIN,"
        " without estimates, so MAX_PLAN_COST and MAX_PLAN_ROWS have no effect.",
    ),
    Lack.PLAN_COSTS: Text(
        "该数据库的执行计划不含成本：MAX_PLAN_COST 不起作用，由语句超时代替。",
        "This database's plans have no costs: the statement timeout stands in for MAX_PLAN_COST.",
    ),
    Lack.BLOCKS: Text(
        "该数据库没有 DO 块：过长的错误信息不再由数据库缩短，超过上限时整条回答被拒绝。",
        "This database has no DO blocks: it does not shorten long error messages; beyond the cap"
        " the whole answer is refused.",
    ),
    Lack.VOLATILITY: Text(
        "该数据库不说明函数是否有副作用：只允许 Citu 内置清单中的函数。",
        "This database does not say which functions have side effects: only those of Citu's own"
        " list may be called.",
    ),
}


@dataclass(frozen=True)
class Capabilities:
    """The findings of a probe.

    Attributes:
        unmet: what must hold and does not; then no statement may run.
        lacks: what is missing and replaced.
    """

    engine: Engine
    unmet: frozenset[Need] = frozenset()
    lacks: frozenset[Lack] = frozenset()

    @property
    def is_fit(self) -> bool:
        """Tell whether statements may run there."""
        return not self.unmet

    @property
    def notices(self) -> tuple[Text, ...]:
        """Return a sentence for each lack, with what takes its place."""
        return tuple(_LACKS[lack] for lack in Lack if lack in self.lacks)

    def refusal(self) -> Text:
        """Return why nothing may run there."""
        reasons = [_NEEDS[need] for need in Need if need in self.unmet]
        zh = "；".join(reason.zh for reason in reasons)
        en = "; ".join(reason.en for reason in reasons)
        name = self.engine.name
        return Text(
            f"不能使用这个数据库（{name}）：{zh}。",
            f"This database ({name}) can't be used: {en}.",
        )
