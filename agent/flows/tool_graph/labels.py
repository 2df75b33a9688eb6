"""How each step of the graph is shown: names, icons and details, in both languages."""

from collections.abc import Mapping

from agent.flows.flow import StepDescription, StepLabel
from agent.flows.tool_graph.state import ToolGraphUpdate
from common.text import Text

_WORKING = Text("处理中", "Working")
_DONE = Text("完成", "Done")


def _initialized(update: ToolGraphUpdate) -> StepDescription:
    if "limit" in update:
        return StepDescription(Text("无法继续", "The question can't go on"), update["limit"])

    return StepDescription(Text("已读取会话与权限", "Conversation and rights are known"), _DONE)


def _searched(_update: ToolGraphUpdate) -> StepDescription:
    return StepDescription(
        Text("已整理相关经验与表结构", "Experience and schema are at hand"), _DONE
    )


def _thought(update: ToolGraphUpdate) -> StepDescription:
    if "limit" in update:
        return StepDescription(
            Text("到达上限，以已有结果回答", "At a limit; answering with what was found"),
            update["limit"],
        )
    if "is_answered" in update:
        return StepDescription(Text("回答已生成", "The answer is written"), _DONE)

    names = ", ".join(call.spelled_name for call in update["pending"])
    return StepDescription(
        Text(f"下一步: {names}", f"Next: {names}"), Text("已决定下一步", "The next step is decided")
    )


def _called(update: ToolGraphUpdate) -> StepDescription:
    """Describe the calls' results; of several, by the summary of the last."""
    steps = update["steps"]
    if not steps:
        return StepDescription(Text("没有执行任何调用", "No call was run"), _DONE)

    count = len(steps)
    count_text = Text(f"{count} 次调用", f"{count} {'call' if count == 1 else 'calls'}")
    return StepDescription(steps[-1].summary, count_text)


def _has_failed(update: ToolGraphUpdate) -> bool:
    return bool(update["steps"]) and all(step.error_type is not None for step in update["steps"])


def _saved(update: ToolGraphUpdate) -> StepDescription:
    if update.get("is_kept"):
        return StepDescription(
            Text(
                "回答后保存为待确认的示例", "To be kept as an example that somebody has to confirm"
            ),
            _DONE,
        )

    return StepDescription(Text("没有需要保存的内容", "Nothing to keep"), _DONE)


def _finalized(_update: ToolGraphUpdate) -> StepDescription:
    return StepDescription(Text("响应结果已整理", "The answer is put together"), _DONE)


LABELS: Mapping[str, StepLabel] = {
    "initialize": StepLabel(
        Text("准备", "Preparing"),
        "🧭",
        "initializing",
        "initialized",
        StepDescription(
            Text("正在读取会话与权限", "Reading the conversation and what may be read"), _WORKING
        ),
        _initialized,
    ),
    "memory_search": StepLabel(
        Text("检索记忆", "Searching memory"),
        "🧠",
        "memory_searching",
        "memory_searched",
        StepDescription(
            Text("正在检索相似的问题", "Looking for what is known about such questions"), _WORKING
        ),
        _searched,
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
    "get_schema": StepLabel(
        Text("查询表结构", "Looking at the schema"),
        "📚",
        "schema_reading",
        "schema_read",
        StepDescription(Text("正在读取表结构", "Reading tables from the catalogue"), _WORKING),
        _called,
        _has_failed,
    ),
    "generate_sql": StepLabel(
        Text("生成SQL查询", "Writing SQL"),
        "🔧",
        "sql_generating",
        "sql_generated",
        StepDescription(
            Text("正在生成并验证SQL", "Writing and proving the SQL"), Text("生成中", "Writing")
        ),
        _called,
        _has_failed,
    ),
    "execute_sql": StepLabel(
        Text("执行数据查询", "Running the query"),
        "⚙️",
        "sql_executing",
        "sql_executed",
        StepDescription(
            Text("正在执行查询", "Running the query read-only"), Text("执行中", "Running")
        ),
        _called,
        _has_failed,
    ),
    "save_memory": StepLabel(
        Text("保存经验", "Keeping what was learnt"),
        "💾",
        "memory_saving",
        "memory_saved",
        StepDescription(
            Text("正在判断是否值得保存", "Deciding whether there is something to keep"), _WORKING
        ),
        _saved,
    ),
    "execute_tools": StepLabel(
        Text("调用工具", "Calling tools"),
        "🛠️",
        "tools_running",
        "tools_done",
        StepDescription(Text("正在调用工具", "Calling tools"), _WORKING),
        _called,
        _has_failed,
    ),
    "finalize": StepLabel(
        Text("整理结果", "Putting the answer together"),
        "📝",
        "finalizing",
        "finalized",
        StepDescription(
            Text("正在整理回答", "Putting the answer together"), Text("即将完成", "Almost done")
        ),
        _finalized,
    ),
}
