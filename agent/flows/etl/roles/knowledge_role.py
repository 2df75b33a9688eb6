"""The knowledge role by a model: it looks tables up and names those that the request is about."""

from collections.abc import Sequence

from pydantic import Field

from agent.flows.etl.context import EtlContext
from agent.flows.etl.role_model import RoleTask
from agent.flows.etl.roles.submit_tools import submit_tool
from agent.flows.etl.state import EtlState
from agent.tools.asset_tools import tables_of
from agent.tools.tool import Arguments
from agent.tools.toolbox import KNOWLEDGE_TOOLS
from common.text import Text
from common.values import Catalog, Table
from etl.schemas.knowledge_context import KnowledgeContext
from knowledge.language.safe_text import one_line

_ROUNDS = 4
_MOST_TABLES = 40
_MOST_GAPS = 20
_MOST_GAP = 200  # characters


class SubmitKnowledge(Arguments):
    """The arguments of `submit_knowledge`."""

    tables: list[str] = Field(
        max_length=_MOST_TABLES, description="Tables that the transformation reads or joins."
    )
    gaps: list[str] = Field(
        max_length=_MOST_GAPS, description="What the request names and nothing was found for."
    )


class ModelKnowledge:
    """The findings of a model: tables that the caller may see, and gaps."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self.is_done = False
        self.tables: list[Table] = []
        self.gaps: list[str] = []

    async def take(self, submission: SubmitKnowledge) -> str:
        """Take what was found.

        Raises:
            NotFound: a table does not exist for the caller.
            InvalidRequest: several tables are called so.
        """
        self.tables = tables_of(submission.tables, self._catalog)
        self.gaps = [one_line(gap, _MOST_GAP) for gap in submission.gaps]
        self.is_done = True
        return "Accepted."


async def retrieved(
    state: EtlState, context: EtlContext, catalog: Catalog, knowledge: KnowledgeContext
) -> tuple[Sequence[Table], Sequence[str]]:
    """Return the tables and gaps that the model adds to what the rules know."""
    if context.roles is None or state["given_intent"] is not None:
        return (), ()

    retrieval = ModelKnowledge(catalog)
    opening = await context.roles.prompts.of_request(
        "etl_knowledge", state, catalog, known=_told(knowledge)
    )
    tool = submit_tool(
        "submit_knowledge",
        Text("提交知识", "Hand in knowledge"),
        "Hands in the tables that the request is about, and what was not found.",
        SubmitKnowledge,
        retrieval.take,
    )
    task = RoleTask(
        "knowledge_agent", opening, tool, lambda: retrieval.is_done, KNOWLEDGE_TOOLS, _ROUNDS
    )
    await context.roles.model.attempt(task, state)
    return retrieval.tables, retrieval.gaps


def _told(knowledge: KnowledgeContext) -> dict[str, object]:
    return {"tables": list(knowledge.tables), "gaps": knowledge.gaps}
