"""How each step of the loop is shown: names, icons and details, in both languages."""

from collections import Counter
from collections.abc import Mapping

from agent.flows.flow import StepDescription, StepLabel
from agent.flows.tool_loop.state import ToolLoopUpdate
from common.text import Text

_DONE = Text("完成", "Done")


def _prepared(update: ToolLoopUpdate) -> StepDescription:
    inquiry = update["inquiry"]
    tables, turns = len(inquiry.catalog.tables), len(inquiry.history)
    return StepDescription(
        Text(f"可查询 {tables} 个表", f"{tables} tables can be queried"),
        Text(f"参考之前的 {turns} 轮对话", f"{turns} earlier turns are known") if turns else _DONE,
    )


def _thought(update: ToolLoopUpdate) -> StepDescription:
    if "limit" in update:
        return StepDescription(update["limit"], Text("停止", "Stopped"))

    calls = update["reply"].tool_calls
    if not calls:
        return StepDescription(Text("回答已生成", "The answer is written"), _DONE)

    named = ", ".join(
        f"{name} × {count}" if count > 1 else name for name, count in _calls_by_tool(update).items()
    )
    return StepDescription(
        Text(f"需要调用工具: {named}", f"Tools are needed: {named}"), Text("继续", "Going on")
    )


def _calls_by_tool(update: ToolLoopUpdate) -> Counter[str]:
    return Counter(call.spelled_name for call in update["reply"].tool_calls)


def _used(update: ToolLoopUpdate) -> StepDescription:
    failures = update["failures"]
    failed = Text(f"{failures} 次调用没有成功", f"{failures} of the calls failed")
    return StepDescription(
        Text("工具已返回结果", "The tools have given their results"),
        update.get("limit", failed if failures else _DONE),
    )


def _finalized(_update: ToolLoopUpdate) -> StepDescription:
    return StepDescription(Text("回答已核对", "The answer's figures are checked"), _DONE)


LABELS: Mapping[str, StepLabel] = {
    "prepare": StepLabel(
        Text("准备", "Preparing"),
        "📋",
        "preparing",
        "prepared",
        StepDescription(
            Text("正在查看数据库结构和之前的对话", "Looking at the schema and the conversation"),
            _DONE,
        ),
        _prepared,
    ),
    "think": StepLabel(
        Text("思考", "Thinking"),
        "🤔",
        "thinking",
        "thought",
        StepDescription(
            Text("正在决定下一步", "Deciding what to do next"), Text("思考中", "Thinking")
        ),
        _thought,
    ),
    "use_tools": StepLabel(
        Text("调用工具", "Using tools"),
        "🛠️",
        "tools_running",
        "tools_used",
        StepDescription(Text("正在调用工具", "Calling tools"), Text("执行中", "Running")),
        _used,
    ),
    "finalize": StepLabel(
        Text("整理结果", "Putting the answer together"),
        "📝",
        "finalizing",
        "finalized",
        StepDescription(
            Text("正在核对回答中的数字", "Checking the answer's figures"),
            Text("即将完成", "Almost done"),
        ),
        _finalized,
    ),
}
