"""The three tools by which a model says what it wants next, in place of one that runs SQL.

They are tools like all others, so that permission, arguments, transforms, limits and audit hold for
them too. Each question has its own, because they work on its `Scratchpad`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pydantic import Field

from agent.flows.tool_graph.scratchpad import AcceptedStatement, Scratchpad
from agent.tools.run_sql import NAME as RUN_SQL
from agent.tools.run_sql import RunSql, not_valid, sql_result
from agent.tools.tool import EVERYONE, Arguments, Tool, ToolContext, ToolResult, failed_result_of
from agent.tools.tool_context import ToolAgentContext
from common.errors import CituError, ForbiddenStatement, InvalidSql, LlmUnavailable
from common.inquiry import Inquiry
from common.text import Text
from common.values import NoSql, PlanEstimate, Usage
from knowledge.language.safe_text import block, one_line

SCHEMA, GENERATE, EXECUTE = "query_schema_metadata", "generate_sql", "execute_current_sql"

_NO_SQL = "no_sql"
_FAILED = LlmUnavailable.error_type
_NOTHING_TO_RUN = "nothing_to_run"
_LIMIT = "limit_reached"
_MOST_TABLES = 6  # of one call; each takes up to some thousand tokens
_MOST_INSTRUCTION = 2_000  # characters
_MOST_SQL = 8_000  # characters of a written statement that the model is shown
_MOST_SCANS = 8  # tables of a plan that are named
_MOST_EXPLANATION = 600  # characters
_TOO_MANY_TABLES = (
    f"Only the first {_MOST_TABLES} tables are described; ask for the others in another call."
)

_ACCEPTED = Text(
    "SQL 验证通过，预计 {} 行，成本 {}", "The SQL is valid; estimate: {} rows, cost {}"
)
_ACCEPTED_UNTOLD = Text("SQL 验证通过", "The SQL is valid")
_RAN_BEFORE = Text("这条 SQL 已经执行过", "This SQL has been run before")
_NOT_WRITTEN = Text("未能生成 SQL", "No SQL could be written")
_NO_CALL_LEFT = Text(
    "模型调用次数不足，无法另行生成 SQL", "No call of the model is left to have SQL written"
)
_NOTHING = Text("没有可执行的 SQL", "There is no SQL to run")


class QuerySchema(Arguments):
    """The arguments of `query_schema_metadata`."""

    tables: list[str] | None = Field(
        None, description="Names of tables to describe, qualified or not."
    )
    words: str | None = Field(
        None, description="Words to find tables by, when their names are not known."
    )


class GenerateSql(Arguments):
    """The arguments of `generate_sql`."""

    instruction: str = Field(
        max_length=_MOST_INSTRUCTION,
        description="What the statement is to find out, in one or two sentences.",
    )
    sql: str | None = Field(
        None,
        description="The statement, if you can write it: one PostgreSQL SELECT. "
        "null has it written for you.",
    )


class ExecuteCurrentSql(Arguments):
    """The arguments of `execute_current_sql`: none."""


def virtual_tools(
    agent_context: ToolAgentContext, scratchpad: Scratchpad, *, samples: bool
) -> tuple[Tool[Any], ...]:
    """Build the tools of one question.

    Whoever may not call `run_sql` may not have a statement planned or run in other ways either.

    Args:
        samples: whether a model may be told stored values that it did not select.
    """
    runners = agent_context.registry.groups(RUN_SQL)
    return (
        _query_schema(agent_context, scratchpad),
        replace(_generate_sql(agent_context, scratchpad), groups=runners),
        replace(_execute_current_sql(scratchpad, samples=samples), groups=runners),
    )


def _query_schema(agent_context: ToolAgentContext, scratchpad: Scratchpad) -> Tool[QuerySchema]:
    """Build the tool upon those that read the catalogue; it takes the right to call both."""
    actor = agent_context.session.question.actor
    describe = agent_context.registry.find("describe_table", actor)
    search = agent_context.registry.find("search_schema", actor)

    async def run(context: ToolContext, arguments: QuerySchema) -> ToolResult:
        names = _table_names(arguments)
        calls = [(describe, {"table": name}) for name in names[:_MOST_TABLES]]
        words = _search_words(arguments, names, context)
        if words:
            calls.append((search, {"words": words}))

        results = await _all_looked_up(calls, agent_context, context)
        succeeded = [result for result in results if result.error_type is None]
        if succeeded:
            scratchpad.was_shown_tables()

        first = (succeeded or results)[0]
        return replace(first, text=_joined_texts(results, len(names)))

    may_call_both = describe is not None and search is not None
    return Tool(
        SCHEMA,
        Text("查询表结构", "Look at the schema"),
        "Describes tables from the catalogue: columns, types, comments, keys, known values. "
        "Give names of tables, or words to find tables by. It takes no SQL.",
        QuerySchema,
        run,
        frozenset({EVERYONE}) if may_call_both else frozenset(),
    )


def _joined_texts(results: Sequence[ToolResult], count: int) -> str:
    """Join what was looked up; `count` tables were named, of which some may be left out."""
    texts = [result.text for result in results]
    if count > _MOST_TABLES:
        texts.append(_TOO_MANY_TABLES)

    return "\n\n".join(texts)


def _table_names(arguments: QuerySchema) -> list[str]:
    names = arguments.tables or ()
    return [name for name in names if name.strip()]


def _search_words(arguments: QuerySchema, names: Sequence[str], context: ToolContext) -> str:
    """Return the words to search by; without words and names, those of the question."""
    words = (arguments.words or "").strip()
    if words or names:
        return words

    return context.question.question


async def _all_looked_up(
    calls: Sequence[tuple[Tool[Any] | None, Mapping[str, Any]]],
    agent_context: ToolAgentContext,
    context: ToolContext,
) -> list[ToolResult]:
    results = []
    for tool, arguments in calls:
        if tool is not None:
            results.append(await _looked_up(tool, arguments, agent_context, context))

    return results


async def _looked_up(
    tool: Tool[Any],
    fields: Mapping[str, Any],
    agent_context: ToolAgentContext,
    context: ToolContext,
) -> ToolResult:
    try:
        arguments = await agent_context.registry.transformed(
            tool, tool.arguments.model_validate(fields), context
        )
        return await tool.run(context, arguments)
    except CituError as error:
        return failed_result_of(error)


def _generate_sql(agent_context: ToolAgentContext, scratchpad: Scratchpad) -> Tool[GenerateSql]:
    async def run(context: ToolContext, arguments: GenerateSql) -> ToolResult:
        sql = (arguments.sql or "").strip()
        is_written = not sql
        if is_written:
            written = await _written(arguments.instruction, agent_context, scratchpad)
            if isinstance(written, ToolResult):
                return written

            sql = written

        given_sql, sql = sql, await _transformed(sql, agent_context, context)
        try:
            plan = await context.database.explain(sql)
        except InvalidSql as error:
            return await not_valid(error, sql, context.database)

        scratchpad.statement = AcceptedStatement(arguments.instruction, sql, plan)
        is_new = is_written or sql != given_sql
        return _accepted_result(scratchpad.statement, scratchpad.runs.get(sql), is_new=is_new)

    return Tool(
        GENERATE,
        Text("生成并验证 SQL", "Write and prove SQL"),
        "Puts one read-only SQL statement up for execution. It is checked at once, by rules about "
        "what may be read and by PostgreSQL's planner; the result says whether it is accepted, or "
        "what is wrong with it. It replaces the statement before.",
        GenerateSql,
        run,
    )


async def _transformed(sql: str, agent_context: ToolAgentContext, context: ToolContext) -> str:
    """Return the statement as transforms change that of `run_sql`, in whose place it is run."""
    run_sql = agent_context.registry.find(RUN_SQL, context.question.actor)
    assert run_sql is not None, "who may not call it may not call this tool either"
    changed: RunSql = await agent_context.registry.transformed(run_sql, RunSql(sql=sql), context)
    return changed.sql


async def _written(
    instruction: str, agent_context: ToolAgentContext, scratchpad: Scratchpad
) -> str | ToolResult:
    """Have the model write the statement; return a result that says why when it writes none."""
    session = agent_context.session
    inquiry = scratchpad.inquiry
    # The answer needs a call of the model as well.
    if session.is_last_model_call or session.limit_before_model() is not None:
        return ToolResult(f"{_LIMIT}: {_NO_CALL_LEFT.en}", _NO_CALL_LEFT, _LIMIT)

    assert inquiry is not None, "the tool is offered once the schema is known"
    try:
        reply = await agent_context.skills.write_sql(_narrowed(inquiry, instruction))
    except ForbiddenStatement as error:
        session.spend(error.usage)
        raise
    except LlmUnavailable:
        session.spend(Usage(1))
        raise

    session.spend(reply.usage)
    # A statement by rules is not what the model asked for.
    if agent_context.skills.name == agent_context.rules.name:
        return ToolResult(f"{_FAILED}: write the statement yourself.", _NOT_WRITTEN, _FAILED)

    draft = reply.value
    if isinstance(draft, NoSql):
        explanation = f"{_NO_SQL}: {draft.reason}: {one_line(draft.prompt, _MOST_EXPLANATION)}"
        return ToolResult(explanation, _NOT_WRITTEN, _NO_SQL)

    return draft.text


def _narrowed(inquiry: Inquiry, instruction: str) -> Inquiry:
    """Return the inquiry about one step of the question."""
    if instruction.strip() == inquiry.question.strip():
        return inquiry

    return replace(inquiry, question=f"{instruction}\n(for the question: {inquiry.question})")


def _accepted_result(
    statement: AcceptedStatement, ran_by: str | None, *, is_new: bool
) -> ToolResult:
    lines = ["accepted: PostgreSQL can run this statement."]
    if statement.plan.is_shown:
        lines.append(_plan_text(statement.plan))
    if is_new:
        lines.append(f"<sql>\n{block(statement.sql, _MOST_SQL)}\n</sql>")
    if ran_by is not None:
        lines.append(f"It was run by the call {ran_by}; use that result.")
        return ToolResult("\n".join(lines), _RAN_BEFORE)

    lines.append(f"Call {EXECUTE} to run it.")
    if not statement.plan.is_shown:
        return ToolResult("\n".join(lines), _ACCEPTED_UNTOLD)

    numbers = (f"{statement.plan.rows:,}", f"{statement.plan.total_cost:,.0f}")
    return ToolResult(
        "\n".join(lines), Text(_ACCEPTED.zh.format(*numbers), _ACCEPTED.en.format(*numbers))
    )


def _plan_text(plan: PlanEstimate) -> str:
    scans = ", ".join(one_line(name, 128) for name in plan.scans[:_MOST_SCANS])
    estimate = f"Estimate: {plan.rows} rows, cost {plan.total_cost:.0f}"
    return f"{estimate}, reads {scans}" if scans else estimate


def _execute_current_sql(scratchpad: Scratchpad, *, samples: bool) -> Tool[ExecuteCurrentSql]:
    async def run(context: ToolContext, _arguments: ExecuteCurrentSql) -> ToolResult:
        statement = scratchpad.to_run
        if statement is None:
            return ToolResult(
                f"{_NOTHING_TO_RUN}: call {GENERATE} first.", _NOTHING, _NOTHING_TO_RUN
            )

        scratchpad.runs[statement.sql] = context.call_id  # once, also when it fails
        return await sql_result(EXECUTE, statement.sql, context, samples=samples, is_planned=True)

    return Tool(
        EXECUTE,
        Text("执行已验证的 SQL", "Run the proven SQL"),
        f"Runs the statement that {GENERATE} accepted, once, and gives the first rows.",
        ExecuteCurrentSql,
        run,
    )
