"""The services that LangGraph hands to the nodes: ports, never HTTP or configuration."""

from contextlib import AbstractContextManager
from dataclasses import dataclass

from langgraph.runtime import Runtime

from agent.experience import NOTHING_LEARNT, Recollection
from agent.flows.ask.about_result import Analyse, nothing_computed
from agent.flows.ask.state import AskState
from agent.progress import Write, shown_to_nobody
from agent.question import Recall, nothing_before
from agent.thinking import Skills
from agent.token_batches import emitting
from agent.value_lookup import LookUp, nothing_stored
from common.actor import NOBODY, Actor
from common.inquiry import Emit, Inquiry
from common.learning import NO_EXPERIENCE
from common.ports import Database
from common.values import Catalog, PlanEstimate


@dataclass(frozen=True)
class Behaviour:
    """The switches of the graph; see app_config for their meaning.

    No combination of them can switch off the single-statement rule, the READ ONLY transaction,
    timeouts or row caps: those live in the database adapter.

    Attributes:
        follow_up_wait_s: seconds that an answer waits for questions to ask next, once all else of
            it is ready.
    """

    result_summary: bool = True
    syntax_validation: bool = True
    forbidden_check: bool = True
    auto_repair: bool = True
    follow_up_wait_s: float = 0.02


@dataclass(frozen=True)
class AskContext:
    """Services that one question needs, with its actor's rights.

    Attributes:
        skills: thinks with the model if there is one; made for this question alone.
        rules: the offline skills, which need no model.
        recall: gives the earlier turns of the conversation.
        experience: gives what has been learnt for the question.
        actor: who asks; what they may see and change depends on it.
        look_up: finds stored values that the question names.
        analyse: computes figures of an earlier result's rows.
        write: shows text while it is written.
    """

    database: Database
    skills: Skills
    rules: Skills
    behaviour: Behaviour
    recall: Recall = nothing_before
    actor: Actor = NOBODY
    experience: Recollection = NOTHING_LEARNT
    look_up: LookUp = nothing_stored
    analyse: Analyse = nothing_computed
    write: Write = shown_to_nobody

    @property
    def has_model(self) -> bool:
        """Tell whether a model is configured."""
        return self.skills is not self.rules

    async def validate(self, sql: str) -> PlanEstimate | None:
        """Prove `sql` as far as the switches say and return its plan, if made.

        Raises what `Database.explain` raises.
        """
        if self.behaviour.syntax_validation:
            return await self.database.explain(sql)
        if self.behaviour.forbidden_check:
            await self.database.inspect(sql)

        return None


def inquiry_of(state: AskState, catalog: Catalog) -> Inquiry:
    """Return the question as skills see it."""
    return Inquiry(
        question=state["question"],
        lang=state["lang"],
        catalog=catalog,
        table=state["table"],
        context_type=state["context_type"],
        history=state.get("history", ()),
        found_values=state.get("found_values", ()),
        experience=state.get("experience", NO_EXPERIENCE),
    )


def emitter(state: AskState, runtime: Runtime[AskContext]) -> AbstractContextManager[Emit | None]:
    """Give skills the `Emit` for the text they write; see `emitting`."""
    return emitting(state["wants_tokens"], runtime.context.write)
