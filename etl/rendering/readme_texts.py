"""The sentences of an artefact's README."""

from common.text import Text

WHAT = Text(
    "生成 {relation}（{kind}），数据来自 {sources}。这是一份草稿：没有向数据源写入任何内容。",
    "Builds {relation} ({kind}) from {sources}. This is a draft: nothing was written to the "
    "datasource.",
)
GRAIN = Text("粒度：每个 {grain} 一行。", "Grain: one row per {grain}.")
NO_GRAIN = Text("粒度：没有能唯一确定一行的列。", "Grain: no columns of it tell the rows apart.")
MERGE = Text(
    "增量更新：按技术列 {key} 删除再写入。第一次运行和 `--full-refresh` 计算全部行。",
    "Incremental: rows are deleted and inserted by the technical column {key}. The first run and "
    "`--full-refresh` compute all rows.",
)
COLUMNS = Text("列", "Columns")
COLUMNS_HEAD = (
    Text("列", "column"),
    Text("类型", "type"),
    Text("角色", "role"),
    Text("说明", "description"),
)
ASSUMPTIONS = Text("假设", "Assumptions")
DECIDED = {
    "default": Text("默认规则", "by default"),
    "semantic": Text("语义文件", "by the semantic file"),
    "user": Text("用户", "by the user"),
    "example": Text("已有示例", "by an example"),
}
CLARIFICATIONS = Text("提问与回答", "Questions and answers")
NONE = Text("无。", "None.")
LEDGER = Text("行数账目", "Ledger of rows")
LEDGER_SOURCE = Text("来源", "source")
LEDGER_HEAD = (
    Text("步骤", "operation"),
    Text("表", "table"),
    Text("输入行", "rows in"),
    Text("输出行", "rows out"),
    Text("过滤", "filtered"),
    Text("未匹配", "unmatched"),
    Text("重复", "repeated"),
    Text("空键", "NULL keys"),
)
TESTS = Text("测试", "Tests")
TESTS_HEAD = (
    Text("测试", "test"),
    Text("类别", "kind"),
    Text("节点", "node"),
    Text("结果", "status"),
    Text("失败行", "failures"),
)
NOT_RUN = Text("没有运行。", "Not run.")
WRITTEN = Text("写好的测试：{count} 个。", "Tests that are written: {count}.")
STATUS = Text("结果：{status}，由 {by} 构建。", "Result: {status}, built by {by}.")
MUTANTS = Text(
    "变异测试：改坏模型 {tried} 次，测试发现 {caught} 次，{equivalent} 次不影响结果，"
    "{survivors} 次未被发现。",
    "Mutants: the models were broken {tried} times; the tests noticed {caught}, {equivalent} "
    "change no result, {survivors} were not noticed.",
)
SURVIVORS = Text("未发现：", "Not noticed:")
RISKS = Text("风险", "Risks")
ALTERNATIVES = Text("其他做法", "What could be done instead")
HOW_TO_RUN = Text("如何运行", "How to run it")
RUN_DBT = Text(
    "用 dbt（1.10 或更新）：所有模型建在 `ETL_SCHEMA` 中。",
    "With dbt (1.10 or newer): all models are built in `ETL_SCHEMA`.",
)
RUN_PLAIN = Text(
    "只用 psql：建在 search_path 的第一个模式中；以前构建的同名视图和表会被替换，"
    "与之同名但种类不同的（视图或表）会使构建停止，什么也不改变。测试不返回任何行即为通过。",
    "With psql alone: built into the first schema of search_path; what an earlier build made is "
    "replaced. A view where a table is built, or a table where a view is, stops the build, and "
    "nothing is changed. A test passes when it returns no rows.",
)
VARIABLES = Text(
    "相对日期是变量：dbt 用 `--vars` 设置，psql 用设置 `etl.<名称>`"
    "（例如 `PGOPTIONS='-c etl.<名称>=2026-01-31'`）。默认值：",
    "Relative dates are variables: set by `--vars` in dbt, and by the setting `etl.<name>` in psql "
    "(`PGOPTIONS='-c etl.<name>=2026-01-31'`). Defaults:",
)
NOT_PROVEN = Text("未证明的", "What is not proven")
NOT_RUN_BEYOND = Text(
    "只在 PostgreSQL 15 和 18 上验证过，没有在其他数据仓库上试过。\n"
    "测试说明的是抽样数据和构造数据；完整数据要在目标环境中再运行一次测试。\n"
    "来源表的声明键被认为成立。",
    "Shown on PostgreSQL 15 and 18; no other warehouse has been tried.\n"
    "Tests speak of samples and made-up rows; run them again where all the data is.\n"
    "Declared keys of the sources are taken to hold.",
)
SAMPLED = Text("{table}：只用了 {of} 行中的 {rows} 行。", "{table}: {rows} of {of} rows were used.")
