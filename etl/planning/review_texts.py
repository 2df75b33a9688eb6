"""What the review says of a draft, and what helps."""

from dataclasses import dataclass

from common.text import Text
from etl.schemas.plan import ReviewCode, Severity


@dataclass(frozen=True)
class ReviewRule:
    """A code of the review with its sentences; `{}` is what it was found at."""

    code: ReviewCode
    severity: Severity
    message: Text
    suggestion: Text


_RULES = (
    ReviewRule(
        "cycle",
        "error",
        Text("节点 {} 间接读取自己。", "The node {} reads itself by way of others."),
        Text("去掉循环中的一条边。", "Remove one edge of the cycle."),
    ),
    ReviewRule(
        "orphan_node",
        "warning",
        Text("目标不需要节点 {}。", "The target does not need the node {}."),
        Text("删除它，或让目标读取它。", "Remove it, or let the target read it."),
    ),
    ReviewRule(
        "missing_node",
        "error",
        Text("输入 {} 不在计划中。", "The input {} is not in the plan."),
        Text("补上这个节点，或改读已有节点。", "Add the node, or read one that is there."),
    ),
    ReviewRule(
        "unknown_column",
        "error",
        Text("列 {} 在输入中不存在。", "The column {} is in no input."),
        Text("改用输入中的列。", "Use a column of an input."),
    ),
    ReviewRule(
        "type_mismatch",
        "error",
        Text("比较的两列类型不同：{}。", "Columns of different types are compared: {}."),
        Text("先转换其中一列。", "Cast one of them first."),
    ),
    ReviewRule(
        "cartesian",
        "error",
        Text("与 {} 的连接没有条件。", "The join with {} has no condition."),
        Text("写明连接列。", "Say by which columns they are joined."),
    ),
    ReviewRule(
        "fan_out",
        "error",
        Text(
            "连接会重复 {} 的行，度量会重复计算。",
            "Joins repeat the rows of {}, and a measure counts them again.",
        ),
        Text(
            "先按主键去重，再聚合。",
            "Deduplicate its rows by their key before they are aggregated.",
        ),
    ),
    ReviewRule(
        "grain_unstated",
        "warning",
        Text("没有列能唯一确定 {} 的一行。", "No columns identify a row of {}."),
        Text("加上来源的主键列。", "Add the key columns of its sources."),
    ),
    ReviewRule(
        "sensitive_column",
        "warning",
        Text("目标含有个人信息列 {}。", "The target has the personal column {}."),
        Text("不需要时去掉这一列。", "Leave it out unless it is needed."),
    ),
    ReviewRule(
        "no_partition_filter",
        "warning",
        Text("{} 每次都重新计算全部时间段。", "{} computes all its periods again every time."),
        Text("给出 watermark 列与回看天数。", "Give a watermark column and a lookback."),
    ),
    ReviewRule(
        "not_idempotent",
        "warning",
        Text("重复运行会使 {} 的行重复。", "Running twice repeats rows of {}."),
        Text("改用 replace 或 merge。", "Use replace or merge."),
    ),
    ReviewRule(
        "nondeterministic",
        "error",
        Text("{} 使结果不确定。", "{} makes the result nondeterministic."),
        Text(
            "给出完整的排序，不用随机数与当前时间。",
            "Sort completely; use no random numbers and no current time.",
        ),
    ),
    ReviewRule(
        "hard_coded_date",
        "error",
        Text(
            "SQL 中有需求没有提到的日期 {}。",
            "The SQL has the date {}, which the request does not name.",
        ),
        Text("改为变量。", "Make it a variable."),
    ),
    ReviewRule(
        "select_star",
        "error",
        Text("{} 使用了 SELECT *。", "{} uses SELECT *."),
        Text("逐个写出列名。", "Name the columns."),
    ),
    ReviewRule(
        "expensive",
        "warning",
        Text(
            "数据源估计计算 {} 的代价超出其查询上限。",
            "The datasource estimates that computing {} costs more than it allows for a query.",
        ),
        Text(
            "先筛选或分批处理，或在源表的连接列上建立索引。",
            "Filter first or work in parts, or index the columns that join its sources.",
        ),
    ),
    ReviewRule(
        "sink_refused",
        "error",
        Text("不能建名为 {} 的关系。", "No relation can be named {}."),
        Text(
            "换一个不含点、斜杠和双引号、不超过 63 字节（含非 ASCII 字符时 51 字节）、"
            "不以 pg_ 开头的名称。",
            "Choose a name without dots, slashes and double quotes, of at most 63 bytes (51 where "
            "not all is ASCII), not beginning with pg_.",
        ),
    ),
    ReviewRule(
        "target_exists",
        "warning",
        Text("来源中已有名为 {} 的表。", "A source is named {} already."),
        Text(
            "建在另一个模式中，或换一个名称。",
            "Build it in another schema, or choose another name.",
        ),
    ),
)
RULES: dict[ReviewCode, ReviewRule] = {rule.code: rule for rule in _RULES}
