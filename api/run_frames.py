"""The frames of a run for clients of other protocols: of a question, or after an answer to one."""

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from agent.question import Question
from agent.runs.run_service import RunService
from api.requests import parse_run_id
from api.run_start import RunRequest
from common.actor import Actor
from common.errors import Conflict, InvalidRequest
from common.text import Text
from store import EventFrame

Frames = AsyncGenerator[EventFrame, None]
_BAD_NAME = Text(
    "{0} 无效：请原样填写上一次结果中的 {0}。",
    "{0} is not valid: give that of the earlier result as it is.",
)


@dataclass(frozen=True)
class WaitingRun:
    """A run that waits for its user, as clients name it: `RUN_ID:INTERRUPT_ID`."""

    run_id: str
    interrupt_id: str

    @classmethod
    def parse(cls, text: str, field: str = "answer_to") -> "WaitingRun":
        """Read the name of a waiting run.

        Args:
            field: in which clients send the name.

        Raises:
            InvalidRequest: it is no such name.
        """
        run_id, _, interrupt_id = text.partition(":")
        if not run_id or not interrupt_id:
            message = Text(_BAD_NAME.zh.format(field), _BAD_NAME.en.format(field))
            raise InvalidRequest(message, field=field)

        return cls(parse_run_id(run_id), interrupt_id)

    @classmethod
    def of(cls, event: Mapping[str, Any]) -> "WaitingRun":
        """Return the run that asks, by `data` of the event `question`."""
        return cls(event["run_id"], event["interrupt_id"])

    @property
    def name(self) -> str:
        """Return what clients call it."""
        return f"{self.run_id}:{self.interrupt_id}"


async def frames_of(
    runs: RunService, question: Question, leave: Callable[[], None], *, is_watched: bool = True
) -> Frames:
    """Begin a run, and yield its frames; closing them cancels it.

    Args:
        leave: called when the run has ended.
        is_watched: whether the client sees frames as they come; else they are kept at the end only,
            which spares the store.
    """
    run = RunRequest(question).begin(runs, leave, is_watched=is_watched)
    async with aclosing(runs.watch(run)) as frames:
        async for frame in frames:
            yield frame


async def last_frame(runs: RunService, owner: str, run_id: str) -> Frames:
    """Return the last frame of a run, which asks where the run waits."""
    view = await runs.look(owner, run_id)
    return runs.follow(owner, run_id, view.record.last_seq - 1)


async def frames_after(
    runs: RunService,
    actor: Actor,
    waiting: WaitingRun,
    answer_to: Callable[[Mapping[str, Any]], Any],
    leave: Callable[[], None],
) -> Frames:
    """Answer what a run has asked, and return its further frames.

    Args:
        answer_to: gives the answer to `data` of the event `question`.
        leave: called when the run has ended, or nothing was begun.

    Raises:
        NotFound, Conflict, InvalidRequest, StoreUnavailable: as `RunService.resume`.
    """
    owner = actor.owner
    try:
        view = await runs.look(owner, waiting.run_id)
        asked = view.last.data if view.last is not None else {}
        answer = answer_to(asked)
        await runs.resume(actor, waiting.run_id, waiting.interrupt_id, answer, on_end=leave)
    except Conflict:
        leave()
        if view.record.state == "waiting":
            raise

        return runs.follow(owner, waiting.run_id, 0)  # the same answer came twice
    except BaseException:
        leave()
        raise

    return runs.follow(owner, waiting.run_id, view.record.last_seq)
