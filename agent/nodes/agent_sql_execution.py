"""Step 3 of a data question: run the proven SQL, and put the rows into words."""

from langgraph.runtime import Runtime

from agent.context import Context, emitter, inquiry_of
from agent.skills import Inquiry
from agent.state import State, Update
from common.errors import LlmUnavailable
from common.text import Lang, Text
from common.values import QueryResult, Thought

_NO_SUMMARY = Text("摘要生成失败，仅返回查询结果。", "The summary could not be written; the rows are complete.")


async def agent_sql_execution(state: State, runtime: Runtime[Context]) -> Update:
    """Runs `state["sql"]`.

    Raises:
        QueryTimeout, InvalidSql, DatabaseUnavailable: it could not be run to its end.
    """
    context = runtime.context
    result = await context.database.run(state["sql"])
    update: Update = {"query_result": result, "execution_path": ["agent_sql_execution"]}
    if context.behaviour.result_summary and result.rows:
        thought = await _summary(state, runtime, result)
        update |= {"summary": thought.value, "usage": thought.usage, "warnings": list(thought.warnings)}
    return update


async def _summary(state: State, runtime: Runtime[Context], result: QueryResult) -> Thought[str]:
    context = runtime.context
    inquiry: Inquiry = inquiry_of(state, await context.database.catalog())
    # A single value needs no model to be said, and a model could only say it wrong.
    skills = context.rules if _is_single_value(result) else context.skills
    try:
        return await skills.summarize(inquiry, state["sql"], result, emitter(state, runtime))
    except LlmUnavailable:
        return Thought(row_count_sentence(result, inquiry.lang), warnings=(_NO_SUMMARY.to(inquiry.lang),))


def _is_single_value(result: QueryResult) -> bool:
    return result.row_count == 1 and len(result.columns) == 1


def row_count_sentence(result: QueryResult, lang: Lang) -> str:
    """The plainest true answer: how many rows there are."""
    if not result.rows:
        return Text("查询执行完成，没有符合条件的记录。", "The query ran; no rows match.").to(lang)
    if result.is_limited:
        zh = f"查询执行完成，仅显示前 {result.row_count} 条记录。"
        return Text(zh, f"The query ran; only the first {result.row_count} rows are shown.").to(lang)
    zh = f"查询执行完成，共返回 {result.row_count} 条记录。"
    plural = "" if result.row_count == 1 else "s"
    return Text(zh, f"The query ran and returned {result.row_count} row{plural}.").to(lang)
