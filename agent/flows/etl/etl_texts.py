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
UNPROVEN = Text("草稿未构建、未测试：{}", "The draft was neither built nor tested: {}")
WAITING = Text("正在等待其他草稿构建完成…", "Waiting for other drafts to be built…")
BUILT = Text(
    "{target} 由 {models} 个模型构成，在样本上有 {rows} 行。",
    "{target} is made of {models} models and has {rows} rows on the sample.",
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
ASSUMED_OF = Text("{text}（{figures}）", "{text} ({figures})")
