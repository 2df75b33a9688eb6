"""The services of one question in a flow with tools."""

from dataclasses import dataclass

from agent.experience import NOTHING_LEARNT, Recollection
from agent.flow import Recall, nothing_before
from agent.thinking import Skills
from agent.tools.registry import ToolRegistry
from agent.tools.session import ToolSession
from agent.value_lookup import LookUp, nothing_stored
from common.ports import Database


@dataclass(frozen=True)
class ToolAgentContext:
    """What LangGraph hands to the nodes beside the state.

    Attributes:
        session: asks the model and calls tools, within the limits of this question.
        registry: all tools.
        database: as the actor may see it, for the catalogue and for judging statements; audited.
        skills: writes SQL with the model.
        rules: puts rows into words when the model can't.
        recall: gives the earlier turns of the conversation.
        experience: gives what has been learnt for the question.
        look_up: finds stored values that the question names.
    """

    session: ToolSession
    registry: ToolRegistry
    database: Database
    skills: Skills
    rules: Skills
    recall: Recall = nothing_before
    experience: Recollection = NOTHING_LEARNT
    look_up: LookUp = nothing_stored
