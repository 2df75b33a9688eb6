"""The services of one request to the graph."""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from langgraph.runtime import Runtime

from agent.flows.etl.draft_learning import DraftLearning
from agent.flows.etl.role_model import RoleModel
from agent.flows.etl.role_prompts import RolePrompts
from agent.flows.etl.state import EtlState, EtlUpdate
from agent.learnt_drafts import LearntDrafts
from agent.progress import Write
from agent.question import Question, Recall, nothing_before
from common.ports import Database
from etl.binding.intent_binding import BindingResult
from etl.evidence.fixture_worlds import World
from etl.planning.draft_model import Draft
from etl.scratch.scratch_access import ScratchDatabase
from store import Artefacts


@dataclass
class DraftMemory:
    """Results that roles have worked out in this leg of the run, so that others need not.

    Attributes:
        bindings: by the answers that they were made with.
        drafts: by the plan and the SQL that are not the rules'; "" is the rules' own.
        cases: worlds of a model's test cases.
        leg: a random name, so that an earlier worker of the run can't build under the same one.
    """

    bindings: dict[str, BindingResult] = field(default_factory=dict)
    drafts: dict[str, Draft] = field(default_factory=dict)
    cases: tuple[World, ...] = ()
    leg: str = field(default_factory=lambda: secrets.token_hex(4))


@dataclass(frozen=True)
class EtlRoles:
    """The model that works for the roles, and its prompts."""

    model: RoleModel
    prompts: RolePrompts


@dataclass(frozen=True)
class EtlContext:
    """The services that LangGraph hands to the nodes beside the state.

    Attributes:
        database: the datasource with the rights of who asks.
        scratch: where drafts are built.
        time_zone: in which periods are cut unless the request says otherwise.
        most_rows: how many rows the preview has at most.
        experience: what was learnt of drafts before, as who asks may see it.
        learning: keeps what is learnt of this one.
        write: shows what nodes write while they run.
        roles: asks a model; None: there is none, and rules do all the work.
        recall: gives the earlier turns of the conversation.
    """

    question: Question
    database: Database
    scratch: ScratchDatabase
    artefacts: Artefacts
    time_zone: str
    most_rows: int
    experience: LearntDrafts
    learning: DraftLearning
    write: Write
    roles: EtlRoles | None = None
    recall: Recall = nothing_before
    memory: DraftMemory = field(default_factory=DraftMemory)

    def with_model_usage(self, update: EtlUpdate, state: EtlState) -> EtlUpdate:
        """Add the model's usage so far and its new warnings; without a model, nothing."""
        if self.roles is None:
            return update

        model = self.roles.model
        warnings = [*update.get("warnings", []), *model.take_warnings(state["lang"])]
        return {**update, "usage": model.usage(state), "warnings": warnings}


EtlRuntime = Runtime[EtlContext]


def options_at(question: Question, today: date) -> dict[str, Any]:
    """Return the options of a request as its state holds them, with the day that it was made."""
    options: Mapping[str, Any] = question.details.get("options") or {}
    return {**options, "today": today.isoformat()}
