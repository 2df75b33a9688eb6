"""The semantic file as reviewers see it, and the changes of it that they propose."""

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

from common import timestamps
from common.actor import Actor
from common.errors import Conflict, InvalidRequest, NotFound
from common.text import Text
from common.values import Catalog
from knowledge.semantic.layer import SemanticLayer
from knowledge.semantic.problems import Problem, SemanticFileError, problem_list
from knowledge.semantic.proposing import diff_of, replaced, revision_of
from store.proposals import Proposals, SemanticProposal

_NONE = Text(
    "这个数据库没有语义文件（SEMANTIC_FILE）。",
    "This database has no semantic file (SEMANTIC_FILE).",
)
_SAME = Text("文件没有改变。", "This changes nothing.")
_CHANGED = Text(
    "语义文件已经改变：请重新打开，再提出修改。",
    "The semantic file has changed: open it again and propose the change anew.",
)
_MISTAKES = Text("修改后的文件有错误：\n{}", "The file would have mistakes:\n{}")
_UNKNOWN = Text("没有这个建议。", "There is no such proposal.")
_SETTLED = Text("这个建议已有结果。", "The proposal is settled already.")


@dataclass(frozen=True)
class WantedChange:
    """A change as a reviewer gives it.

    Attributes:
        before: lines that stand once in the file; empty: `after` is added at its end.
        revision: the revision of the file that was read; None: any.
    """

    before: str
    after: str
    revision: str | None = None
    note: str = ""


class SemanticService:
    """Shows the semantic file of one datasource and takes proposals.

    Args:
        layer: the file as the service uses it; None: there is none.
        read_catalog: gives the whole catalogue, which changes are held against.
    """

    def __init__(
        self,
        layer: SemanticLayer | None,
        proposals: Proposals,
        datasource: str,
        read_catalog: Callable[[], Awaitable[Catalog]],
    ) -> None:
        self._layer = layer
        self._proposals = proposals
        self._datasource = datasource
        self._read_catalog = read_catalog

    async def file(self) -> dict[str, Any]:
        """Return the file's name, text, revision and problems.

        Raises:
            NotFound: the database has none.
        """
        layer = self._semantic_layer()
        text = await asyncio.to_thread(layer.text)
        problems = [asdict(problem) for problem in layer.problems or ()]
        revision = revision_of(text)
        return {"name": layer.file_name, "text": text, "revision": revision, "problems": problems}

    async def listed(self) -> list[dict[str, Any]]:
        """Return all proposals, the newest first."""
        return [asdict(proposal) for proposal in await self._proposals.all(self._datasource)]

    async def propose(self, actor: Actor, change: WantedChange) -> dict[str, Any]:
        """Keep a change of the file for an operator to apply.

        Raises:
            InvalidRequest: it changes nothing, or would not leave a file that fits the database.
            Conflict: the file is no longer of that revision, or has no such lines.
        """
        layer = self._semantic_layer()
        text = await asyncio.to_thread(layer.text)
        is_other = change.revision is not None and change.revision != revision_of(text)
        changed = replaced(text, change.before, change.after)
        if is_other or changed is None:
            raise Conflict(_CHANGED)

        diff = diff_of(text, changed, layer.file_name)
        if not diff:
            raise InvalidRequest(_SAME, field="after")

        await self._check(layer, text, changed)
        proposal = SemanticProposal(
            f"prop_{secrets.token_hex(8)}", actor.owner, timestamps.now(), diff, change.note
        )
        await self._proposals.add(self._datasource, proposal)
        return asdict(proposal)

    async def withdraw(self, actor: Actor, proposal_id: str) -> dict[str, Any]:
        """Settle an open proposal of the actor's own as withdrawn.

        Raises:
            NotFound: the actor has none of this id.
            Conflict: it is settled already.
        """
        proposal = await self._proposals.find(self._datasource, proposal_id)
        if proposal is None or proposal.author != actor.owner:
            raise NotFound(_UNKNOWN)

        settled = replace(
            proposal, state="withdrawn", settled_at=timestamps.now(), settled_by=actor.owner
        )
        if not await self._proposals.settle(self._datasource, settled):
            raise Conflict(_SETTLED)

        return asdict(settled)

    async def _check(self, layer: SemanticLayer, before: str, after: str) -> None:
        """Raise `InvalidRequest` when the change brings mistakes with it."""
        catalog = await self._read_catalog()
        try:
            problems = await asyncio.to_thread(layer.problems_in, after, catalog)
        except SemanticFileError as error:
            raise _mistakes_error(layer, error.problems) from error

        known_texts = {
            one.text for one in await asyncio.to_thread(layer.problems_in, before, catalog)
        }
        new = tuple(problem for problem in problems if problem.text not in known_texts)
        if new:
            raise _mistakes_error(layer, new)

    def _semantic_layer(self) -> SemanticLayer:
        if self._layer is None:
            raise NotFound(_NONE)

        return self._layer


def _mistakes_error(layer: SemanticLayer, problems: tuple[Problem, ...]) -> InvalidRequest:
    mistakes = problem_list(layer.file_name, problems)
    return InvalidRequest(
        Text(_MISTAKES.zh.format(mistakes), _MISTAKES.en.format(mistakes)), field="after"
    )
