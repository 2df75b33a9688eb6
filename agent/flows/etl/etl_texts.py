"""What the flow says of a draft, in both languages."""

from collections.abc import Mapping

from common.text import Text

SEPARATOR = Text("", " ")
STATUS: Mapping[str, Text] = {
    "proven": Text(
        "草稿已构建，全部测试通过，各项合计一致。",
        "The draft is built, all tests pass and every total reconciles.",
    ),
    "unproven": Text("草稿已生成，但没有经过构建和测试。", "The draft is written, but not proven."),
    "failed": Text("草稿没有通过检查，请勿使用。", "The draft failed its checks; don't use it."),
    "needs_input": Text("还需要您的决定：", "Something is left for you to decide:"),
    "not_possible": Text("无法构建：", "This can't be built:"),
    "cancelled_by_user": Text("请求已按您的选择放弃。", "The request was given up, as you chose."),
}
REFUSED = Text("没有采用您修改的 SQL：{}", "Your SQL was not taken over: {}")
NOT_REMEMBERED = Text(
    "暂时读不到之前的对话，这次请求按新的请求处理。",
    "The conversation can't be read at the moment, so this is taken as a new request.",
)
UNPROVEN = Text("草稿未构建、未测试：{}", "The draft was neither built nor tested: {}")
WAITING = Text("正在等待其他草稿构建完成…", "Waiting for other drafts to be built…")
BUILT = Text(
    "“{target}”由 {models} 个模型构成，在样本上有 {rows} 行。",
    "Models of {target}: {models}; its rows on the sample: {rows}.",
)
GRAIN = Text("每行对应一个 {grain}。", "Each row is one {grain}.")
SAMPLED = Text("只取了部分数据的表：{tables}。", "Tables of which only a part was read: {tables}.")
TESTS = Text("{passed} 项测试通过。", "{passed} tests pass.")
TESTS_FAILED = Text("{failed} 项测试失败：{named}。", "{failed} tests fail: {named}.")
MUTANTS = Text(
    "对模型做了 {tried} 处破坏，测试发现 {caught} 处，{equivalent} 处等价。",
    "Of {tried} broken models the tests noticed {caught}; {equivalent} are equivalent.",
)
SURVIVORS = Text(
    "{count} 处破坏没有被测试发现，见 evidence.mutants.survivors。",
    "{count} broken models went unnoticed: see evidence.mutants.survivors.",
)
ASSUMED = Text("假设：{texts}", "Assumed: {texts}")
MODEL_DOWN = Text(
    "大模型没有参与其余步骤，由规则完成：{}",
    "The model took no further part; rules did the rest: {}",
)
MODEL_LIMIT = Text("{}其余步骤由规则完成。", "{} Rules did the rest.")
MODEL_GAVE_NOTHING = Text(
    "{} 的大模型没有交出可用的结果，由规则完成。",
    "The model handed in nothing usable as {}; rules did its work.",
)
READ_BY_MODEL = Text(
    "需求由大模型解读，规则只检查了它能否执行；请核对各步骤：{}",
    "A model read the request; rules only checked that it can be done. Check its steps: {}",
)
READ_OTHERWISE = Text(
    "大模型对需求的理解与规则不同（以规则为准）：{}",
    "The model reads the request in another way (the rules' reading counts): {}",
)
PLAN_NOT_TAKEN = Text(
    "没有采用大模型设计的模型，改用规则的设计。",
    "The model's plan was not taken; the rules' plan is used.",
)
SQL_NOT_TAKEN = Text(
    "没有采用大模型编写的 SQL：{}；改用规则生成的 SQL。",
    "The model's SQL was not taken: {}. The SQL is the rules'.",
)
NOT_COMPARABLE = Text("没有可用于比对的数据库", "there is no database to compare it in")
FURTHER = Text(
    "规则无法表达需求的这一部分：{step}。它由大模型编写的 SQL 完成（来源是规则的目标表）："
    "测试只检查列、粒度和可重复性，不能说明各行正确，请自行核对。",
    "Rules can't say this part of the request: {step}. SQL that a model wrote does it, over the "
    "table that the rules make: tests check its columns, its grain and that it builds the same "
    "again, not that its rows are right. Check it.",
)
FURTHER_UNCOMPARED = Text(
    "{} 的各行没有可以比对的结果，草稿因此不算经过证明。",
    "There is nothing to compare the rows of {} with, so the draft does not count as proven.",
)
FURTHER_MISSING = Text(
    "缺少需求的最后一步：{}。草稿只到它之前为止。",
    "The last step of the request is missing: {}. The draft ends with the step before it.",
)
TRIED_OFTEN = Text("{} 次尝试都没有通过测试", "its {} attempts did not pass the tests")
CASE_DIFFERS = Text(
    "大模型的测试样例“{}”与需求的含义不一致，没有采用。",
    "The model's test case “{}” disagrees with what the request means; it was not taken.",
)
ASSUMED_OF = Text("{text}（{figures}）。", "{text} ({figures}).")
DECIDED_BY_YOURS = Text(
    "{prompt} {label}（依据您认可过的同一请求的草稿）",
    "{prompt} {label} (as in a draft of the same request that you were satisfied with)",
)
DECIDED_BY_REVIEWED = Text(
    "{prompt} {label}（依据经审核的同一请求的草稿）",
    "{prompt} {label} (as in a reviewed draft of the same request)",
)
NOT_TESTED = Text(
    "没有采用您最后修改的 SQL：一次请求最多测试 {most} 次修改。",
    "Your last SQL was not taken over: at most {most} changes of a draft are tested.",
)
NOT_LEARNING = Text(
    "已记录评价；本服务已关闭学习（LEARNING=false）。",
    "The rating is kept; this service does not learn (LEARNING).",
)
UNKNOWN_USER = Text(
    "已记录评价，但没有学习：没有 API 密钥时，任何人都可能以这个用户的名义说话。",
    "The rating is kept and nothing was learnt: without an API key, anybody could speak in this "
    "user's name.",
)
NOT_KEPT = Text(
    "评价已收到，但没有学习：{reason}", "The rating was taken, but nothing was learnt: {reason}"
)
LEARNT_FULL = Text(
    "已记录评价，但没有学习：保存的例子已达上限。",
    "The rating is kept and nothing was learnt: the limit of kept examples is reached.",
)
NO_REFERENCE = Text(
    "已记录评价，但没有保存为例子：{reason}",
    "The rating is kept, but makes no example: {reason}",
)
TOO_LARGE = Text("草稿或请求过长。", "the draft or the request is too long.")


def with_value(text: Text, value: Text) -> Text:
    """Return the text with the value in its place."""
    return Text(text.zh.format(value.zh), text.en.format(value.en))
