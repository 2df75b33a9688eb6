"""The services of one request to the graph."""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from langgraph.runtime import Runtime

from agent.flows.etl.draft_experience import DraftExperience
from agent.flows.etl.draft_learning import DraftLearning
from agent.progress import Write
from agent.question import Question
from common.ports import Database
from etl.binding.intent_binding import BindingResult
from etl.planning.draft_model import Draft
from etl.scratch.scratch_access import ScratchDatabase
from store import Artefacts


@dataclass
class DraftMemory:
    """What roles have worked out in this leg of the run, so that others need not.

    Attributes:
        bindings: by the answers that they were made with.
        drafts: by the SQL that the user has changed.
        leg: names the leg; what a dead worker builds has another name.
    """

    bindings: dict[str, BindingResult] = field(default_factory=dict)
    drafts: dict[str, Draft] = field(default_factory=dict)
    leg: str = field(default_factory=lambda: secrets.token_hex(4))


@dataclass(frozen=True)
class EtlContext:
    """The services that LangGraph hands to the nodes beside the state.

    Attributes:
        database: the datasource with the rights of who asks.
        scratch: where drafts are built.
        time_zone: in which periods are cut unless the request says otherwise.
        most_rows: of the preview.
        experience: what was learnt of drafts before, as who asks may see it.
        learning: keeps what is learnt of this one.
        write: shows what nodes write while they run.
    """

    question: Question
    database: Database
    scratch: ScratchDatabase
    artefacts: Artefacts
    time_zone: str
    most_rows: int
    experience: DraftExperience
    learning: DraftLearning
    write: Write
    memory: DraftMemory = field(default_factory=DraftMemory)


EtlRuntime = Runtime[EtlContext]


def options_at(question: Question, today: date) -> dict[str, Any]:
    """Return the options of a request as its state holds them, with the day that it was made."""
    given: Mapping[str, Any] = question.details.get("options") or {}
    return {**given, "today": today.isoformat()}
