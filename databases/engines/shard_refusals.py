"""Why Citus refuses a statement across shards, and what can be written instead."""

from common.text import Text

# A part of Citus's message → what it means. The first that fits counts.
_REFUSALS: tuple[tuple[str, Text], ...] = (
    (
        "GROUPING SETS, CUBE, or ROLLUP",
        Text(
            "数据分布在多个节点：不能跨节点使用 GROUPING SETS、CUBE、ROLLUP："
            "请分别分组，再用 UNION ALL 合并。",
            "The rows lie on several nodes, where GROUPING SETS, CUBE and ROLLUP can't be computed:"
            " write one GROUP BY for each level and join them by UNION ALL.",
        ),
    ),
    (
        "with GROUPING",
        Text(
            "数据分布在多个节点：不能跨节点使用 GROUPING()：请分别分组后用 UNION ALL 合并。",
            "The rows lie on several nodes, where GROUPING() can't be computed: write one GROUP BY"
            " for each level and join them by UNION ALL.",
        ),
    ),
    (
        "recursive CTE",
        Text(
            "数据分布在多个节点：不能跨节点递归：请按分布列限定一个值，或用固定次数的连接代替递归。",
            "The rows lie on several nodes, across which a CTE can't recurse: give one value of the"
            " distribution column, or join a fixed number of times instead.",
        ),
    ),
    (
        "complex joins are only supported",
        Text(
            "数据分布在多个节点：这种连接要求各表按分布列相等来连接：请加上分布列相等的条件，"
            "或先在 WITH 中汇总其中一个表。",
            "The rows lie on several nodes: such a join needs the tables joined on equal"
            " distribution columns. Add that condition, or aggregate one of them in a CTE first.",
        ),
    ),
    (
        "cannot perform a lateral outer join",
        Text(
            "数据分布在多个节点：不能跨节点做 LATERAL 外连接：请改为普通连接或窗口函数。",
            "The rows lie on several nodes, where a lateral outer join is not possible: use a plain"
            " join or a window function.",
        ),
    ),
    (
        "outer join",
        Text(
            "数据分布在多个节点：这种外连接不受支持：外连接的外侧应是分布表，且按分布列相等来连接。",
            "The rows lie on several nodes, where this outer join is not possible: the outer side"
            " has to be a distributed table, joined on equal distribution columns.",
        ),
    ),
    (
        "correlated subquer",
        Text(
            "数据分布在多个节点：子查询引用外层时要按分布列相等：请改写为连接。",
            "The rows lie on several nodes: a subquery may refer to the outer query only by equal"
            " distribution columns. Write it as a join.",
        ),
    ),
    (
        "window function",
        Text(
            "数据分布在多个节点：窗口须按分布列分区，否则请先在 WITH 中取出所需的行。",
            "The rows lie on several nodes: a window has to be partitioned by the distribution"
            " column. Collect the rows in a CTE first, and use the window function on it.",
        ),
    ),
    (
        "subquery outside the",
        Text(
            "数据分布在多个节点：子查询只能在 FROM、WHERE、HAVING 中：请移到 FROM 中并连接。",
            "The rows lie on several nodes, where a subquery may stand in FROM, WHERE and HAVING"
            " only: move it into FROM and join it.",
        ),
    ),
    (
        "cannot push down",
        Text(
            "数据分布在多个节点：子查询不能在各节点上单独计算：请写成 WITH … AS MATERIALIZED。",
            "The rows lie on several nodes, and this subquery can't be computed on each of them:"
            " write it as WITH … AS MATERIALIZED.",
        ),
    ),
    (
        "distributed quer",
        Text(
            "数据分布在多个节点：不能跨节点执行：请按分布列限定或连接，或先在 WITH 中汇总。",
            "The rows lie on several nodes, across which this can't be computed: filter or join by"
            " the distribution column, or aggregate in a CTE first.",
        ),
    ),
)


def shard_refusal(message: str) -> Text | None:
    """Return what a message of Citus (SQLSTATE 0A000) means; None when it is not about shards."""
    for part, text in _REFUSALS:
        if part in message:
            return text

    return None
