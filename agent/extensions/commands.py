"""Commands such as `/help`, and the semantic file's fixed reports, also asked by their names."""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any

from agent.answers.shown_result import shown_result
from agent.extensions.points import Provided
from agent.question import Question, occasion_of
from common.errors import InvalidSql, ValidationFailed
from common.inquiry import Inquiry
from common.learning import same_question
from common.meanings import Report
from common.text import Lang, Text
from knowledge.tables.schema_service import SchemaService

_COMMAND = re.compile(r"/(\w+)\s*(.*)", re.DOTALL)
_MARKS = " ?？。.！!"  # that may end a report's name in a question
_MOST_TABLES = 20
_MOST_OFFERED = 3  # reports
_HELP = Text(
    "直接用中文或英文提问即可，例如“上个月各服务区的营业收入排行”。命令：\n{commands}{reports}",
    "Ask in English or Chinese, for example “revenue by service area last month”. "
    "Commands:\n{commands}{reports}",
)
_REPORTS = Text(
    "\n固定报表（直接输入名称或 /report 名称）：\n{names}",
    "\nReports, by their name or /report name:\n{names}",
)
_NO_REPORTS = Text(
    "没有固定报表：可以在语义文件的 reports 中定义。",
    "There are no reports; the semantic file can define some.",
)
_UNKNOWN_REPORT = Text("没有名为“{name}”的报表。", "There is no report named {name}.")
_BROKEN = Text("（现在不能用）", " (can't be used now)")
_WHY_BROKEN = Text(
    "报表“{name}”现在不能用：{why} 请告知语义文件的维护者。",
    "The report {name} can't be used now: {why} Tell who keeps the semantic file.",
)
_UNKNOWN = Text(
    "没有命令 /{name}。可用的命令：\n{commands}",
    "There is no command /{name}. Commands:\n{commands}",
)
_RESET = Text(
    "已清除本次会话的上下文，可以重新提问。",
    "What was said in this conversation is forgotten; ask anew.",
)
_NO_TABLES = Text("没有找到相关的数据表。", "No table was found.")
_TABLES = Text("数据表（共 {count} 个）：\n{names}", "Tables ({count} in all):\n{names}")


class Commands:
    """The `WorkflowHandler` of commands and fixed reports."""

    def __init__(self, provided: Provided) -> None:
        self._provided = provided
        # By database, the reports that are listed and the same by name: every question is looked
        # up in these.
        self._known: dict[str | None, tuple[Sequence[Report], Mapping[str, Report]]] = {}

    def claims(self, question: Question) -> bool:
        """Claim a text that begins with a slash and a word, and the name of a report."""
        return (
            bool(_COMMAND.fullmatch(question.question.strip()))
            or self._report(question.question, question.database) is not None
        )

    async def answer(self, question: Question) -> Mapping[str, Any]:
        """Answer a command or a report; an unknown name is answered by the names that exist."""
        command = _COMMAND.fullmatch(question.question.strip())
        if command is None:
            report = self._report(question.question, question.database)
            if report is None:
                return self._listed(question)

            return await self._run(report, question)

        name, rest = command[1].casefold(), command[2].strip()
        for names, _, act in _COMMANDS:
            if name in names:
                return await act(self, rest, question)

        lang = question.answer_lang
        return {"response": _UNKNOWN.to(lang).format(name=command[1], commands=_commands(lang))}

    async def help(self, _rest: str, question: Question) -> Mapping[str, Any]:
        lang = question.answer_lang
        names = self._names(question)
        reports = _REPORTS.to(lang).format(names=names) if names else ""
        return {"response": _HELP.to(lang).format(commands=_commands(lang), reports=reports)}

    async def reset(self, _rest: str, question: Question) -> Mapping[str, Any]:
        """Delete the conversation's turns."""
        await self._provided.store.conversations.clear(question.owner, question.conversation_id)
        return {"response": _RESET.to(question.answer_lang)}

    async def schema(self, rest: str, question: Question) -> Mapping[str, Any]:
        """List the tables that the user may read, or those that the words of `rest` find."""
        actor, lang = question.actor, question.answer_lang
        schema = SchemaService(
            partial(self._provided.database_of, name=question.database), samples=False
        )
        if rest:
            tables = await schema.search(rest, _MOST_TABLES, actor)
        else:
            tables = await schema.tables(_MOST_TABLES, None, actor)

        names = "\n".join(f"- {_table_line(table)}" for table in tables["tables"])
        if not names:
            return {"response": _NO_TABLES.to(lang)}

        return {"response": _TABLES.to(lang).format(count=tables["table_count"], names=names)}

    async def report(self, rest: str, question: Question) -> Mapping[str, Any]:
        """Run the report of that name; without a name, list the names of all."""
        planned = self._report(rest, question.database)
        if planned is not None:
            return await self._run(planned, question)

        listed = self._listed(question)
        if not rest:
            return listed

        unknown = _UNKNOWN_REPORT.to(question.answer_lang).format(name=rest)
        return {**listed, "response": f"{unknown}\n{listed['response']}"}

    def _listed(self, question: Question) -> Mapping[str, Any]:
        """Return the names of all reports, the first of them to be asked at once."""
        names = self._names(question)
        if not names:
            return {"response": _NO_REPORTS.to(question.answer_lang)}

        reports = self._provided.reports(question.database)
        first = [report for report in reports if not report.is_broken][:_MOST_OFFERED]
        offered = [report.names.label(question.answer_lang) or report.name for report in first]
        return {"response": names, "follow_ups": offered}

    def _names(self, question: Question) -> str:
        lang = question.answer_lang
        reports = self._provided.reports(question.database)
        return "\n".join(f"- {_report_line(report, lang)}" for report in reports)

    def _report(self, text: str, database: str | None) -> Report | None:
        reports = self._provided.reports(database)
        reports_before, by_name = self._known.get(database, ((), {}))
        if reports is not reports_before:
            by_name = _by_name(reports)
            self._known[database] = (reports, by_name)

        return by_name.get(same_question(text.strip(_MARKS)))

    async def _run(self, report: Report, question: Question) -> Mapping[str, Any]:
        """Run the report as the user may, and answer with its rows."""
        lang = question.answer_lang
        database = self._provided.open_database(occasion_of(question))
        title = report.names.label(lang) or report.name
        try:
            await database.explain(report.sql)
        except (InvalidSql, ValidationFailed) as error:
            if not report.is_broken:
                raise

            return {"response": _WHY_BROKEN.to(lang).format(name=title, why=error.message(lang))}

        result = await database.run(report.sql)
        catalog = await database.catalog()
        inquiry = Inquiry(title, lang, catalog)
        summary = (await self._provided.rules.summarize(inquiry, report.sql, result)).value
        return {
            "response": summary,
            "summary": summary,
            "sql": report.sql,
            **shown_result(report.sql, result, catalog, lang),
        }


_Act = Callable[[Commands, str, Question], Awaitable[Mapping[str, Any]]]
# The names of each command, what it does, and the method that does it.
_COMMANDS: tuple[tuple[tuple[str, ...], Text, _Act], ...] = (
    (("help", "帮助"), Text("帮助", "what can be asked"), Commands.help),
    (
        ("reset", "重置"),
        Text("忘记本次会话的上下文", "forget what was said in this conversation"),
        Commands.reset,
    ),
    (
        ("schema", "结构"),
        Text("数据表，可加关键词", "the tables; words narrow them down"),
        Commands.schema,
    ),
    (
        ("report", "报表"),
        Text("固定报表，可加名称", "the reports, or the one of that name"),
        Commands.report,
    ),
)


def _by_name(reports: Sequence[Report]) -> Mapping[str, Report]:
    """Index the reports by all their names; of two with one name the first counts."""
    return {
        same_question(name): report
        for report in reversed(reports)
        for name in (report.name, *report.names.all)
    }


def _commands(lang: Lang) -> str:
    at = 1 if lang == "zh" else 0
    return "\n".join(f"- /{names[at]}: {what.to(lang)}" for names, what, _ in _COMMANDS)


def _table_line(table: Mapping[str, Any]) -> str:
    comment = table.get("comment")
    if comment:
        return f"{table['name']}: {comment}"

    return str(table["name"])


def _report_line(report: Report, lang: Lang) -> str:
    title = report.names.label(lang) or report.name
    if report.is_broken:
        title += _BROKEN.to(lang)
    if not report.description:
        return title

    return f"{title}: {report.description.to(lang)}"


def commands(provided: Provided) -> Commands:
    return Commands(provided)
