"""The services behind what is offered over MCP."""

from collections.abc import Collection
from dataclasses import dataclass

from agent.asked_databases import AskedDatabases
from agent.runs.run_service import RunService
from agent.services.analysis_service import AnalysisService
from agent.services.database_services import ServedDatabases
from agent.services.export_service import ExportService
from agent.tools.registry import ToolRegistry


@dataclass(frozen=True)
class McpServices:
    """The services of one application.

    Attributes:
        agents: names of the flows that can be asked.
        registry: knows who may use which tool.
    """

    runs: RunService
    databases: ServedDatabases
    asked: AskedDatabases
    exports: ExportService
    analyses: AnalysisService
    registry: ToolRegistry
    agents: Collection[str]
    max_question_chars: int
