"""Calls tools of a Citu in this process as models do, on a real database, and reads what the audit
log says of it.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agent.question import Question
from agent.tools.registry import ToolRegistry, Use
from agent.tools.tool import ToolFindings, ToolResult
from common.actor import Actor
from common.audit import Occasion
from common.runtime import run
from llm import InvalidArguments, ToolCall
from tests.support.asking import Asking

_CALL_S = 30.0


class ToolBench:
    """One question's calls; `found` holds the rows of earlier ones, as a session keeps them.

    Args:
        audit: the file that the service writes its audit log to.
    """

    def __init__(self, asking: Asking, audit: Path, actor: Actor = Actor("ann")) -> None:  # noqa: B008 - can't change
        self._asking = asking
        self._audit = audit
        self.question = Question("What about the orders?", actor=actor, is_credible=True)
        self.found: dict[str, ToolFindings] = {}
        self._calls = 0

    @property
    def registry(self) -> ToolRegistry:
        """Return the service's tools."""
        return self._asking.services.tools

    @property
    def use(self) -> Use:
        """Return what the calls are made for."""
        occasion = Occasion(
            "ask", self.question.run_id, self.question.actor, None, self.question.question
        )
        return Use(self.question, occasion, self.found)

    def call(
        self,
        name: str,
        arguments: Mapping[str, Any] | InvalidArguments,
        registry: ToolRegistry | None = None,
    ) -> ToolResult:
        """Return the result of the call, whose id is `c1`, `c2` …"""
        self._calls += 1
        made = ToolCall(f"c{self._calls}", name, arguments)
        result = run((registry or self.registry).execute(made, self.use), timeout_s=_CALL_S)
        if result.found is not None:
            self.found[result.found.call_id] = result.found
        return result

    def sql(self, sql: str) -> str:
        """Return the id of a call that ran `sql`."""
        result = self.call("run_sql", {"sql": sql})
        assert result.found is not None, result.text
        return result.found.call_id

    def lines(self) -> list[dict[str, Any]]:
        """Return what the audit log says of this question."""
        written = self._audit.read_bytes().splitlines() if self._audit.exists() else []
        return [line for line in map(json.loads, written) if line["run_id"] == self.question.run_id]

    def statements(self) -> list[dict[str, Any]]:
        """Return the lines about statements."""
        return [line for line in self.lines() if "sql" in line]
