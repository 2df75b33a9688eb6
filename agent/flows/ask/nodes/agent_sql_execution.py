"""Step 3 of a data question: runs the proven SQL and puts the rows into words."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace

from langgraph.runtime import Runtime

from agent.flows.ask.context import AskContext, emitter, inquiry_of
from agent.flows.ask.follow_up_offers import FollowUps
from agent.flows.ask.sql_repair import may_repair, repaired
from agent.flows.ask.state import AskState, AskUpdate
from common.errors import CituError, InvalidSql, LlmUnavailable
from common.inquiry import Inquiry, StoredValue
from common.text import Lang, Text
from common.values import PlanEstimate, QueryResult, SkillResult, Usage
from knowledge.results.result_columns import result_columns
from knowledge.results.visibility_notes import notes_on_hidden_rows, partly_closed
from knowledge.tables.name_suggestions import with_suggestions
from knowledge.values.filter_correction import (
    looks_empty,
    missing_literals,
    replacements,
    rewritten,
    taken_for,
)
from rules.answering.summarize import cuts_rows

_log = logging.getLogger(__name__)

_MOST_NAMED = 10  # columns in a warning
_NO_SUMMARY = Text(
    "摘要生成失败，仅返回查询结果。", "The summary could not be written; the rows are complete."
)


async def agent_sql_execution(state: AskState, runtime: Runtime[AskContext]) -> AskUpdate:
    """Run `state["sql"]`; if it finds nothing, try stored spellings, or ask the user.

    SQL that PostgreSQL refuses while running (a division by zero, a cast that fails) is repaired,
    unless the question has used its repair. An error of the repaired SQL goes into the state.

    Raises:
        QueryTimeout, InvalidSql, DatabaseUnavailable: the SQL could not be run.
    """
    context = runtime.context
    inquiry = inquiry_of(state, await context.database.catalog())
    async with FollowUps(inquiry, state["sql"], context) as follow_ups:
        update = await _run_or_repair(state, context)
        if "error" in update:
            return update

        update = await _with_answer(state, runtime, update, follow_ups)
        update["follow_ups"] = await follow_ups.within(context.behaviour.follow_up_wait_s)

    return update


async def _with_answer(
    state: AskState, runtime: Runtime[AskContext], update: AskUpdate, follow_ups: FollowUps
) -> AskUpdate:
    """Return the update with the final result, the notices about it, and its summary."""
    context = runtime.context
    notices = await _notices_after_retry(state, context, update)
    result = update["query_result"]
    sql = update.get("sql", state["sql"])
    if notices:
        update["notices"] = tuple(notice.to(state["lang"]) for notice in notices)
        update["warnings"] += update["notices"]

    update["warnings"] += (notice.to(state["lang"]) for notice in result.notices)
    rights = await _rights(sql, result, state["lang"], context)
    update["warnings"] += (right.to(state["lang"]) for right in rights)
    if result.cut_columns:
        update["warnings"].append(_cut_notice(result).to(state["lang"]))
    if not result.rows:  # the rules say it: a model would have nothing to tell
        inquiry = inquiry_of(state, await context.database.catalog())
        nothing = await context.rules.summarize(inquiry, sql, result)
        update["nothing_found"] = nothing.value

    follow_ups.try_for(sql, result)
    if context.behaviour.result_summary and result.rows:
        summary = await _summary(state, runtime, update, result)
        update |= {"summary": summary.value, "usage": update["usage"] + summary.usage}
        update["warnings"] += summary.warnings

    return update


async def _rights(
    sql: str, result: QueryResult, lang: Lang, context: AskContext
) -> tuple[Text, ...]:
    """Return what the answer says of rows that may be closed to its reader."""
    catalog = await context.database.catalog()
    if not result.rows or not partly_closed(sql, catalog):
        return ()

    columns = () if cuts_rows(sql) else result_columns(sql, result, catalog, lang)
    return notes_on_hidden_rows(sql, result, columns, catalog)


async def _notices_after_retry(
    state: AskState, context: AskContext, update: AskUpdate
) -> tuple[Text, ...]:
    """Return notices about the literals; where no row was found, retry with stored spellings.

    A retry that finds rows replaces the SQL, the result and the plan in `update`.
    """
    sql = update.get("sql", state["sql"])
    stored_values = state.get("found_values", ())
    notices = taken_for(sql, stored_values)
    if not context.behaviour.auto_repair or not looks_empty(update["query_result"]):
        return notices

    retry = await _retry(sql, context, stored_values)
    if retry is None:
        return notices + await _doubts(sql, context, stored_values)

    update |= {"sql": retry.sql, "query_result": retry.result}
    if retry.plan is not None:
        update["plan"] = retry.plan

    return notices + retry.notices


async def _run_or_repair(state: AskState, context: AskContext) -> AskUpdate:
    """Run the statement; when PostgreSQL refuses it, run its repair.

    Return the result, or the error of the repair.

    Raises:
        InvalidSql: PostgreSQL refuses the statement, and no repair is left.
    """
    update: AskUpdate = {
        "execution_path": ["agent_sql_execution"],
        "warnings": [],
        "usage": Usage(),
    }
    try:
        update["query_result"] = await context.database.run(state["sql"])
    except InvalidSql as error:
        catalog = await context.database.catalog()
        if not may_repair(context) or state.get("sql_repair_applied"):
            raise with_suggestions(error, state["sql"], catalog) from error

        update |= await _run_repaired(state["sql"], error, inquiry_of(state, catalog), context)

    return update


async def _run_repaired(
    sql: str, error: InvalidSql, inquiry: Inquiry, context: AskContext
) -> AskUpdate:
    """Have the statement repaired, and run it; the result or the error goes into the update."""
    repair = await repaired(sql, error, inquiry, context)
    update: AskUpdate = {
        "sql": repair.sql,
        "usage": repair.usage,
        "warnings": list(repair.warnings),
        "execution_path": ["agent_sql_execution"],
        "prompt_parts": repair.sizes,
    }
    if repair.error is None:
        try:
            update["query_result"] = await context.database.run(repair.sql)
        except InvalidSql as refusal:
            repair = repair.refused(refusal)

    if isinstance(repair.error, InvalidSql):
        repair = repair.refused(with_suggestions(repair.error, repair.sql, inquiry.catalog))
    if repair.error is not None:
        update["error"] = repair.error
    else:
        update["sql_repair_applied"] = True
        if repair.plan is not None:
            update["plan"] = repair.plan

    update["execution_path"] += [repair.path_entry]
    return update


@dataclass(frozen=True)
class _Retry:
    """The result with stored spellings, and notices about them."""

    sql: str
    result: QueryResult
    plan: PlanEstimate | None
    notices: tuple[Text, ...]


async def _retry(sql: str, context: AskContext, values: Sequence[StoredValue]) -> _Retry | None:
    """Run the query with stored spellings for the literals that no row has.

    Return None when that finds nothing either.
    """
    try:
        corrections = replacements(sql, await context.database.catalog(), values)
        if not corrections:
            return None

        sql = rewritten(sql, corrections)
        plan = await context.validate(sql)
        result = await context.database.run(sql)
    except CituError as error:  # keep the first answer: it is true
        _log.info("the retry with stored spellings failed: %s", error.error_type)
        return None

    if looks_empty(result):
        return None

    return _Retry(sql, result, plan, tuple(change.notice for change in corrections))


async def _doubts(sql: str, context: AskContext, values: Sequence[StoredValue]) -> tuple[Text, ...]:
    """Return questions to the user about texts in filters that are not stored."""
    catalog = await context.database.catalog()
    return tuple(text.notice for text in missing_literals(sql, catalog, values))


async def _summary(
    state: AskState, runtime: Runtime[AskContext], update: AskUpdate, result: QueryResult
) -> SkillResult[str]:
    """Return the rows in words, with the notices before them."""
    context = runtime.context
    inquiry: Inquiry = inquiry_of(state, await context.database.catalog())
    # The rules state a single value: a model would cost a call and might get it wrong.
    skills = context.rules if _is_single_value(result) else context.skills
    prefix = "".join(f"{notice}\n" for notice in update.get("notices", ()))
    try:
        with emitter(state, runtime) as emit:
            if emit is not None and prefix:
                emit(prefix)

            summary = await skills.summarize(inquiry, update.get("sql", state["sql"]), result, emit)
    except LlmUnavailable:
        sentence = row_count_sentence(result, inquiry.lang)
        summary = SkillResult(sentence, warnings=(_NO_SUMMARY.to(inquiry.lang),))

    return replace(summary, value=prefix + summary.value)


def _cut_notice(result: QueryResult) -> Text:
    columns = tuple(dict.fromkeys(result.cut_columns))
    return Text(
        f"结果过大，以下列中过长的内容已截短（以“…”结尾）：{_names(columns, '、')}。",
        f"The result is too large: long values were cut and end in “…” in {_names(columns, ', ')}.",
    )


def _names(columns: tuple[str, ...], separator: str) -> str:
    named = separator.join(columns[:_MOST_NAMED])
    more = len(columns) - _MOST_NAMED
    return f"{named} … (+{more})" if more > 0 else named


def _is_single_value(result: QueryResult) -> bool:
    return result.row_count == 1 and len(result.columns) == 1


def row_count_sentence(result: QueryResult, lang: Lang) -> str:
    """Return an answer that only says how many rows there are."""
    if not result.rows:
        return Text("查询执行完成，没有符合条件的记录。", "The query ran; no rows match.").to(lang)
    if result.is_limited:
        zh = f"查询执行完成，仅显示前 {result.row_count} 条记录。"
        return Text(zh, f"The query ran; only the first {result.row_count} rows are shown.").to(
            lang
        )

    zh = f"查询执行完成，共返回 {result.row_count} 条记录。"
    plural = "" if result.row_count == 1 else "s"
    return Text(zh, f"The query ran and returned {result.row_count} row{plural}.").to(lang)
