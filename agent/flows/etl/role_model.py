"""Asks the model on behalf of the roles: by one tool for each role, within the run's limits.

Where the model fails, the rules do the work, and the answer has a warning.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from agent.flows.etl.etl_texts import MODEL_DOWN, MODEL_GAVE_NOTHING, MODEL_LIMIT, with_value
from agent.flows.etl.state import EtlState, Json
from agent.progress import Write
from agent.tools.registry import ToolRegistry
from agent.tools.session import LimitReached, ToolSession
from agent.tools.tool import Tool
from agent.tools.tool_limits import SpentBudget
from agent.tools.transcript import Exchange, Transcript, complete_exchange
from common.errors import LlmUnavailable, PromptTooLong
from common.text import Lang, Text
from common.values import Usage
from llm import Completion, Message, ToolOffer

_log = logging.getLogger(__name__)
_CALL_IT = "Nothing was handed in. Call {name}; text is not read."


@dataclass(frozen=True)
class RoleTask:
    """The work that a role asks of the model.

    Attributes:
        role: the node.
        opening: instructions, and what is known as data.
        tool: the only way to submit the work.
        is_done: whether everything has been submitted.
        lookups: names of tools that may be called before.
        most_rounds: replies that may call these.
        most_submissions: replies that may submit a part, where the work has several.
        most_wrong: replies in a row whose calls are answered with what is wrong; one without any
            call is answered once.
    """

    role: str
    opening: Sequence[Message]
    tool: Tool[Any]
    is_done: Callable[[], bool]
    lookups: tuple[str, ...] = ()
    most_rounds: int = 0
    most_submissions: int = 1
    most_wrong: int = 1


class RoleModel:
    """The model as the roles of one leg of a run ask it.

    Args:
        session_of: makes the session that counts on from what the run has used.
        registry: all tools.
        write: shows calls.

    Attributes:
        is_away: it failed once, or has nothing left to use; it is not asked again in this leg.
    """

    def __init__(
        self,
        session_of: Callable[[SpentBudget], ToolSession],
        registry: ToolRegistry,
        write: Write,
    ) -> None:
        self._session_of = session_of
        self._registry = registry
        self._write = write
        self._session: ToolSession | None = None
        self._warnings: list[Text] = []
        self._attempts = 0
        self.is_away = False

    async def attempt(self, task: RoleTask, state: EtlState) -> bool:
        """Let the model work on the task once; tell whether it is done.

        Failures of the model raise nothing; they are added to the warnings.
        """
        if self.is_away:
            return False

        session = self._begun(state)
        self._attempts += 1
        try:
            await _Attempt(task, session, self._registry, self._write, self._attempts).run()
        except LimitReached as reached:
            self._leave(with_value(MODEL_LIMIT, reached.text))
        except PromptTooLong as error:
            self.warn(with_value(MODEL_DOWN, error.text))
        except LlmUnavailable as error:
            self._leave(with_value(MODEL_DOWN, error.text))
        else:
            self._note(task)

        return task.is_done()

    def _note(self, task: RoleTask) -> None:
        if not task.is_done():
            _log.info("the model submitted nothing usable", extra={"role": task.role})
            self.warn(with_value(MODEL_GAVE_NOTHING, Text(task.role, task.role)))

    def warn(self, text: Text) -> None:
        """Add a warning to the answer, each text once."""
        if text not in self._warnings:
            self._warnings.append(text)

    def take_warnings(self, lang: Lang) -> list[str]:
        """Return the warnings since the last call, and forget them."""
        warnings = [text.to(lang) for text in self._warnings]
        self._warnings.clear()
        return warnings

    def usage(self, state: EtlState) -> Json:
        """Return what the run has used, for its state."""
        return dict(vars(self._begun(state).usage))

    def _begun(self, state: EtlState) -> ToolSession:
        if self._session is None:
            self._session = self._session_of(SpentBudget(Usage(**state.get("usage", {}))))

        return self._session

    def _leave(self, why: Text) -> None:
        self.is_away = True
        self.warn(why)


class _Attempt:
    """One conversation with the model about one task."""

    def __init__(
        self,
        task: RoleTask,
        session: ToolSession,
        registry: ToolRegistry,
        write: Write,
        number: int,
    ) -> None:
        self._task = task
        self._session = session
        self._registry = registry.changed(more=[task.tool])
        self._write = write
        self._number = number
        self._transcript = Transcript(tuple(task.opening))
        self._rounds = 0
        self._parts = 0
        self._wrong = 0
        self._is_reminded = False

    async def run(self) -> None:
        """Ask until the task is done or the model has had its chances."""
        while True:
            offer = self._offer()
            reply = await self._session.ask(self._transcript, offer)
            exchange = await self._answered(reply, offer)
            if self._task.is_done() or exchange is None:
                return

            self._transcript = self._transcript.with_exchange(exchange)

    def _offer(self) -> ToolOffer:
        """Offer the tools for looking things up as long as there are rounds left."""
        names = [self._task.tool.name]
        if self._rounds < self._task.most_rounds:
            names += self._task.lookups

        actor = self._session.question.actor
        allowed_tools = [tool for tool in self._registry.allowed(actor) if tool.name in names]
        tools = tuple(tool.definition for tool in allowed_tools)
        is_alone = len(tools) == 1
        has_several = not is_alone or self._task.most_submissions > 1
        choice = tools[0].name if is_alone else "required"
        return ToolOffer(tools, choice=choice, parallel=has_several)

    async def _answered(self, reply: Completion, offer: ToolOffer) -> Exchange | None:
        """Return the exchange to go on from; None when the model has had its chances."""
        texts_by_call: dict[str, str] = {}
        has_looked = False
        has_handed_in = False
        for place, call in enumerate(reply.tool_calls):
            own = replace(call, id=f"{self._task.role}_{self._number}_{self._turn}_{place}")
            result = await self._session.call(
                own, self._registry, self._write, offer.names, state=str(self._number)
            )
            texts_by_call[call.id] = result.text
            if self._task.is_done():
                return None

            is_taken = result.error_type is None
            if call.name == self._task.tool.name:
                has_handed_in = has_handed_in or is_taken
            else:
                has_looked = has_looked or is_taken

        return self._next(reply, texts_by_call, has_looked=has_looked, has_handed_in=has_handed_in)

    def _next(
        self,
        reply: Completion,
        texts_by_call: dict[str, str],
        *,
        has_looked: bool,
        has_handed_in: bool,
    ) -> Exchange | None:
        if has_handed_in:
            self._parts += 1
            self._wrong = 0
            if self._parts < self._task.most_submissions:
                return complete_exchange(reply, texts_by_call)

            return None

        if has_looked:
            self._rounds += 1
            return complete_exchange(reply, texts_by_call)

        if not reply.tool_calls:
            return self._reminded(reply)

        self._wrong += 1
        if self._wrong <= self._task.most_wrong:
            return complete_exchange(reply, texts_by_call)

        return None

    def _reminded(self, reply: Completion) -> Exchange | None:
        """Return the exchange that says, once, that text is not read."""
        if self._is_reminded or not reply.text.strip():
            return None

        self._is_reminded = True
        return Exchange(reply, said=_CALL_IT.format(name=self._task.tool.name))

    @property
    def _turn(self) -> int:
        return len(self._transcript.exchanges)
