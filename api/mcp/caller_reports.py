"""The reports of the semantic files, as far as a caller may see their data."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from api.mcp.content import Json, McpCaller
from api.mcp.mcp_services import McpServices
from common.errors import InvalidSql, StatementRejected, ValidationFailed
from common.meanings import Report
from common.text import Text


@dataclass(frozen=True)
class CallerReport:
    """A report whose data the caller may see.

    Attributes:
        problem: why it can't be run now; None: it can.
    """

    database: str
    report: Report
    problem: Text | None = None

    def shown_to(self, caller: McpCaller) -> Json:
        """Return what tools list of it."""
        about = self.report.description
        shown = {
            "question": report_label(self.report, caller),
            "description": about.to(caller.lang) if about else "",
            "database": self.database,
        }
        if self.problem is not None:
            shown["problem"] = self.problem.to(caller.lang)

        return shown


def report_label(report: Report, caller: McpCaller) -> str:
    """Return the question by which users ask for a report."""
    return report.names.label(caller.lang) or report.name


async def open_reports(services: McpServices, caller: McpCaller) -> Sequence[tuple[str, Report]]:
    """Return the reports that can be run now, each with its database."""
    reports = await reports_of(services, caller)
    return [(one.database, one.report) for one in reports if one.problem is None]


async def reports_of(services: McpServices, caller: McpCaller) -> Sequence[CallerReport]:
    """Return the reports of all databases that the caller may ask."""
    listed = [
        (database.name, report)
        for database in services.asked.open_to(caller.actor)
        for report in database.reports
    ]
    reports = await asyncio.gather(*(_planned(services, caller, *one) for one in listed))
    return [one for one in reports if one is not None]


async def _planned(
    services: McpServices, caller: McpCaller, name: str, report: Report
) -> CallerReport | None:
    """Return a report; None: it reads what the caller may not."""
    try:
        await services.asked.database(name, caller.actor).explain(report.sql)
    except (InvalidSql, ValidationFailed) as error:
        return CallerReport(name, report, error.text) if report.is_broken else None
    except StatementRejected:
        return None

    return CallerReport(name, report)
